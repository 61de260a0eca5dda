"""What is protected is a path: moving a folder above it aside and another one into its place would replace it."""

import json

import pytest

CODE = """
EXCHANGE = 2
def exchange(one, other): return call('renameat2', -100, one.encode(), -100, other.encode(), EXCHANGE)
def replace(path, with_):
    attempt('away ' + path, os.rename, path, path + '.away')
    attempt('exchange ' + path, exchange, path, with_)
    attempt('over ' + path, os.rename, with_, path)
os.makedirs('evil/b/hooks', exist_ok=True)
for name in ('evil/config', 'evil/b/config', 'evil/Makefile', 'evil/b/Makefile'):
    with open(name, 'w') as file: file.write('theirs')
for path, with_ in json.loads(sys.argv[1]): replace(path, with_)
"""
MOVES = [
    (".git", "evil"),
    (".git/hooks", "evil/b/hooks"),
    (".git/config", "evil/config"),
    ("a", "evil"),
    ("a/b", "evil/b"),
    ("a/b/Makefile", "evil/b/Makefile"),
    (".config", "evil"),
    (".config/git", "evil/b"),
]


@pytest.fixture
def project(sandbox):
    """A repository, and a file that a rule holds two folders deep."""
    sandbox.git("init", "-q")
    for name in ("a/b/Makefile", ".config/git/config", ".git/hooks/kept"):
        sandbox.write(name, "mine")
    return sandbox


def content(sandbox):
    return {
        name: sandbox.path(name).read_text() if sandbox.path(name).exists() else None
        for name in ("a/b/Makefile", ".config/git/config", ".git/hooks/kept", ".git/config")
    }


def test_folders_above_what_is_held(project, way):
    probe = way(CODE)
    before = content(project)
    inside = probe.inside(json.dumps(MOVES), policy={"read_only": ["a/b/Makefile"]})
    assert len(inside) == 3 * len(MOVES)
    assert None not in inside.values(), inside
    assert 0 not in inside.values(), inside
    assert content(project) == before
    outside = probe.outside(json.dumps(MOVES))
    assert outside["exchange .git/hooks"] is None or outside["away .git"] is None
    assert content(project) != before


def test_the_workspace_itself(project, way):
    probe = way("attempt('rename', os.rename, sys.argv[1], sys.argv[1] + '.away')")
    assert isinstance(probe.inside(project.workspace)["rename"], str)
    assert project.workspace.exists()
    scratch = project.base / "scratch"
    scratch.mkdir()
    project.own(scratch)
    assert probe.outside(scratch)["rename"] is None
