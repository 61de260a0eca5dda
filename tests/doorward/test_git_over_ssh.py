"""How git's ssh gets through where only the proxy leads out."""

import shlex

import pytest

from doorward.git_over_ssh import git_ssh_command


def test_the_value_is_one_command_for_a_shell_whatever_the_paths(monkeypatch):
    monkeypatch.setattr("sys.executable", "/no such/it's/python")
    words = shlex.split(git_ssh_command({"PATH": "/bin"}))
    assert words[:2] == ["ssh", "-o"]
    name, _, command = words[2].partition("=")
    assert name == "ProxyCommand"
    inner = shlex.split(command)
    assert inner[0].endswith("it's/python") and inner[1:3] == ["-I", "-S"] and inner[3].endswith("/ssh_proxy.py")
    assert inner[4:] == ["%h", "%p"]


@pytest.mark.parametrize("name", ["GIT_SSH_COMMAND", "GIT_SSH"])
def test_what_a_person_set_stays(name):
    """P-EV-14."""
    assert git_ssh_command({name: "ssh -i key"}) is None
