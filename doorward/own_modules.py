"""Finds doorward's own modules where they are known to be, instead of looking for them.

Python's finder lists folders, tries suffixes and asks the file system a dozen times a module: about 35 µs for each of
the hundred that a run imports. The modules of this package lie at one place each, and their bytecode beside them. What
is not plainly so (no bytecode yet, a source that has changed, another layout) is left to Python's own finder, which
also writes the bytecode that is read here the next time.
"""

from __future__ import annotations

import posix
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

_PACKAGE = "doorward."
# Magic number, then no flags: valid as long as the source has the time and size that follow, 4 bytes each (PEP 552).
_BEGIN = MAGIC_NUMBER + bytes(4)
_HEADER = 16
_USUAL = 1 << 15  # bytes; a larger first read costs more than a second one


class _Loader(SourceFileLoader):
    """Python's own loader with the bytecode in hand."""

    code: CodeType | None = None

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of the module, once; a later caller gets it as Python would read it."""
        code, self.code = self.code, None
        return super().get_code(fullname) if code is None else code


class OwnModules:
    """A finder (`sys.meta_path`) for the modules below `folder`, whose bytecode ends in `suffix`."""

    def __init__(self, folder: str, suffix: str) -> None:
        self._folder = folder
        self._suffix = suffix

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module `name` where its bytecode is there and up to date; None leaves it to the next finder."""
        if not name.startswith(_PACKAGE):
            return None
        place, _, last = name.rpartition(".")
        folder = self._folder + place[len(_PACKAGE) - 1 :].replace(".", "/")
        found = self._read(folder, last)
        package = None
        if found is None:
            package = f"{folder}/{last}"
            found = self._read(package, "__init__")
            if found is None:
                return None
        source, cached, data, made = found
        stamp = (int(made.st_mtime) & 0xFFFF_FFFF, made.st_size & 0xFFFF_FFFF)
        if data[:_HEADER] != _BEGIN + stamp[0].to_bytes(4, "little") + stamp[1].to_bytes(4, "little"):
            return None
        loader = _Loader(name, source)
        try:
            loader.code = loads(memoryview(data)[_HEADER:])
        except (EOFError, ValueError, TypeError):
            return None  # half written
        spec = ModuleSpec(name, loader, origin=source, is_package=package is not None)
        if package is not None:
            spec.submodule_search_locations = [package]
        spec.has_location = True
        spec.cached = cached
        return spec

    def _read(self, folder: str, name: str) -> tuple[str, str, bytes, posix.stat_result] | None:
        """Source and bytecode of a module: their paths, the bytecode, and what is known of the source."""
        source, cached = f"{folder}/{name}.py", f"{folder}/__pycache__/{name}{self._suffix}"
        try:
            return source, cached, _read(cached), posix.stat(source)
        except OSError:
            return None


def install() -> None:
    """From now on doorward's modules are found this way; twice is fine. Does nothing where Python is told to keep its
    bytecode elsewhere or to make another kind of it."""
    if sys.flags.optimize or sys.pycache_prefix is not None or sys.implementation.cache_tag is None:
        return
    if not any(isinstance(finder, OwnModules) for finder in sys.meta_path):
        folder = __file__.rpartition("/")[0]
        sys.meta_path.insert(0, OwnModules(folder, f".{sys.implementation.cache_tag}.pyc"))


def _read(path: str) -> bytes:
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        data = posix.read(descriptor, _USUAL)
        while len(data) >= _USUAL and (more := posix.read(descriptor, 1 << 20)):
            data += more
        return data
    finally:
        posix.close(descriptor)
