"""The floors of the house: a folder imports only from floors below it, and never under a bare name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FLOOR = {"allowlists": 1, "gates": 1, "sessions": 1, "proxy": 2, "launcher": 2, "doorward": 3}
# below every floor: they import nothing of ours
GROUND = {
    *("doorward.named_tuple", "doorward.plain_collections", "doorward.plain_enum", "doorward.start_json"),
    "doorward.typing_names",
}

# What a floor may do at all: floor 1 is pure, or (sessions, gates) reads and writes files.
FORBIDDEN = {
    "allowlists": {"socket", "subprocess", "os", "asyncio", "urllib.request"},
    "gates": {"socket", "subprocess", "asyncio", "urllib.request"},
    "sessions": {"socket", "subprocess", "asyncio", "urllib.request"},
    "proxy": {"asyncio", "subprocess", "http.client", "urllib.request"},
    "launcher": {"asyncio", "subprocess", "http.client", "urllib.request"},
}


def _files(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    if folder == "doorward":  # its links to the others are theirs
        found = [path for path in found if path.relative_to(ROOT).parts[1] not in FLOOR]
    return found


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            yield node.lineno, node.module or ""


@pytest.mark.parametrize("folder", FLOOR)
def test_a_folder_imports_only_from_floors_below(folder: str) -> None:
    files = _files(folder)
    assert files
    wrong = []
    for path in files:
        for line, module in _imports(path):
            parts = module.split(".")
            if parts[0] in FLOOR and parts[0] != "doorward":
                wrong.append(f"{path.name}:{line} imports {module} under its bare name")
            elif parts[0] == "doorward" and folder != "doorward" and module not in GROUND:
                other = parts[1] if len(parts) > 1 else "doorward"
                allowed = other == folder or (other in FLOOR and FLOOR[other] < FLOOR[folder])
                if not allowed:
                    wrong.append(f"{path.name}:{line} imports {module}, which is not below {folder}")
    assert wrong == []


@pytest.mark.parametrize("module", sorted(GROUND))
def test_the_ground_imports_nothing_of_ours(module: str) -> None:
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    assert [name for _, name in _imports(path) if name.split(".")[0] in FLOOR] == []


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_a_floor_does_only_its_own_kind_of_work(folder: str) -> None:
    wrong = [
        f"{path.name}:{line} imports {module}"
        for path in _files(folder)
        for line, module in _imports(path)
        if module in FORBIDDEN[folder]
        # the inspection worker is a process of its own, whose start does not count
        and not (module == "asyncio" and path.parent.name == "inspection")
    ]
    assert wrong == []


@pytest.mark.parametrize("folder", [name for name in FLOOR if name != "doorward"])
def test_the_package_holds_a_link_to_each_folder(folder: str) -> None:
    link = ROOT / "doorward" / folder
    assert link.is_symlink()
    assert link.resolve() == ROOT / folder


def test_every_file_says_in_its_first_line_what_it_is() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for folder in FLOOR
        for path in _files(folder)
        if not (ast.get_docstring(ast.parse(path.read_bytes())) or "").strip()
    ]
    assert silent == []
