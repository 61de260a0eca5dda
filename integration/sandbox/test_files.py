"""What a command can read and write, in each mode and under each kind of rule."""

import os
import socket
import stat

import pytest


def test_the_workspace_is_writable_and_nothing_else(sandbox):
    answer = sandbox.run(
        "echo in > made && cat made; for d in /etc /usr /var /home /root /opt /run /sys /proc /proc/sys/kernel; do "
        'echo x 2>/dev/null > "$d/doorward-probe" && echo "WROTE $d"; done; '
        f'echo x 2>/dev/null > "{sandbox.base}/beside" && echo WROTE beside'
    )
    assert answer["stdout"] == "in\n", answer
    assert sandbox.tree() == {"made"}
    assert sandbox.path("made").stat().st_uid == (os.geteuid() if sandbox.uid is None else sandbox.uid)


def test_read_only_mode_writes_nowhere_but_in_private_places(sandbox):
    sandbox.write("file", "content")
    answer = sandbox.run(
        "cat file; echo x > file; echo x > new; echo tmp > /tmp/f && cat /tmp/f", policy={"mode": "read-only"}
    )
    assert answer["stdout"] == "contenttmp\n"
    assert sandbox.tree() == {"file"}
    assert sandbox.path("file").read_text() == "content"


def test_temporary_places_are_private(sandbox):
    """P-FS-10: nothing of the host's /tmp is seen, nothing of the run's is left."""
    name = f"/tmp/tested-host-{sandbox.marker}"
    listener = socket.socket(socket.AF_UNIX)
    try:
        with open(name, "w") as file:
            file.write("host")
        os.chmod(name, 0o666)
        listener.bind(name + ".sock")
        os.chmod(name + ".sock", 0o777)
        answer = sandbox.run(f"ls -A /tmp /dev/shm; stat -c %a /tmp /dev/shm; echo in > {name}.inside; ls /tmp")
        assert answer["stdout"].split() == ["/dev/shm:", "/tmp:", "1777", "1777", os.path.basename(name) + ".inside"]
        assert not os.path.exists(name + ".inside")
    finally:
        listener.close()
        for path in (name, name + ".sock"):
            os.unlink(path)


@pytest.mark.parametrize("preset", [{}, {"TMPDIR": "/no/such/place", "TMP": "/also/missing"}])
@pytest.mark.parametrize("mode", ["workspace-write", "read-only"])
def test_temporary_directory_variables_name_a_place_that_works(sandbox, preset, mode):
    """P-FS-09."""
    answer = sandbox.run(
        'd=$(mktemp -d) && echo x > "$d/f" && cat "$d/f" && echo "$TMPDIR" && test -d "$TMPDIR" && echo "${TMP-/tmp}"',
        env=preset,
        policy={"mode": mode},
    )
    assert answer["stdout"].split() == ["x", "/tmp", "/tmp"], answer


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
def test_here_documents_work(sandbox, shell):
    """P-FS-08."""
    if not os.path.exists(f"/usr/bin/{shell}"):
        pytest.skip(f"no {shell}")
    big = "y" * 100_000
    script = f"cat <<E\nhi\nE\nwc -c <<E\n{big}\nE\n" + ("cat <<< string\n" if shell != "dash" else "")
    sandbox.write("script", script)
    for env in ({}, {"TMPDIR": "/missing"}):
        answer = sandbox.run([shell, "script"], env=env)
        assert answer["stdout"].split()[:2] == ["hi", "100001"], answer
        assert answer["stderr"] == ""


def test_a_workspace_below_tmp_is_the_real_one(temporary_sandbox):
    sandbox = temporary_sandbox
    beside = sandbox.base / "beside"
    beside.write_text("secret")
    answer = sandbox.run(f'echo x > made; ls -A "{sandbox.base}"; cat "{beside}"; ls -A /tmp | wc -l')
    assert sandbox.tree() == {"made"}
    assert "secret" not in answer["stdout"]
    assert answer["stdout"].split() == ["work", "space", "1"]


def test_added_directories_are_writable_wherever_they_lie(sandbox):
    added = sandbox.base / "added"
    added.mkdir()
    shown = sandbox.base / "shown"
    shown.mkdir()
    (shown / "f").write_text("shown")
    sandbox.own(added)
    answer = sandbox.run(
        f'echo x > "{added}/made"; cat "{shown}/f"; echo y > "{shown}/g"', policy={"write": [str(added)]}
    )
    assert answer["stdout"] == "shown"
    assert (added / "made").read_text() == "x\n"
    assert not (shown / "g").exists()


def test_a_path_below_tmp_can_be_shown(sandbox):
    name = f"/tmp/tested-shown-{sandbox.marker}"
    os.mkdir(name, 0o755)
    try:
        with open(name + "/f", "w") as file:
            file.write("shown")
        answer = sandbox.run(f"cat {name}/f; echo x > {name}/g", policy={"read_only": [name]})
        assert answer["stdout"] == "shown"
        assert os.listdir(name) == ["f"]
    finally:
        os.unlink(name + "/f")
        os.rmdir(name)


def test_a_hidden_file_has_no_content_by_any_way(sandbox):
    """P-FS-03, P-FS-06."""
    sandbox.write(".env", "TOP-SECRET")
    sandbox.write("other", "fine")
    answer = sandbox.run(
        "cat .env; cp .env x && cat x; ln .env y && cat y; python3 -c 'print(open(\".env\").read())'; "
        "mv .env z; cat < .env; dd if=.env; chmod 644 .env; rm -f .env; stat -c '%F %s' .env; cat other",
        policy={"deny_read": [".env"]},
    )
    assert "TOP-SECRET" not in answer["stdout"] + answer["stderr"]
    assert answer["stdout"] == "regular empty file 0\nfine", answer
    assert sandbox.path(".env").read_text() == "TOP-SECRET"


def test_a_hidden_directory_is_empty_and_cannot_be_written(sandbox):
    """P-FS-02."""
    sandbox.write("secret/f", "TOP-SECRET")
    answer = sandbox.run(
        "ls -A secret; echo x > secret/g; echo $?; mkdir secret/d; rmdir secret; mv secret s; chmod 777 secret; "
        "stat -c %F secret",
        policy={"deny_read": ["secret"]},
    )
    assert answer["stdout"].split("\n")[-2] == "directory"
    assert answer["stdout"].split("\n")[0] != "0"
    assert "f" not in answer["stdout"].split()
    assert sandbox.tree() == {"secret", "secret/f"}
    assert sandbox.tree(sandbox.home / "cache" / "hidden-directory") == set()


def test_a_hidden_path_stays_hidden_when_its_parent_is_renamed(sandbox):
    sandbox.write("a/secret/f", "TOP-SECRET")
    answer = sandbox.run("mv a b && ls -A b/secret; cat b/secret/f; cat a/secret/f", policy={"deny_read": ["a/secret"]})
    assert "TOP-SECRET" not in answer["stdout"]


def test_patterns_hide_by_name_whatever_the_command_says(sandbox):
    """P-FS-17."""
    sandbox.write("a/my-secret.txt", "kkk-secret")
    sandbox.write("b.key", "kkk-secret")
    sandbox.write("open.txt", "kkk-open")
    answer = sandbox.run(
        "find . -exec grep -l kkk {} + ; cat a/s?cret.txt a/my-s?cret.txt; tar c . | grep -ac kkk-secret",
        policy={"deny_read": ["*secret*", "**/*.key"]},
    )
    assert "kkk-secret" not in answer["stdout"]
    assert answer["stdout"].split() == ["./open.txt", "0"]


def test_the_deepest_rule_decides_and_order_does_not(sandbox):
    sandbox.write("data/private/f", "private")
    sandbox.write("data/private/public/g", "public")
    sandbox.write("data/fixed/h", "fixed")
    rules = {
        "deny_read": ["data/private"],
        "write": ["data/private/public"],
        "read_only": ["data/fixed"],
    }
    script = (
        "cat data/private/public/g; cat data/private/f; echo x > data/private/public/new; echo x > data/private/new; "
        "echo x > data/fixed/h; cat data/fixed/h; ls -A data/private; echo x > data/new"
    )
    answer = sandbox.run(script, policy=rules)
    assert answer["stdout"] == "publicfixedpublic\n", answer
    assert sandbox.path("data/private/public/new").exists()
    assert sandbox.path("data/new").exists()
    assert sorted(os.listdir(sandbox.path("data/private"))) == ["f", "public"]


def test_a_read_only_path_cannot_be_replaced_by_renaming_above_it(sandbox):
    sandbox.write("a/b/Makefile", "mine")
    sandbox.run(
        "mv a x; mv a/b a/x; mkdir -p a/b; echo theirs > a/b/Makefile; mv a/b/Makefile m; ln -sf /tmp/z a/b/Makefile",
        policy={"read_only": ["a/b/Makefile"]},
    )
    assert sandbox.path("a/b/Makefile").read_text() == "mine"


@pytest.mark.parametrize("entry", ["~/.aws-absent", "./a/b/c", "file/x"])
def test_hiding_what_is_not_there_starts_and_leaves_nothing(sandbox, entry):
    """P-FS-04."""
    sandbox.write("file", "")
    answer = sandbox.run(
        "echo started; mkdir -p a/b && echo x > a/b/c; sleep 0.2; ls a/b", policy={"deny_read": [entry]}
    )
    assert answer["stdout"].startswith("started\n"), answer
    assert not sandbox.path("a/b/c").exists() or entry != "./a/b/c"
    if entry == "./a/b/c":
        assert [undone[:2] for undone in answer["undone"]] == [[str(sandbox.path("a/b/c")), "removed"]]


@pytest.mark.parametrize("entry", ["/tmp/../etc", "/", "/usr/", "//etc", "/proc/sys", "/dev/shm"])
def test_system_folders_are_never_made_writable(sandbox, entry):
    """P-FS-15: resolved once, and refused by name where it lands."""
    answer = sandbox.run("true", policy={"write": [entry]})
    assert answer["entry"] == entry


def test_a_writable_entry_through_a_link_in_the_workspace_is_refused(sandbox):
    """P-FS-15: whoever ran there last decides where such a link points."""
    outside = sandbox.base / "outside"
    outside.mkdir()
    sandbox.path("link").symlink_to(outside)
    answer = sandbox.run("true", policy={"write": ["./link"]})
    assert str(outside) in answer["unenforceable"]
    answer = sandbox.run("true", policy={"write": ["./link/../.."]})
    assert "unenforceable" in answer


def test_doorwards_own_folder_is_never_writable(sandbox):
    home = sandbox.path("doorward-home")
    home.mkdir(mode=0o700)
    sandbox.own(home)
    policy = {"home": str(home), "cache_dir": str(home / "cache")}
    answer = sandbox.run("echo x > doorward-home/x; mv doorward-home y; echo done", policy=policy)
    assert answer["stdout"] == "done\n"
    assert not (home / "x").exists()
    answer = sandbox.run("true", policy={**policy, "write": [str(home)]})
    assert answer["entry"] == str(home)


def test_the_resolvers_file_and_merged_directories_are_there(sandbox):
    """P-NS-06."""
    answer = sandbox.run("/bin/sh -c 'cat /etc/resolv.conf > /dev/null && echo resolver; readlink /bin; ls -d /usr'")
    assert "resolver" in answer["stdout"], answer
    if os.path.islink("/bin"):
        assert os.readlink("/bin") in answer["stdout"]


def test_semaphores_pools_and_shared_memory_work(sandbox):
    """P-FS-16."""
    sandbox.write(
        "pool.py",
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import Semaphore, shared_memory, Manager\n"
        "if __name__ == '__main__':\n"
        "    Semaphore(1)\n"
        "    with ProcessPoolExecutor(2) as pool: print(sum(pool.map(abs, range(10))))\n"
        "    memory = shared_memory.SharedMemory(create=True, size=64 << 20); memory.buf[-1] = 7\n"
        "    print(memory.buf[-1]); memory.close(); memory.unlink()\n"
        "    with Manager() as manager: print(manager.list([1, 2])[1])\n",
    )
    answer = sandbox.run(["/usr/bin/python3", "pool.py"])
    assert answer["stdout"].split() == ["45", "7", "2"], answer


def test_shared_memory_of_the_host_is_not_seen(caller_sandbox):
    """P-FS-16."""
    name = f"/dev/shm/tested-{caller_sandbox.marker}"
    with open(name, "w") as file:
        file.write("host")
    try:
        answer = caller_sandbox.run(f"cat {name}; ls -A /dev/shm")
        assert answer["stdout"] == ""
    finally:
        os.unlink(name)


def test_device_files_are_a_fresh_few(sandbox):
    answer = sandbox.run("ls /dev; echo x > /dev/null; head -c 4 /dev/urandom | wc -c; mknod /tmp/d c 1 3; echo $?")
    names = set(answer["stdout"].split())
    assert {"null", "zero", "full", "random", "urandom", "tty", "fd", "shm", "pts"} <= names
    assert not names & {"sda", "vda", "kmsg", "mem", "kvm", "fuse"}
    assert answer["stdout"].split()[-1] != "0"


def test_three_thousand_hidden_files_start_and_are_hidden(sandbox):
    """P-PF-02: bubblewrap takes 9000 arguments, its own included."""
    directory = sandbox.mkdir("many")
    for number in range(3100):
        (directory / f"{number}.key").write_text("TOP-SECRET")
    sandbox.write("many/readable", "open")
    answer = sandbox.run(
        "cat many/*.key 2>/dev/null | wc -c; cat many/readable; echo x > many/0.key; chmod 644 many/1.key; "
        "rm -f many/2.key; mv many/3.key many/z; stat -c '%a %s' many/3099.key",
        policy={"deny_read": ["**/*.key"]},
        alone=True,
    )
    assert answer["stdout"].split() == ["0", "open0", "0"], answer
    assert all((directory / f"{number}.key").read_text() == "TOP-SECRET" for number in range(3100))
    mask = sandbox.home / "cache" / "hidden-file"
    assert (stat.S_IMODE(mask.stat().st_mode), mask.stat().st_size) == (0, 0)


def test_hiding_a_large_directory_costs_one_mount(sandbox):
    """P-PF-01."""
    directory = sandbox.mkdir("data")
    for number in range(20_000):
        os.close(os.open(directory / f"{number}.key", os.O_WRONLY | os.O_CREAT, 0o644))
    # neighbours' sockets are covered too, each by a mount
    count = f"grep -cF {sandbox.base.name}/work /proc/self/mountinfo"
    answer = sandbox.run(f"ls data | wc -l; {count}", policy={"deny_read": ["data/**", "**/*.key"]})
    listed, mounts = answer["stdout"].split()
    assert listed == "0"
    assert 0 < int(mounts) < 50


def test_what_matches_a_pattern_later_is_covered_at_the_next_run(sandbox):
    """P-PF-05: a tree is remembered, and what changed since is seen all the same."""
    sandbox.write("old/deep/a.key", "TOP-SECRET")
    policy = {"deny_read": ["**/*.key"]}
    show = "cat $(find . -name '*.key') < /dev/null | wc -c"
    # the second look is at a tree whose change is old enough to be remembered
    assert sandbox.run(f"{show}; sleep 2.1", policy=policy)["stdout"].split() == ["0"]
    assert sandbox.run(show, policy=policy)["stdout"].split() == ["0"]
    (remembered,) = (sandbox.home / "cache").glob("matches-*")
    before = remembered.stat().st_mtime_ns
    assert sandbox.run(show, policy=policy)["stdout"].split() == ["0"]
    assert remembered.stat().st_mtime_ns == before
    sandbox.write("old/deep/b.key", "TOP-SECRET")
    sandbox.write("new/c.key", "TOP-SECRET")
    os.rename(sandbox.path("old/deep"), sandbox.path("old/moved"))
    answer = sandbox.run(f"{show}; cat old/moved/*.key new/c.key", policy=policy)
    assert answer["stdout"].split() == ["0"], answer
    # and what a command itself makes, or moves away
    sandbox.run("mkdir in; echo mine > in/d.key; mv old/moved in; echo x > plain", policy=policy)
    answer = sandbox.run("cat in/d.key in/moved/b.key plain", policy=policy)
    assert answer["stdout"] == "x\n", answer


def test_a_pattern_hides_below_a_folder_that_another_pattern_names(sandbox):
    sandbox.write("gen-a/x.key", "TOP-SECRET")
    sandbox.write("gen-a/Makefile", "mine")
    answer = sandbox.run(
        "cat gen-a/x.key; echo theirs > gen-a/Makefile; mv gen-a away; mkdir gen-a; echo theirs > gen-a/Makefile",
        policy={"deny_read": ["**/*.key"], "read_only": ["gen-*"]},
    )
    assert "TOP-SECRET" not in answer["stdout"]
    assert sandbox.path("gen-a/Makefile").read_text() == "mine"


def test_a_file_a_pattern_holds_cannot_be_replaced_by_moving_what_is_above_it(sandbox):
    sandbox.write("a/b/Makefile", "mine")
    sandbox.run(
        "mv a x; mv a/b a/x; mkdir -p a/b; echo theirs > a/b/Makefile; mv a/b/Makefile m",
        policy={"read_only": ["**/Makefile"]},
    )
    assert sandbox.path("a/b/Makefile").read_text() == "mine"


def test_a_large_policy_and_a_large_command_start_together(sandbox):
    """P-PF-03."""
    for number in range(2000):
        sandbox.write(f"dir{number}/x", "")
    answer = sandbox.run(
        ["sh", "-c", "echo ${#0} $(cat dir1999/x 2>&1 | wc -c)", "y" * 100_000],
        policy={"deny_read": [f"dir{number}/x" for number in range(2000)]},
        alone=True,
    )
    assert answer["stdout"].split()[0] == "100000", answer


def test_a_file_given_as_standard_input_cannot_be_written_through_its_descriptor(sandbox):
    """/proc/self/fd/0 opens it anew through the mount it came by, which is the host's."""
    given = sandbox.base / "given"
    given.write_text("one\ntwo\n")
    sandbox.own(given)
    answer = sandbox.run(
        "read line; echo $line; cat; echo theirs > /proc/self/fd/0; echo theirs > /dev/stdin; "
        f"echo theirs > '{given}'; stat -L -c %F /dev/stdin",
        stdin_file=str(given),
    )
    assert answer["stdout"] == "one\ntwo\nregular file\n", answer
    assert given.read_text() == "one\ntwo\n"


def test_a_file_of_the_workspace_as_standard_input_stays_writable(sandbox):
    given = sandbox.write("given", "mine")
    answer = sandbox.run("cat; echo more >> given; cat given", stdin_file=str(given))
    assert answer["stdout"] == "minemine" + "more\n"


def test_a_directory_as_standard_input_is_refused(sandbox):
    answer = sandbox.run("true", stdin_file=str(sandbox.base))
    assert (answer["exit_code"], answer["failure"][0]) == (126, "malformed")
