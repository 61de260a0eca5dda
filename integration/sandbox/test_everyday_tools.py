"""What people run in a workspace all day works inside and does not notice: builds, test runners, scripts, git."""

import functools
import os
import subprocess
import sys

import needed
import pytest

need = functools.partial(needed.need, path="/usr/local/bin:/usr/bin:/bin")
IDENTITY = {f"GIT_{who}_{what}": "t@t.test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def test_git_from_clone_to_worktree(sandbox):
    need("git")
    source = sandbox.base / "source"
    source.mkdir()
    sandbox.own(source)
    sandbox.git("init", "-q", cwd=source)
    (source / "f").write_text("1\n")
    sandbox.own(source / "f")
    sandbox.git("add", "f", cwd=source)
    sandbox.git("commit", "-qm", "one", cwd=source)
    answer = sandbox.run(
        f"""
        set -e
        git clone -q '{source}' copy; cd copy
        git checkout -q -b topic; echo 2 > g; git add g; git commit -qm two
        git checkout -q main; echo 3 > h; git add h; git commit -qm three
        git rebase -q main topic
        git rebase -q -i HEAD~1; git commit -q --amend -m 'two again'
        git worktree add -q ../tree main; cd ../tree; echo 4 > i; git add i; git commit -qm four; cd ../copy
        git worktree list | wc -l; git worktree remove ../tree; git log --oneline topic | wc -l
        git stash -q; git status --porcelain; git fsck 2> /dev/null | wc -l
        """,
        env={**IDENTITY, "GIT_SEQUENCE_EDITOR": "true"},
    )
    assert answer["stdout"].split() == ["2", "3", "0"], answer
    assert answer["exit_code"] == 0, answer
    assert answer["undone"] == []


def test_a_c_build_by_make_in_parallel(sandbox):
    need("make", "cc")
    for number in range(6):
        sandbox.write(f"src/part{number}.c", f"int part{number}(void) {{ return {number}; }}\n")
    calls = " + ".join(f"part{number}()" for number in range(6))
    declared = "".join(f"int part{number}(void);\n" for number in range(6))
    sandbox.write(
        "src/main.c", f'#include <stdio.h>\n{declared}int main(void) {{ printf("%d\\n", {calls}); return 0; }}\n'
    )
    sandbox.write(
        "Makefile",
        "CFLAGS = -O1 -g -pipe\n"
        "OBJECTS = $(patsubst src/%.c,build/%.o,$(wildcard src/*.c))\n"
        "all: build/program\n\t./build/program\n"
        "build/program: build/libparts.a build/main.o\n\t$(CC) -o $@ build/main.o -Lbuild -lparts\n"
        "build/libparts.a: $(filter-out build/main.o,$(OBJECTS))\n\tar rcs $@ $^\n"
        "build/%.o: src/%.c | build\n\t$(CC) $(CFLAGS) -c -o $@ $<\n"
        "build:\n\tmkdir build\n"
        "clean:\n\trm -rf build\n",
    )
    answer = sandbox.run("make -s -j2 && make -s -j2 clean && make -s && test -x build/program")
    assert (answer["exit_code"], answer["stdout"]) == (0, "15\n15\n"), answer


def python(sandbox, *arguments, **more):
    """Runs the test's own Python inside, with its packages shown wherever they lie."""
    version = [sandbox.python, "-c", "import sys; print(*sys.version_info[:2])"]
    found = subprocess.run(version, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    if found != [str(part) for part in sys.version_info[:2]]:
        pytest.skip("another user cannot read this interpreter, and the one it can read takes no packages of this one")
    site = [path for path in sys.path if path.endswith("site-packages")]
    env = {"PYTHONPATH": os.pathsep.join(site), "PYTHONDONTWRITEBYTECODE": "1", **more.pop("env", {})}
    shown = [path for path in (sys.prefix, sys.base_prefix, *site) if os.path.isdir(path)]
    return sandbox.run([sandbox.python, *arguments], env=env, policy={"read_only": shown}, **more)


def test_pytest_in_two_processes_with_pools_of_its_own(sandbox):
    """P-FS-16: execnet's workers, and inside each multiprocessing's semaphores, queues and shared memory."""
    sandbox.write(
        "test_pools.py",
        "import multiprocessing as mp, os, pytest, tempfile\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import shared_memory\n"
        "@pytest.mark.parametrize('n', range(4))\n"
        "@pytest.mark.parametrize('method', ['fork', 'spawn', 'forkserver'])\n"
        "def test_pool(n, method):\n"
        "    with ProcessPoolExecutor(2, mp_context=mp.get_context(method)) as pool:\n"
        "        assert sum(pool.map(abs, range(-n, 0))) == n * (n + 1) // 2\n"
        "def test_shared(tmp_path):\n"
        "    memory = shared_memory.SharedMemory(create=True, size=1 << 20)\n"
        "    memory.buf[0] = 7; memory.close(); memory.unlink()\n"
        "    with mp.Manager() as manager, tempfile.TemporaryDirectory() as there:\n"
        "        assert manager.dict(a=1)['a'] == 1 and os.path.isdir(there)\n"
        "    (tmp_path / 'f').write_text('x')\n"
        "def test_worker(worker_id):\n"
        "    assert worker_id.startswith('gw')\n",
    )
    answer = python(sandbox, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "test_pools.py")
    assert answer.get("exit_code") == 0, answer
    assert "14 passed" in answer["stdout"], answer


def test_npm_scripts(caller_sandbox):
    need("node", "npm")
    sandbox = caller_sandbox
    sandbox.write(
        "package.json",
        '{"name": "x", "version": "1.0.0", "scripts": {"prebuild": "echo before", '
        '"build": "node build.js", "test": "node --test"}}',
    )
    sandbox.write(
        "build.js",
        "const {Worker, isMainThread, parentPort} = require('worker_threads');\n"
        "const {execFileSync, fork} = require('child_process');\n"
        "if (process.argv[2]) { process.send('child'); process.exit(0); }\n"
        "if (isMainThread) {\n"
        "  require('fs').mkdirSync('dist', {recursive: true});\n"
        "  require('fs').writeFileSync('dist/out', execFileSync('echo', ['written']));\n"
        "  new Worker(__filename).on('message', m => console.log(m));\n"
        "  fork(__filename, ['child']).on('message', m => console.log(m));\n"
        "} else parentPort.postMessage('thread');\n",
    )
    sandbox.write(
        "some.test.js",
        "require('node:test').test('a', async () => {\n"
        "  const server = require('net').createServer().listen(0, '127.0.0.1');\n"
        "  await new Promise(done => server.on('listening', done)); server.close();\n"
        "});\n",
    )
    answer = sandbox.run("npm run --silent build && npm test --silent > out; tail -c 2000 out")
    assert answer["exit_code"] == 0, answer
    assert set(answer["stdout"].split()[:3]) == {"before", "thread", "child"}, answer
    assert "# pass 1" in answer["stdout"] or "ℹ pass 1" in answer["stdout"], answer
    assert sandbox.path("dist/out").read_text() == "written\n"


def test_a_virtual_environment_is_made_and_used(sandbox):
    answer = sandbox.run(
        "python3 -m venv --without-pip env && . env/bin/activate && python -c 'import sys; print(sys.prefix)'"
    )
    assert answer["stdout"].strip() == str(sandbox.path("env")), answer


def test_tools_that_watch_lock_and_map_files(sandbox):
    """inotify, file locks, memory maps, sparse files and clones of files: what editors and build servers use."""
    code = (
        "import ctypes, fcntl, mmap, os\n"
        "libc = ctypes.CDLL(None)\n"
        "watch = libc.inotify_init1(0); assert libc.inotify_add_watch(watch, b'.', 0x100) > 0\n"
        "with open('f', 'wb+') as file:\n"
        "    fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "    file.truncate(1 << 20)\n"
        "    with mmap.mmap(file.fileno(), 0) as view: view[5:8] = b'abc'; view.flush()\n"
        "    os.posix_fallocate(file.fileno(), 0, 1 << 20)\n"
        "    os.copy_file_range(file.fileno(), file.fileno(), 8, 5, 100)\n"
        "assert len(os.read(watch, 4096)) >= 16\n"
        "os.mkfifo('p'); os.symlink('f', 'l'); os.link('f', 'h'); os.setxattr('f', 'user.x', b'y')\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); os.nice(1); print('all')\n"
    )
    answer = sandbox.run(["/usr/bin/python3", "-c", code])
    assert answer["stdout"] == "all\n", answer
