"""A descriptor the caller forgot to close: a file that has no name any more, and a folder to start from."""

import os

CODE = """
for number in range(3, 300):
    for where in (f'/proc/self/fd/{number}', f'/proc/1/fd/{number}', f'/proc/{os.getppid()}/fd/{number}'):
        try:
            if os.stat(where).st_ino == int(sys.argv[1]): said['opened ' + where] = read(where)
        except OSError: pass
    try: said['folder'] = read(os.open('secret', os.O_RDONLY, dir_fd=number))
    except OSError: pass
"""


def test_descriptors_of_the_caller(way, host_folder):
    (host_folder / "secret").write_text("TOP-SECRET")
    (host_folder / "secret").chmod(0o644)
    nameless = host_folder / "nameless"
    nameless.write_text("TOP-SECRET")
    nameless.chmod(0o666)
    file, folder = os.open(nameless, os.O_RDWR), os.open(host_folder, os.O_RDONLY)
    nameless.unlink()
    try:
        number = os.fstat(file).st_ino
        probe = way(CODE)
        seen = probe.outside(number, pass_fds=(file, folder))
        assert seen["folder"] == "TOP-SECRET"
        assert "TOP-SECRET" in [text for name, text in seen.items() if name.startswith("opened")]
        assert probe.inside(number, pass_fds=(file, folder)) == {}
        assert probe.inside(number, pass_fds=(file, folder), bubblewrap_first=True) == {}
    finally:
        os.close(file)
        os.close(folder)
