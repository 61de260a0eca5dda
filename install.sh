#!/bin/sh
# Sets doorward up on Debian or Ubuntu, in .venv beside this file: bubblewrap from the system, everything else
# from the Python index pip is configured for.
#
#   ./install.sh          install
#   ./install.sh --try    install, then run a real download through doorward, refused and allowed
#   ./install.sh --dev    install what the tests need too
set -eu
cd "$(dirname "$0")"
what="${1:-}"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# The first interpreter that is new enough; PYTHON names another.
python="${PYTHON:-}"
if [ -z "$python" ]; then
    for candidate in python3 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
            python="$candidate"
            break
        fi
    done
fi
[ -n "$python" ] || { echo "doorward needs Python 3.11 or later; none was found (name one with PYTHON=)" >&2; exit 1; }

missing=""
command -v bwrap >/dev/null || missing="$missing bubblewrap"
"$python" -c 'import ctypes.util, sys; sys.exit(not ctypes.util.find_library("seccomp"))' || missing="$missing libseccomp2"
"$python" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
if [ "$what" = --dev ]; then
    for tool in curl git make openssl tinyscheme tmux vim; do command -v "$tool" >/dev/null || missing="$missing $tool"; done
    command -v ps >/dev/null || missing="$missing procps"
    command -v cc >/dev/null || missing="$missing gcc libc6-dev"
    command -v npm >/dev/null || missing="$missing nodejs npm"
    command -v setcap >/dev/null || [ -x /usr/sbin/setcap ] || missing="$missing libcap2-bin"
    if ! command -v psql >/dev/null || ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then
        missing="$missing postgresql"
        # the tests start their own; the package would start one for good
        as_root sh -c 'mkdir -p /etc/postgresql-common/createcluster.d &&
            echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/tests-start-their-own.conf'
    fi
    command -v ip >/dev/null || missing="$missing iproute2"
    command -v redis-server >/dev/null || missing="$missing redis-server redis-tools"
    [ -x /usr/sbin/sshd ] && command -v ssh >/dev/null || missing="$missing openssh-server openssh-client"
fi
extras=""
if [ -n "$missing" ]; then
    if command -v apt-get >/dev/null && as_root apt-get update -qq &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null; then
        echo "installed:$missing"
    else
        echo "could not install with apt-get:$missing; taking the bubblewrap that the Python index bundles" >&2
        extras="bundled"
    fi
fi
# for the page that `doorward export` writes, and for completion; without what a desktop would want besides
lean=""
if [ "$what" = --dev ]; then
    command -v chromium >/dev/null || command -v google-chrome >/dev/null || lean="chromium"
    for shell in fish zsh; do command -v "$shell" >/dev/null || lean="$lean $shell"; done
fi
if [ -n "$lean" ]; then
    if command -v apt-get >/dev/null && as_root apt-get update -qq &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $lean >/dev/null; then
        echo "installed: $lean"
    else
        echo "could not install $lean; the tests of exported pages and of completion need them" >&2
    fi
fi

[ -x .venv/bin/python ] || "$python" -m venv .venv
[ "$what" = --dev ] && extras="${extras:+$extras,}dev"
# the `doorward` script that a current pip writes starts 4 ms sooner than the one of the pip in a new environment
.venv/bin/pip install --quiet --upgrade pip || echo "pip could not be brought up to date; going on with it as it is" >&2
.venv/bin/pip install --quiet ".${extras:+[$extras]}"
# what came with a new environment and nothing of doorward uses: its .pth file costs every Python start 1 ms
[ "$what" = --dev ] || .venv/bin/pip uninstall --quiet --yes setuptools 2>/dev/null || true
echo "doorward is installed: $(pwd)/.venv/bin/doorward"

if [ "$what" = --try ]; then
    PATH="$(pwd)/.venv/bin:$PATH"
    download="pip download --disable-pip-version-check --retries 1 --no-deps --no-cache-dir --dest .venv/try publicsuffixlist"
    rm -rf .venv/try
    printf '\n$ doorward run -- pip download publicsuffixlist                  # no rule: refused\n'
    # shellcheck disable=SC2086  # the words of $download are words
    doorward run -- $download || echo "(exit status $?, which is pip's own)"
    printf '\n$ doorward run --allow @pip -- pip download publicsuffixlist     # the index pip is configured for: allowed\n'
    # shellcheck disable=SC2086
    doorward run --allow @pip -- $download
    ls .venv/try
fi
