"""The action's own steps, as a runner would run them, with the runner's environment variables faked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())


class Job:
    """One job on a faked runner."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        (folder / "temp").mkdir()
        self.files = {name: folder / "temp" / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY")}
        for file in self.files.values():
            file.touch()
        # what the first step would install, taken from where the tests run
        action = folder / "action"
        (action / ".venv" / "bin").mkdir(parents=True)
        for name in ("python", "doorward"):
            tool = action / ".venv" / "bin" / name
            words = '"$@"' if name == "python" else '-P -m doorward "$@"'
            tool.write_text(f'#!/bin/sh\nexec {sys.executable} {words}\n')
            tool.chmod(0o755)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "GITHUB_ACTION_PATH": str(action),
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": str(folder / "temp"), "TMPDIR": str(folder),
            "GITHUB_WORKSPACE": str(self.workspace), "CI": "true",
            "GITHUB_TOKEN": "ghs_faked", **{name: str(file) for name, file in self.files.items()},
        }  # fmt: skip

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Every step in order, as far as the first that fails."""
        given = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
        given |= {"working-directory": str(self.workspace)}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        done: subprocess.CompletedProcess[str] | None = None
        for step in ACTION["runs"]["steps"]:
            done = self._step(step, given)
            if done.returncode != 0:
                break
        assert done is not None
        return done

    def _step(self, step: Mapping[str, Any], inputs: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        def filled(text: str) -> str:
            return re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda match: inputs[match[1]], text)

        assert step["shell"] == "bash" and "${{" not in step["run"]  # an input in a script would be run by the shell
        env = {name: filled(value) for name, value in step.get("env", {}).items()}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=filled(step.get("working-directory", str(self.workspace))), env={**self.env, **env},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.files["GITHUB_OUTPUT"].read_text().splitlines())

    @property
    def summary(self) -> str:
        return self.files["GITHUB_STEP_SUMMARY"].read_text()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_step_that_is_refused_goes_on_and_the_job_has_a_summary(job: Job) -> None:
    script = "echo built > out.txt\ncurl -sS http://no.test/ || true\necho answer=42 >> $GITHUB_OUTPUT\n"
    done = job.run(run=script, allow="ok.test")
    assert done.returncode == 0, done.stderr
    assert (job.workspace / "out.txt").read_text() == "built\n"
    assert job.outputs()["answer"] == "42" and job.outputs()["refused"] == "1"
    assert "refused 1 time" in job.summary and "`no.test:80`" in job.summary and '"no.test:80"' in job.summary
    assert "::error title=doorward refused no.test%3A80::" in done.stdout


def test_fail_on_deny_fails_the_step_and_the_scripts_own_status_is_kept(job: Job) -> None:
    assert job.run(run="curl -sS http://no.test/; true", **{"fail-on-deny": "true"}).returncode == 121
    assert job.run(run="exit 7").returncode == 7
    assert job.run(run="false | true\ntrue").returncode == 1  # pipefail


def test_observing_is_said_and_the_summary_can_be_left_out(job: Job) -> None:
    done = job.run(run="curl -sS http://127.0.0.1:9/ || true", mode="observe")
    assert done.returncode == 0 and "observing" in done.stderr
    before = job.summary
    assert job.run(run="true", summary="false").returncode == 0 and job.summary == before


def test_the_runners_token_and_its_files_for_later_steps_are_out_of_reach(job: Job) -> None:
    script = 'test -z "$GITHUB_TOKEN"\n(echo EVIL=1 >> "$GITHUB_ENV") 2>/dev/null || true\n'
    done = job.run(run=script)
    assert done.returncode == 0, done.stderr
    assert job.files["GITHUB_ENV"].read_text() == ""


@pytest.mark.parametrize("inputs", [{"run": ""}, {"run": "true", "mode": "x"}, {"run": "true", "allow": "https://x"}])
def test_a_bad_input_fails_the_step_before_anything_runs(job: Job, inputs: dict[str, str]) -> None:
    done = job.run(**inputs)
    assert done.returncode == 2 and done.stderr


def test_without_a_sandbox_the_step_fails(job: Job, tmp_path: Path) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (broken / "bwrap").chmod(0o755)
    job.env["PATH"] = f"{broken}:{job.env['PATH']}"
    assert job.run(run="touch ran").returncode == 125 and not (job.workspace / "ran").exists()
