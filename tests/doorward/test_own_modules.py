"""The finder of doorward's own modules: the same modules as Python's finder gives, or none."""

import importlib.machinery
import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

import doorward
from doorward.own_modules import OwnModules

SUFFIX = f".{sys.implementation.cache_tag}.pyc"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="only the POSIX start-up path uses it")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """`doorward.made`, with its bytecode."""
    file = tmp_path / "made.py"
    file.write_text("ANSWER = 41\n")
    py_compile.compile(str(file), doraise=True)
    return file


def found(folder: Path, name: str = "doorward.made") -> importlib.machinery.ModuleSpec | None:
    return OwnModules(str(folder), SUFFIX).find_spec(name)


def executed(spec: importlib.machinery.ModuleSpec | None) -> dict[str, object]:
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return vars(made)


def test_it_gives_what_pythons_own_finder_gives(module: Path) -> None:
    spec = found(module.parent)
    usual = importlib.machinery.PathFinder.find_spec("made", [str(module.parent)])
    assert spec is not None and usual is not None
    for name in ("origin", "cached", "has_location", "submodule_search_locations"):
        assert getattr(spec, name) == getattr(usual, name), name
    values = executed(spec)
    assert values["ANSWER"] == 41 and values["__file__"] == str(module) and values["__package__"] == "doorward"
    assert values["__loader__"].get_source("doorward.made") == "ANSWER = 41\n"  # type: ignore[attr-defined]


def test_packages_are_found_as_python_finds_them(module: Path) -> None:
    inner = module.parent / "gates"
    inner.mkdir()
    (inner / "__init__.py").write_text("ANSWER = 43\n")
    assert found(module.parent, "doorward.gates") is None, "it has no bytecode yet"
    py_compile.compile(str(inner / "__init__.py"), doraise=True)
    spec = found(module.parent, "doorward.gates")
    usual = importlib.machinery.PathFinder.find_spec("gates", [str(module.parent)])
    assert spec is not None and usual is not None
    for name in ("origin", "cached", "has_location", "submodule_search_locations"):
        assert getattr(spec, name) == getattr(usual, name), name
    values = executed(spec)
    assert values["ANSWER"] == 43 and values["__path__"] == [str(inner)] and values["__package__"] == "doorward.gates"


def test_modules_of_the_folders_below_are_found(module: Path) -> None:
    inner = module.parent / "gates"
    inner.mkdir()
    (inner / "more.py").write_text("ANSWER = 42\n")
    py_compile.compile(str(inner / "more.py"), doraise=True)
    assert executed(found(module.parent, "doorward.gates.more"))["ANSWER"] == 42


def test_a_source_that_was_edited_is_read_anew(module: Path) -> None:
    module.write_text("ANSWER = 4200\n")
    assert found(module.parent) is None


def test_a_source_with_another_time_is_read_anew(module: Path) -> None:
    stat = module.stat()
    os.utime(module, (stat.st_atime, stat.st_mtime + 2))
    assert found(module.parent) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:12],
        lambda data: data[:30],
        lambda data: b"\0\0\0\0" + data[4:],
        lambda data: data[:4] + b"\1\0\0\0" + data[8:],
    ],
    ids=["empty", "half a header", "half a code object", "another Python's", "checked by its hash"],
)
def test_bytecode_that_is_not_plainly_right_is_left_to_python(module: Path, spoil: object) -> None:
    cached = Path(importlib.util.cache_from_source(str(module)))
    cached.write_bytes(spoil(cached.read_bytes()))  # type: ignore[operator]
    assert found(module.parent) is None


def test_what_is_not_there_or_not_ours_is_left_to_python(module: Path) -> None:
    assert found(module.parent, "doorward.nowhere") is None
    assert found(module.parent, "made") is None
    assert found(module.parent, "doorwardish.made") is None


def test_a_large_module_is_read_whole(module: Path) -> None:
    module.write_text("".join(f"A{number} = 'text {number}'\n" for number in range(5000)))
    py_compile.compile(str(module), doraise=True)
    assert executed(found(module.parent))["A4999"] == "text 4999"


@pytest.mark.parametrize("options", [["-O"], ["-X", "pycache_prefix=/nowhere"]], ids=["-O", "another place"])
def test_where_python_keeps_other_bytecode_it_stays_out(options: list[str]) -> None:
    code = (
        "import sys; from doorward import own_modules as own; own.install(); "
        "print(any(isinstance(finder, own.OwnModules) for finder in sys.meta_path))"
    )
    root = os.path.dirname(os.path.dirname(doorward.__file__))
    env = {**os.environ, "PYTHONPATH": root}
    shown = subprocess.run([sys.executable, *options, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"


def test_the_command_line_uses_it_and_a_traceback_shows_the_source() -> None:
    code = (
        "import sys, traceback; from doorward.__main__ import main; main(['--version'])\n"
        "import doorward.version; print(type(doorward.version.__loader__).__module__)\n"
        "from doorward.allowlists.pattern import parse_pattern\n"
        "try: parse_pattern(None)\n"
        "except Exception: print(traceback.format_exc().count('in parse_pattern\\n    '))\n"
    )
    root = os.path.dirname(os.path.dirname(doorward.__file__))
    env = {**os.environ, "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": ""}
    for _ in range(2):  # the first may have to write the bytecode
        shown = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[1:] == ["doorward.own_modules", "1"]
