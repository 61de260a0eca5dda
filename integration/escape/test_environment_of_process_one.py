"""Secrets in the environment or the command line of a process above the command."""

CODE = """
seen = b''
for process in [sys.argv[1]] if len(sys.argv) > 1 else [name for name in os.listdir('/proc') if name.isdigit()]:
    process = str(os.getppid()) if process == 'parent' else process
    for name in ('environ', 'cmdline'):
        try:
            with open(f'/proc/{process}/{name}', 'rb') as file: seen += file.read()
        except OSError: pass
said['seen'] = b'TOP-SECRET' in seen
said['bytes'] = len(seen)
"""


def test_the_environment_of_a_process_above(way):
    probe = way(CODE)
    # a shell with the secret in its environment starts the probe without it
    outside = probe.sandbox.outside(
        ["sh", "-c", 'env -u API_TOKEN "$@"; :', "sh", *probe.argv("parent")], env={"API_TOKEN": "TOP-SECRET"}
    )
    assert '"seen": true' in outside.stdout, outside
    for first in (False, True):
        inside = probe.inside(outer_env={"API_TOKEN": "TOP-SECRET"}, bubblewrap_first=first)
        assert inside["seen"] is False
        assert inside["bytes"] > 0
