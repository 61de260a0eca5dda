"""What the sandbox benchmark works on: small programs and trees that it makes itself, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from timing import DidNotWork

MASKS = 2900
"""Bare bubblewrap takes 9,000 arguments, three for each mount; doorward has no such bound."""

_CALLS = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
    long rounds = atol(words[1]), way = atol(words[2]);
    struct timespec from, to;
    struct stat found;
    int size;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long n = 0; n < rounds; n++) {
        if (way == 0) syscall(SYS_getppid);
        if (way == 1) stat("/", &found);
        if (way == 2) ioctl(0, FIONREAD, &size);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%.3f\n", ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / rounds);
    return 0;
}
"""
# BPF_RET | BPF_K with SECCOMP_RET_ALLOW (<linux/seccomp.h>), one struct sock_filter
ALLOW_EVERYTHING = (6).to_bytes(2, sys.byteorder) + bytes(2) + (0x7FFF0000).to_bytes(4, sys.byteorder)
CALLS = ("getppid", "stat", "ioctl")
"""The calls of the loop: one the filter lets pass by its number, one that does some work, one whose arguments the
filter compares."""


def compiler() -> str:
    """The C compiler. Raises DidNotWork."""
    found = shutil.which("cc")
    if found is None:
        raise DidNotWork("no C compiler (cc)")
    return found


def loop_of_calls(folder: str) -> str:
    """Compiles a program that makes one system call many times and prints what one took in ns."""
    source, program = os.path.join(folder, "calls.c"), os.path.join(folder, "calls")
    with open(source, "w", encoding="utf-8") as file:
        file.write(_CALLS)
    _run([compiler(), "-O2", "-o", program, source], folder)
    return program


def c_project(folder: str, files: int = 24) -> None:
    """A C project with a Makefile: `files` sources, a library of them and a program."""
    os.makedirs(os.path.join(folder, "src"))
    for number in range(files):
        functions = "\n".join(
            f'int part{number}_{n}(const char *text) {{ char b[64]; snprintf(b, sizeof b, "%s{n}", text);'
            " return (int)strlen(b); }"
            for n in range(40)
        )
        with open(os.path.join(folder, "src", f"part{number}.c"), "w", encoding="utf-8") as file:
            file.write(f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n{functions}\n")
    with open(os.path.join(folder, "src", "main.c"), "w", encoding="utf-8") as file:
        file.write('int part0_0(const char *text);\nint main(void) { return part0_0("x") != 2; }\n')
    with open(os.path.join(folder, "Makefile"), "w", encoding="utf-8") as file:
        file.write(
            "OBJECTS = $(patsubst src/%.c,build/%.o,$(wildcard src/*.c))\n"
            "build/program: $(OBJECTS)\n\t$(CC) -o $@ $^\n"
            "build/%.o: src/%.c | build\n\t$(CC) -O1 -c -o $@ $<\n"
            "build:\n\tmkdir -p $@\n"
        )


def large_repository(folder: str, files: int) -> None:
    """A git repository with `files` files in folders of twenty, all committed."""
    tree(folder, files)
    env = {f"GIT_{who}_{what}": "bench@test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "all")):
        _run(["git", "-c", "gc.auto=0", *arguments], folder, env)


def tree(folder: str, files: int) -> None:
    """`files` files in folders of twenty, a hundred folders in one; every thousandth is called *.key."""
    for start in range(0, files, 20):
        inner = os.path.join(folder, f"d{start // 2000}", f"e{start // 20}")
        os.makedirs(inner)
        for number in range(start, start + 20):
            name = f"n{number}.key" if number % 1000 == 0 else f"n{number}.py"
            os.close(os.open(os.path.join(inner, name), os.O_WRONLY | os.O_CREAT, 0o644))


def many_secrets(folder: str, count: int = MASKS) -> None:
    """A folder with `count` files that a rule hides one by one, and one that it does not."""
    os.makedirs(folder)
    for name in ("open", *(f"{number}.key" for number in range(count))):
        os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT, 0o644))


def _run(argv: list[str], cwd: str, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(argv, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, check=False)
    if done.returncode:
        raise DidNotWork(f"{argv[0]}: {done.stderr.decode(errors='replace').strip()}")
