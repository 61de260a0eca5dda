"""Each platform gets its own door; one without is told so in a sentence."""

import subprocess
import sys

import pytest

from doorward.launcher.backend import backend
from doorward.launcher.interface import SandboxUnavailable

DOORS = {"linux": "Linux", "darwin": "Seatbelt", "win32": "Windows"}


@pytest.mark.parametrize("platform", DOORS)
def test_the_door_of_the_platform(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    assert type(backend()).__name__ == DOORS[platform]


def test_a_platform_without_one(monkeypatch):
    monkeypatch.setattr(sys, "platform", "freebsd14")
    with pytest.raises(SandboxUnavailable) as raised:
        backend()
    assert "freebsd14" in raised.value.sentence
    assert "Linux" in raised.value.remedy


def test_on_linux_no_other_platforms_door_is_imported():
    code = (
        "import sys\nfrom doorward.launcher.backend import backend\nbackend()\n"
        "print([name for name in sys.modules if 'seatbelt' in name or 'windows' in name or 'reape' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
