"""One step of a CI job behind doorward: what `action.yml` runs. Reads the inputs from DOORWARD_STEP_* variables.

As the runner's user where user namespaces may be made; where they may not, and sudo asks for no password, through
`sudo … doorward run --user`. Weaker than asked for is never silent: without a sandbox the step fails with status 125.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from doorward.errors import UsageError
from doorward.summary import printable

_INPUT: Final = "DOORWARD_STEP_"
_MODES: Final = ("enforce", "observe")
_SWITCH: Final = {"true": True, "false": False, "": False}
# A step writes its outputs. What it wrote into GITHUB_ENV or GITHUB_PATH would run unconfined in the next step.
_WRITABLE: Final = ("GITHUB_OUTPUT",)


def main() -> int:
    """Run the step. Returns the script's own status, or 121, 125, 2 as `doorward run` does."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(_INPUT)}
    env.setdefault("DOORWARD_HOME", os.path.join(env.get("RUNNER_TEMP") or tempfile.gettempdir(), "doorward"))
    session = f"step-{uuid.uuid4()}"
    try:
        words = run_words(os.environ, env, session)
        summarize = _switch(os.environ, "SUMMARY")
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    doorward = (sys.executable, "-P", "-m", "doorward")
    prefix, user = _privilege(doorward, env)
    done = subprocess.run([*prefix, *doorward, "run", *user, *words], env=env, check=False)
    _report((*prefix, *doorward), session, env, summarize=summarize)
    return done.returncode


def run_words(inputs: Mapping[str, str], env: Mapping[str, str], session: str) -> list[str]:
    """The words after `doorward run` (and after `--user NAME`). Raises UsageError for an input that cannot be used."""
    script = inputs.get(f"{_INPUT}RUN", "")
    if not script.strip():
        raise UsageError("doorward: the input `run` is empty; give the script of the step")
    mode = inputs.get(f"{_INPUT}MODE") or "enforce"
    if mode not in _MODES:
        raise UsageError(f"doorward: the input `mode` is {' or '.join(_MODES)}, not {printable(mode)!r}")
    words = ["--name", session, "-a", "never"]
    for option in ("allow", "deny"):
        for rule in inputs.get(f"{_INPUT}{option.upper()}", "").split():
            words += [f"--{option}", rule]
    for name in _WRITABLE:
        if env.get(name):
            words += ["--add-dir", env[name]]
    if mode == "observe":
        words.append("--observe")
    if _switch(inputs, "FAIL_ON_DENY"):
        words.append("--fail-on-deny")
    words += shlex.split(inputs.get(f"{_INPUT}OPTIONS", ""))
    return [*words, "--", "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]


def _switch(inputs: Mapping[str, str], name: str) -> bool:
    value = inputs.get(f"{_INPUT}{name}", "")
    if value not in _SWITCH:
        raise UsageError(f"doorward: the input `{name.lower().replace('_', '-')}` is true or false, not {value!r}")
    return _SWITCH[value]


def _privilege(doorward: Sequence[str], env: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """What stands before `doorward`, and the options that make the command the runner's user again."""
    if os.geteuid() == 0 or _holds(doorward, env):
        return [], []
    sudo = ["sudo", "-n", "-E", "env", f"PATH={env.get('PATH', os.defpath)}"]
    try:
        can = subprocess.run([*sudo, "true"], env=env, capture_output=True, check=False).returncode == 0
    except OSError:
        can = False
    if not can:
        return [], []  # the run itself says what is missing, with the remedy
    import pwd

    return sudo, ["--user", pwd.getpwuid(os.geteuid()).pw_name]


def _holds(doorward: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a full sandbox can be had without root."""
    probe = [*doorward, "run", "-a", "never", "--network", "off", "--no-record-output", "--", "true"]
    home = {"DOORWARD_HOME": tempfile.mkdtemp(prefix="doorward-probe-")}
    try:
        return subprocess.run(probe, env={**env, **home}, capture_output=True, check=False).returncode == 0
    finally:
        import shutil

        shutil.rmtree(home["DOORWARD_HOME"], ignore_errors=True)


def _report(doorward: Sequence[str], session: str, env: Mapping[str, str], *, summarize: bool) -> None:
    """Outputs, summary and annotations. A run that never began has no session, and said why itself."""
    shown = subprocess.run([*doorward, "summary", "--json", session], env=env, capture_output=True, check=False)
    if shown.returncode != 0:
        return
    document: dict[str, Any] = json.loads(shown.stdout)
    refused = sum(row["connections"] for row in document["refused"]) + sum(row["count"] for row in document["other"])
    if output := env.get("GITHUB_OUTPUT"):
        with open(output, "a", encoding="utf-8") as file:
            file.write(f"session={document['sessions'][0]}\nrefused={refused}\n")
    if summarize:
        subprocess.run([*doorward, "summary", "--format", "github", session], env=env, check=False)


if __name__ == "__main__":
    sys.exit(main())
