"""Win32 structures and constants as ctypes has them. Declarations only; imports on any system.

Each name is that of the Windows SDK's headers (winnt.h, winbase.h, accctrl.h, processthreadsapi.h).
"""

import ctypes
from ctypes import wintypes
from typing import Final

SIZE_T = ctypes.c_size_t
ULONG_PTR = ctypes.c_size_t

# CreateRestrictedToken
DISABLE_MAX_PRIVILEGE: Final = 0x1
LUA_TOKEN: Final = 0x4
WRITE_RESTRICTED: Final = 0x8

# OpenProcessToken
TOKEN_ASSIGN_PRIMARY: Final = 0x1
TOKEN_DUPLICATE: Final = 0x2
TOKEN_QUERY: Final = 0x8
TOKEN_ADJUST_DEFAULT: Final = 0x80

# TOKEN_INFORMATION_CLASS
TOKEN_GROUPS_CLASS: Final = 2
TOKEN_DEFAULT_DACL_CLASS: Final = 6
TOKEN_INTEGRITY_LEVEL_CLASS: Final = 25

SE_GROUP_INTEGRITY: Final = 0x20
SE_GROUP_LOGON_ID: Final = 0xC0000000

# Access rights
DELETE: Final = 0x00010000
WRITE_DAC: Final = 0x00040000
WRITE_OWNER: Final = 0x00080000
GENERIC_ALL: Final = 0x10000000
FILE_DELETE_CHILD: Final = 0x40
FILE_GENERIC_READ: Final = 0x120089
FILE_GENERIC_WRITE: Final = 0x120116
FILE_GENERIC_EXECUTE: Final = 0x1200A0
# FILE_GENERIC_WRITE less what reading needs too (READ_CONTROL, SYNCHRONIZE): the part that may be denied
FILE_WRITING: Final = 0x116

# EXPLICIT_ACCESS
GRANT_ACCESS: Final = 1
DENY_ACCESS: Final = 3
REVOKE_ACCESS: Final = 4
NO_INHERITANCE: Final = 0
SUB_CONTAINERS_AND_OBJECTS_INHERIT: Final = 3
INHERIT_ONLY: Final = 8
TRUSTEE_IS_SID: Final = 0
SE_FILE_OBJECT: Final = 1
DACL_SECURITY_INFORMATION: Final = 0x4
LABEL_SECURITY_INFORMATION: Final = 0x10
SDDL_REVISION_1: Final = 1

# Jobs
JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION: Final = 0x400
JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE: Final = 0x2000
JOB_OBJECT_UILIMIT_ALL: Final = 0xFF  # handles, clipboard both ways, settings, display, atoms, desktop, exit
JOB_OBJECT_BASIC_UI_RESTRICTIONS_CLASS: Final = 4
JOB_OBJECT_EXTENDED_LIMIT_CLASS: Final = 9

# CreateProcessAsUser
CREATE_SUSPENDED: Final = 0x4
CREATE_NEW_PROCESS_GROUP: Final = 0x200
CREATE_UNICODE_ENVIRONMENT: Final = 0x400
EXTENDED_STARTUPINFO_PRESENT: Final = 0x80000
STARTF_USESTDHANDLES: Final = 0x100
PROC_THREAD_ATTRIBUTE_HANDLE_LIST: Final = 0x20002
HANDLE_FLAG_INHERIT: Final = 0x1
DUPLICATE_SAME_ACCESS: Final = 0x2
INFINITE: Final = 0xFFFFFFFF
CTRL_BREAK_EVENT: Final = 1
PROCESS_QUERY_LIMITED_INFORMATION: Final = 0x1000
STILL_ACTIVE: Final = 259
ERROR_INSUFFICIENT_BUFFER: Final = 122
ERROR_INVALID_PARAMETER: Final = 87


class SID_AND_ATTRIBUTES(ctypes.Structure):
    _fields_ = (("Sid", ctypes.c_void_p), ("Attributes", wintypes.DWORD))


class TOKEN_MANDATORY_LABEL(ctypes.Structure):
    _fields_ = (("Label", SID_AND_ATTRIBUTES),)


class TOKEN_DEFAULT_DACL(ctypes.Structure):
    _fields_ = (("DefaultDacl", ctypes.c_void_p),)


class TRUSTEE_W(ctypes.Structure):
    _fields_ = (
        ("pMultipleTrustee", ctypes.c_void_p),
        ("MultipleTrusteeOperation", ctypes.c_int),
        ("TrusteeForm", ctypes.c_int),
        ("TrusteeType", ctypes.c_int),
        ("ptstrName", ctypes.c_void_p),
    )


class EXPLICIT_ACCESS_W(ctypes.Structure):
    _fields_ = (
        ("grfAccessPermissions", wintypes.DWORD),
        ("grfAccessMode", ctypes.c_int),
        ("grfInheritance", wintypes.DWORD),
        ("Trustee", TRUSTEE_W),
    )


class STARTUPINFOW(ctypes.Structure):
    _fields_ = (
        ("cb", wintypes.DWORD),
        ("lpReserved", wintypes.LPWSTR),
        ("lpDesktop", wintypes.LPWSTR),
        ("lpTitle", wintypes.LPWSTR),
        ("dwX", wintypes.DWORD),
        ("dwY", wintypes.DWORD),
        ("dwXSize", wintypes.DWORD),
        ("dwYSize", wintypes.DWORD),
        ("dwXCountChars", wintypes.DWORD),
        ("dwYCountChars", wintypes.DWORD),
        ("dwFillAttribute", wintypes.DWORD),
        ("dwFlags", wintypes.DWORD),
        ("wShowWindow", wintypes.WORD),
        ("cbReserved2", wintypes.WORD),
        ("lpReserved2", ctypes.c_void_p),
        ("hStdInput", wintypes.HANDLE),
        ("hStdOutput", wintypes.HANDLE),
        ("hStdError", wintypes.HANDLE),
    )


class STARTUPINFOEXW(ctypes.Structure):
    _fields_ = (("StartupInfo", STARTUPINFOW), ("lpAttributeList", ctypes.c_void_p))


class PROCESS_INFORMATION(ctypes.Structure):
    _fields_ = (
        ("hProcess", wintypes.HANDLE),
        ("hThread", wintypes.HANDLE),
        ("dwProcessId", wintypes.DWORD),
        ("dwThreadId", wintypes.DWORD),
    )


class IO_COUNTERS(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("r", "w", "o", "rb", "wb", "ob"))


class JOBOBJECT_BASIC_LIMIT_INFORMATION(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_longlong),
        ("PerJobUserTimeLimit", ctypes.c_longlong),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", SIZE_T),
        ("MaximumWorkingSetSize", SIZE_T),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ULONG_PTR),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    )


class JOBOBJECT_EXTENDED_LIMIT_INFORMATION(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", JOBOBJECT_BASIC_LIMIT_INFORMATION),
        ("IoInfo", IO_COUNTERS),
        ("ProcessMemoryLimit", SIZE_T),
        ("JobMemoryLimit", SIZE_T),
        ("PeakProcessMemoryUsed", SIZE_T),
        ("PeakJobMemoryUsed", SIZE_T),
    )


class JOBOBJECT_BASIC_UI_RESTRICTIONS(ctypes.Structure):
    _fields_ = (("UIRestrictionsClass", wintypes.DWORD),)
