#!/bin/sh
# Runs everything a change must pass: linter, types, all tests, integration included. Installs what is missing first.
set -eu
cd "$(dirname "$0")"
./install.sh --dev
.venv/bin/ruff check .
.venv/bin/mypy
# -P: the installed package is tested, not the folder we stand in
.venv/bin/python -P -m pytest "$@"
