"""The Win32 functions the Windows door calls, with their types. Declarations only; imports on any system."""

import ctypes
from ctypes import wintypes
from typing import Any, Final

from doorward.launcher import windows_structures as w

_POINTER: Final = ctypes.c_void_p

# (library, function, argument types, result). BOOL results that are 0, and error codes that are not, raise.
_BOOL: Final = wintypes.BOOL
CALLS: Final[tuple[tuple[str, str, tuple[Any, ...], Any], ...]] = (
    ("advapi32", "OpenProcessToken", (wintypes.HANDLE, wintypes.DWORD, _POINTER), _BOOL),
    (
        "advapi32",
        "CreateRestrictedToken",
        (
            *(wintypes.HANDLE, wintypes.DWORD, wintypes.DWORD, _POINTER),
            *(wintypes.DWORD, _POINTER, wintypes.DWORD, _POINTER, _POINTER),
        ),
        _BOOL,
    ),
    (
        "advapi32",
        "GetTokenInformation",
        (wintypes.HANDLE, ctypes.c_int, _POINTER, wintypes.DWORD, _POINTER),
        _BOOL,
    ),
    ("advapi32", "SetTokenInformation", (wintypes.HANDLE, ctypes.c_int, _POINTER, wintypes.DWORD), _BOOL),
    ("advapi32", "ConvertStringSidToSidW", (wintypes.LPCWSTR, _POINTER), _BOOL),
    ("advapi32", "ConvertSidToStringSidW", (_POINTER, _POINTER), _BOOL),
    ("advapi32", "GetLengthSid", (_POINTER,), wintypes.DWORD),
    ("advapi32", "SetEntriesInAclW", (wintypes.ULONG, _POINTER, _POINTER, _POINTER), wintypes.DWORD),
    (
        "advapi32",
        "GetNamedSecurityInfoW",
        (wintypes.LPCWSTR, ctypes.c_int, wintypes.DWORD, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER),
        wintypes.DWORD,
    ),
    (
        "advapi32",
        "SetNamedSecurityInfoW",
        (wintypes.LPWSTR, ctypes.c_int, wintypes.DWORD, _POINTER, _POINTER, _POINTER, _POINTER),
        wintypes.DWORD,
    ),
    (
        "advapi32",
        "ConvertSecurityDescriptorToStringSecurityDescriptorW",
        (_POINTER, wintypes.DWORD, wintypes.DWORD, _POINTER, _POINTER),
        _BOOL,
    ),
    (
        "advapi32",
        "ConvertStringSecurityDescriptorToSecurityDescriptorW",
        (wintypes.LPCWSTR, wintypes.DWORD, _POINTER, _POINTER),
        _BOOL,
    ),
    ("advapi32", "GetSecurityDescriptorSacl", (_POINTER, _POINTER, _POINTER, _POINTER), _BOOL),
    (
        "advapi32",
        "CreateProcessAsUserW",
        (
            *(wintypes.HANDLE, wintypes.LPCWSTR, wintypes.LPWSTR, _POINTER, _POINTER, wintypes.BOOL),
            *(wintypes.DWORD, _POINTER, wintypes.LPCWSTR, _POINTER, _POINTER),
        ),
        _BOOL,
    ),
    (
        "kernel32",
        "CreateProcessW",
        (
            *(wintypes.LPCWSTR, wintypes.LPWSTR, _POINTER, _POINTER, wintypes.BOOL),
            *(wintypes.DWORD, _POINTER, wintypes.LPCWSTR, _POINTER, _POINTER),
        ),
        _BOOL,
    ),
    (
        "kernel32",
        "InitializeProcThreadAttributeList",
        (_POINTER, wintypes.DWORD, wintypes.DWORD, _POINTER),
        _BOOL,
    ),
    (
        "kernel32",
        "UpdateProcThreadAttribute",
        (_POINTER, wintypes.DWORD, w.SIZE_T, _POINTER, w.SIZE_T, _POINTER, _POINTER),
        _BOOL,
    ),
    ("kernel32", "DeleteProcThreadAttributeList", (_POINTER,), None),
    ("kernel32", "CreateJobObjectW", (_POINTER, wintypes.LPCWSTR), wintypes.HANDLE),
    ("kernel32", "SetInformationJobObject", (wintypes.HANDLE, ctypes.c_int, _POINTER, wintypes.DWORD), _BOOL),
    ("kernel32", "AssignProcessToJobObject", (wintypes.HANDLE, wintypes.HANDLE), _BOOL),
    ("kernel32", "TerminateJobObject", (wintypes.HANDLE, wintypes.UINT), _BOOL),
    ("kernel32", "TerminateProcess", (wintypes.HANDLE, wintypes.UINT), _BOOL),
    ("kernel32", "GetCurrentProcess", (), wintypes.HANDLE),
    ("kernel32", "OpenProcess", (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD), wintypes.HANDLE),
    ("kernel32", "GetProcessTimes", (wintypes.HANDLE, _POINTER, _POINTER, _POINTER, _POINTER), _BOOL),
    ("kernel32", "GetExitCodeProcess", (wintypes.HANDLE, _POINTER), _BOOL),
    (
        "kernel32",
        "DuplicateHandle",
        (
            *(wintypes.HANDLE, wintypes.HANDLE, wintypes.HANDLE, _POINTER),
            *(wintypes.DWORD, wintypes.BOOL, wintypes.DWORD),
        ),
        _BOOL,
    ),
    ("kernel32", "ResumeThread", (wintypes.HANDLE,), wintypes.DWORD),
    ("kernel32", "WaitForSingleObject", (wintypes.HANDLE, wintypes.DWORD), wintypes.DWORD),
    ("kernel32", "GenerateConsoleCtrlEvent", (wintypes.DWORD, wintypes.DWORD), _BOOL),
    ("kernel32", "CloseHandle", (wintypes.HANDLE,), _BOOL),
    ("kernel32", "LocalFree", (_POINTER,), _POINTER),
)
