"""Symlinks and hard links: writing to a file elsewhere by a name in the workspace, or having doorward do it.

The second half is the undo: what a command put under a protected name is removed by a process outside the
sandbox, so a link must never lead that process anywhere.
"""

CODE = """
victim = sys.argv[1]
os.symlink(victim, 'soft')
attempt('symlink', append, 'soft')
os.symlink(os.path.dirname(victim), 'folder')
attempt('folder', append, 'folder/' + os.path.basename(victim))
attempt('dots', append, '../' + os.path.basename(victim))
attempt('new file', append, 'folder/new')
def hard():
    os.link(victim, 'hard')
    return append('hard')
attempt('hard link', hard)
def followed():
    os.link('soft', 'hard too', follow_symlinks=True)
    return append('hard too')
attempt('hard link through a symlink', followed)
handle = os.open(victim, os.O_RDONLY)
attempt('descriptor', append, f'/proc/self/fd/{handle}')
attempt('rename over', lambda: os.rename('soft', victim))
attempt('remove', lambda: os.unlink(victim))
"""


def test_a_file_outside_by_a_name_inside(way):
    probe = way(CODE)
    victim = probe.sandbox.base / "victim"
    victim.write_text("mine")
    probe.sandbox.own(victim)
    inside = probe.inside(victim)
    assert len(inside) == 9
    assert None not in inside.values(), inside
    assert "written" not in inside.values(), inside
    assert victim.read_text() == "mine"
    assert not (probe.sandbox.base / "new").exists()
    probe.sandbox.run("rm -rf soft folder hard*")
    outside = probe.outside(victim)
    assert [outside[name] for name in ("symlink", "folder", "hard link", "descriptor")] == ["written"] * 4
    assert not victim.exists()


SWAP = """
import threading
victim = sys.argv[1]
os.makedirs('real/precious', exist_ok=True)
os.symlink(victim, 'link')
def swap():
    while True:
        for name in ('real', 'link'):
            try:
                os.rename(name, '.codex')
                os.rename('.codex', name)
            except OSError: pass
        try: os.makedirs('.codex/precious'); os.symlink(victim, '.codex/link')
        except OSError: pass
for _ in range(4): threading.Thread(target=swap, daemon=True).start()
threading.Event().wait(1.5)
"""


def test_the_undo_is_led_nowhere(way):
    """A protected name is a folder one moment and a link to somebody's folder the next."""
    probe = way(SWAP)
    victim = probe.sandbox.base / "victim"
    (victim / "precious").mkdir(parents=True)
    (victim / "precious/file").write_text("mine")
    probe.sandbox.own(victim / "precious/file")
    answer = probe.sandbox.run(probe.argv(victim))
    assert answer["exit_code"] == 0, answer
    assert (victim / "precious/file").read_text() == "mine"
    assert not (probe.sandbox.workspace / ".codex").is_symlink()
    assert not (probe.sandbox.workspace / ".codex").exists()
    # the same hand at work where nothing undoes: the name does lead to the victim
    (probe.sandbox.workspace / ".codex").symlink_to(victim)
    assert (probe.sandbox.workspace / ".codex/precious/file").read_text() == "mine"
