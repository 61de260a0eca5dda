"""The Windows calls the door makes, each as one method: ctypes and nothing else. The logic is in `windows`.

A failed call raises ApiError with its name and GetLastError's number. SIDs go in as text (S-1-…), handles as numbers.
The module imports on any system; making a `WindowsApi` elsewhere raises OSError.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterator, Sequence
from ctypes import wintypes
from typing import Any

from doorward.launcher import windows_structures as w
from doorward.launcher.windows_errors import ApiError
from doorward.launcher.windows_functions import CALLS
from doorward.named_tuple import NamedTuple


class Started(NamedTuple):
    """A process that was created and has not run yet: handles of it and of its first thread, and its number."""

    process: int
    thread: int
    pid: int


class WindowsApi:
    """See the module."""

    def __init__(self) -> None:
        load = getattr(ctypes, "WinDLL", None)
        if load is None:
            raise OSError("there are no Windows libraries on this system")
        libraries = {name: load(name, use_last_error=True) for name in ("advapi32", "kernel32")}
        self._last_error: Any = ctypes.get_last_error  # type: ignore[attr-defined,unused-ignore]
        self._calls: dict[str, Any] = {}
        for library, name, arguments, result in CALLS:
            call = getattr(libraries[library], name)
            call.argtypes = arguments
            call.restype = result
            self._calls[name] = call

    # --- tokens

    def logon_sid(self) -> str:
        """The SID of this logon session, which windows, pipes and consoles are shared by."""
        with self._own_token() as token:
            size = wintypes.DWORD()
            self._calls["GetTokenInformation"](token, w.TOKEN_GROUPS_CLASS, None, 0, ctypes.byref(size))
            groups = ctypes.create_string_buffer(size.value)
            self._do("GetTokenInformation", token, w.TOKEN_GROUPS_CLASS, groups, size, ctypes.byref(size))
            count = wintypes.DWORD.from_buffer(groups).value
            # TOKEN_GROUPS: the count, then the array, aligned as a pointer is
            rows = (w.SID_AND_ATTRIBUTES * count).from_buffer(groups, ctypes.alignment(w.SID_AND_ATTRIBUTES))
            for row in rows:
                if row.Attributes & w.SE_GROUP_LOGON_ID == w.SE_GROUP_LOGON_ID:
                    return self._sid_text(row.Sid)
        return ""

    def restricted_token(self, flags: int, restricting: Sequence[str]) -> int:
        """A primary token made of this process's own, with these restricting SIDs."""
        with self._own_token() as token, contextlib.ExitStack() as sids:
            rows = (w.SID_AND_ATTRIBUTES * len(restricting))()
            for row, text in zip(rows, restricting, strict=True):
                row.Sid = sids.enter_context(self._sid(text))
            made = wintypes.HANDLE()
            self._do(
                "CreateRestrictedToken", token, flags, 0, None, 0, None, len(rows), rows, ctypes.byref(made)
            )  # fmt: skip
            return int(made.value or 0)

    def set_integrity(self, token: int, sid: str) -> None:
        """Lowers the token's integrity level."""
        with self._sid(sid) as level:
            label = w.TOKEN_MANDATORY_LABEL(w.SID_AND_ATTRIBUTES(level, w.SE_GROUP_INTEGRITY))
            size = ctypes.sizeof(label) + self._calls["GetLengthSid"](level)
            self._do("SetTokenInformation", token, w.TOKEN_INTEGRITY_LEVEL_CLASS, ctypes.byref(label), size)

    def set_default_dacl(self, token: int, sids: Sequence[str]) -> None:
        """Who may use what a process with this token makes without a say of its own (pipes, events, threads)."""
        with self._acl(None, [(sid, w.GENERIC_ALL, w.GRANT_ACCESS, w.NO_INHERITANCE) for sid in sids]) as acl:
            dacl = w.TOKEN_DEFAULT_DACL(acl)
            self._do("SetTokenInformation", token, w.TOKEN_DEFAULT_DACL_CLASS, ctypes.byref(dacl), ctypes.sizeof(dacl))

    # --- access control lists of files

    def add_entry(self, path: str, sid: str, access: int, mode: int, inheritance: int) -> None:
        """Adds one entry to the list of `path`; existing files below get it too where it is inherited."""
        self._change(path, [(sid, access, mode, inheritance)])

    def remove_entries(self, path: str, sid: str) -> None:
        """Takes every entry of `sid` out of the list of `path`."""
        self._change(path, [(sid, 0, w.REVOKE_ACCESS, w.NO_INHERITANCE)])

    def label(self, path: str) -> str:
        """The integrity label of `path` in SDDL, empty if it has none of its own."""
        descriptor = ctypes.c_void_p()
        self._code(
            "GetNamedSecurityInfoW", path, w.SE_FILE_OBJECT, w.LABEL_SECURITY_INFORMATION,
            None, None, None, None, ctypes.byref(descriptor),
        )  # fmt: skip
        try:
            text = ctypes.c_void_p()
            self._do(
                "ConvertSecurityDescriptorToStringSecurityDescriptorW",
                descriptor, w.SDDL_REVISION_1, w.LABEL_SECURITY_INFORMATION, ctypes.byref(text), None,
            )  # fmt: skip
            try:
                return ctypes.wstring_at(text.value or 0) if text.value else ""
            finally:
                self._calls["LocalFree"](text)
        finally:
            self._calls["LocalFree"](descriptor)

    def set_label(self, path: str, sddl: str) -> None:
        """Gives `path` the label that `sddl` says (`S:(ML;OICI;NW;;;LW)`); `S:` takes it away."""
        descriptor, sacl = ctypes.c_void_p(), ctypes.c_void_p()
        present, defaulted = wintypes.BOOL(), wintypes.BOOL()
        self._do(
            "ConvertStringSecurityDescriptorToSecurityDescriptorW",
            sddl, w.SDDL_REVISION_1, ctypes.byref(descriptor), None,
        )  # fmt: skip
        try:
            self._do(
                "GetSecurityDescriptorSacl",
                descriptor, ctypes.byref(present), ctypes.byref(sacl), ctypes.byref(defaulted),
            )  # fmt: skip
            self._code(
                "SetNamedSecurityInfoW", path, w.SE_FILE_OBJECT, w.LABEL_SECURITY_INFORMATION, None, None, None, sacl
            )
        finally:
            self._calls["LocalFree"](descriptor)

    # --- jobs and processes

    def create_job(self, limits: int, ui: int) -> int:
        """A job object with these limit flags and user-interface restrictions."""
        job = self._do("CreateJobObjectW", None, None)
        try:
            extended = w.JOBOBJECT_EXTENDED_LIMIT_INFORMATION()
            extended.BasicLimitInformation.LimitFlags = limits
            restrictions = w.JOBOBJECT_BASIC_UI_RESTRICTIONS(ui)
            for kind, value in (
                (w.JOB_OBJECT_EXTENDED_LIMIT_CLASS, extended),
                (w.JOB_OBJECT_BASIC_UI_RESTRICTIONS_CLASS, restrictions),
            ):
                self._do("SetInformationJobObject", job, kind, ctypes.byref(value), ctypes.sizeof(value))
        except ApiError:
            self.close(job)
            raise
        return int(job)

    def create_suspended(
        self, token: int | None, program: str, command_line: str, cwd: str, block: str, streams: Sequence[int]
    ) -> Started:
        """Creates a process that does not run yet and inherits exactly the three handles in `streams`.

        `token` None means this process's own."""
        size = w.SIZE_T()
        self._calls["InitializeProcThreadAttributeList"](None, 1, 0, ctypes.byref(size))
        attributes = ctypes.create_string_buffer(size.value)
        self._do("InitializeProcThreadAttributeList", attributes, 1, 0, ctypes.byref(size))
        try:
            handles = (wintypes.HANDLE * len(set(streams)))(*dict.fromkeys(streams))
            self._do(
                "UpdateProcThreadAttribute", attributes, 0, w.PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
                ctypes.byref(handles), ctypes.sizeof(handles), None, None,
            )  # fmt: skip
            startup = w.STARTUPINFOEXW()
            startup.StartupInfo.cb = ctypes.sizeof(startup)
            startup.StartupInfo.dwFlags = w.STARTF_USESTDHANDLES
            startup.StartupInfo.hStdInput, startup.StartupInfo.hStdOutput, startup.StartupInfo.hStdError = streams
            startup.lpAttributeList = ctypes.addressof(attributes)
            flags = w.CREATE_SUSPENDED | w.CREATE_UNICODE_ENVIRONMENT | w.EXTENDED_STARTUPINFO_PRESENT
            flags |= w.CREATE_NEW_PROCESS_GROUP
            made = w.PROCESS_INFORMATION()
            line = ctypes.create_unicode_buffer(command_line)  # which the call may change
            variables = ctypes.create_unicode_buffer(block, len(block) + 1)
            common = (
                program, line, None, None, True, flags, variables, cwd, ctypes.byref(startup), ctypes.byref(made)
            )  # fmt: skip
            if token is None:
                self._do("CreateProcessW", *common)
            else:
                self._do("CreateProcessAsUserW", token, *common)
            return Started(int(made.hProcess), int(made.hThread), int(made.dwProcessId))
        finally:
            self._calls["DeleteProcThreadAttributeList"](attributes)

    def assign(self, job: int, process: int) -> None:
        """Puts a process into a job."""
        self._do("AssignProcessToJobObject", job, process)

    def resume(self, thread: int) -> None:
        """Lets a created process run."""
        if self._calls["ResumeThread"](thread) == 0xFFFFFFFF:
            raise ApiError("ResumeThread", self._last_error())

    def wait(self, process: int) -> int:
        """Blocks until the process has ended; its exit code."""
        self._calls["WaitForSingleObject"](process, w.INFINITE)
        code = wintypes.DWORD()
        self._do("GetExitCodeProcess", process, ctypes.byref(code))
        return code.value

    def terminate_job(self, job: int, code: int) -> None:
        """Ends every process of the job."""
        self._do("TerminateJobObject", job, code)

    def terminate(self, process: int, code: int) -> None:
        """Ends one process."""
        self._do("TerminateProcess", process, code)

    def interrupt(self, pid: int) -> None:
        """Sends Ctrl-Break to the process group that `pid` leads; Ctrl-C cannot be sent to a single one."""
        self._do("GenerateConsoleCtrlEvent", w.CTRL_BREAK_EVENT, pid)

    def started_at(self, pid: int) -> int | None:
        """When that process was created (in 100 ns since 1601), None if it does not run."""
        process = self._calls["OpenProcess"](w.PROCESS_QUERY_LIMITED_INFORMATION, False, pid)
        if not process:
            number = self._last_error()
            if number == w.ERROR_INVALID_PARAMETER:  # there is no such process
                return None
            raise ApiError("OpenProcess", number)
        try:
            code = wintypes.DWORD()
            self._do("GetExitCodeProcess", process, ctypes.byref(code))
            if code.value != w.STILL_ACTIVE:
                return None
            times = [wintypes.FILETIME() for _ in range(4)]
            self._do("GetProcessTimes", process, *(ctypes.byref(time) for time in times))
            return int(times[0].dwHighDateTime << 32 | times[0].dwLowDateTime)
        finally:
            self.close(process)

    def inheritable(self, descriptor: int) -> int:
        """A handle for a descriptor of this process, that a child may inherit."""
        import msvcrt

        own = self._calls["GetCurrentProcess"]()
        handle = msvcrt.get_osfhandle(descriptor)  # type: ignore[attr-defined,unused-ignore]
        made = wintypes.HANDLE()
        self._do("DuplicateHandle", own, handle, own, ctypes.byref(made), 0, True, w.DUPLICATE_SAME_ACCESS)
        return int(made.value or 0)

    def close(self, handle: int) -> None:
        """Closes a handle."""
        self._calls["CloseHandle"](handle)

    @property
    def pid(self) -> int:
        """This process's number."""
        return os.getpid()

    # --- how calls are made

    def _do(self, name: str, *arguments: Any) -> Any:
        result = self._calls[name](*arguments)
        if not result:
            raise ApiError(name, self._last_error())
        return result

    def _code(self, name: str, *arguments: Any) -> None:
        code = self._calls[name](*arguments)
        if code:
            raise ApiError(name, int(code))

    @contextlib.contextmanager
    def _own_token(self) -> Iterator[Any]:
        token = wintypes.HANDLE()
        access = w.TOKEN_ASSIGN_PRIMARY | w.TOKEN_DUPLICATE | w.TOKEN_QUERY | w.TOKEN_ADJUST_DEFAULT
        self._do("OpenProcessToken", self._calls["GetCurrentProcess"](), access, ctypes.byref(token))
        try:
            yield token
        finally:
            self._calls["CloseHandle"](token)

    @contextlib.contextmanager
    def _sid(self, text: str) -> Iterator[Any]:
        sid = ctypes.c_void_p()
        self._do("ConvertStringSidToSidW", text, ctypes.byref(sid))
        try:
            yield sid
        finally:
            self._calls["LocalFree"](sid)

    def _sid_text(self, sid: Any) -> str:
        text = ctypes.c_void_p()
        self._do("ConvertSidToStringSidW", sid, ctypes.byref(text))
        try:
            return ctypes.wstring_at(text.value or 0)
        finally:
            self._calls["LocalFree"](text)

    @contextlib.contextmanager
    def _acl(self, before: Any, entries: Sequence[tuple[str, int, int, int]]) -> Iterator[Any]:
        with contextlib.ExitStack() as sids:
            rows = (w.EXPLICIT_ACCESS_W * len(entries))()
            for row, (sid, access, mode, inheritance) in zip(rows, entries, strict=True):
                row.grfAccessPermissions = access
                row.grfAccessMode = mode
                row.grfInheritance = inheritance
                row.Trustee.TrusteeForm = w.TRUSTEE_IS_SID
                row.Trustee.ptstrName = sids.enter_context(self._sid(sid)).value
            acl = ctypes.c_void_p()
            self._code("SetEntriesInAclW", len(rows), rows, before, ctypes.byref(acl))
            try:
                yield acl
            finally:
                self._calls["LocalFree"](acl)

    def _change(self, path: str, entries: Sequence[tuple[str, int, int, int]]) -> None:
        before, descriptor = ctypes.c_void_p(), ctypes.c_void_p()
        self._code(
            "GetNamedSecurityInfoW", path, w.SE_FILE_OBJECT, w.DACL_SECURITY_INFORMATION,
            None, None, ctypes.byref(before), None, ctypes.byref(descriptor),
        )  # fmt: skip
        try:
            with self._acl(before, entries) as acl:
                self._code(
                    "SetNamedSecurityInfoW", path, w.SE_FILE_OBJECT, w.DACL_SECURITY_INFORMATION, None, None, acl, None
                )
        finally:
            self._calls["LocalFree"](descriptor)
