"""/proc/PID/root and /proc/PID/cwd lead to where another process stands."""

CODE = """
secret, victim = sys.argv[1:3]
for process in sys.argv[3:] or [name for name in os.listdir('/proc') if name.isdigit()] + ['self', 'thread-self']:
    for where in (f'/proc/{process}/root', f'/proc/{process}/cwd', f'/proc/{process}/cwd/../../../../..'):
        attempt('read ' + where, read, where + secret)
        attempt('write ' + where, append, where + victim)
"""


def test_the_root_of_another_process(way, host_folder):
    (host_folder / "secret").write_text("TOP-SECRET")
    (host_folder / "secret").chmod(0o644)
    probe = way(CODE)
    victim = probe.sandbox.base / "victim"
    victim.write_text("mine")
    probe.sandbox.own(victim)
    inside = probe.inside(host_folder / "secret", victim)
    assert len(inside) > 10
    assert not {"TOP-SECRET", "written"} & set(inside.values()), inside
    assert victim.read_text() == "mine"
    outside = probe.outside(host_folder / "secret", victim, "self")
    assert outside["read /proc/self/root"] == "TOP-SECRET"
    assert outside["write /proc/self/root"] == "written"
    assert victim.read_text() == "mine" + "theirs" * list(outside.values()).count("written")
