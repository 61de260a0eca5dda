#!/bin/sh
# Runs everything a change must pass: linter, types, all tests, integration included. Installs what is missing first.
# Its words are pytest's: ./test.sh tests/proxy -q, ./test.sh -n 0 --pdb …
set -eu
cd "$(dirname "$0")"
./install.sh --dev
if [ "${TESTS_ONLY:-}" != true ]; then
    .venv/bin/ruff check .
    .venv/bin/mypy
fi
# One more than there are processors: most tests wait for a process half of the time. Each takes what comes next, so that
# no order holds; a test that cannot bear another beside it has a mistake in it.
workers=$(($(getconf _NPROCESSORS_ONLN) + 1))
[ "$workers" -le 8 ] || workers=8
# -P: the installed package is tested, not the folder we stand in
.venv/bin/python -P -m pytest -n "$workers" --dist worksteal "$@"
