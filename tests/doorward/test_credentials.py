"""Credentials as configured: sources, placeholders, and error texts that hold nothing of a value."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.configuration import load
from doorward.configuration_error import ConfigurationError
from doorward.credentials import Credential, credentials_of, placeholder_for
from doorward.errors import UsageError

SECRET = "hunter2-hunter2-hunter2"


def configured(tmp_path: Path, text: str) -> tuple[Credential, ...]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return credentials_of(load(str(home), str(tmp_path), {}))


def one(tmp_path: Path, text: str) -> Credential:
    (found,) = configured(tmp_path, f'[credentials.gh]\nhosts = ["api.test"]\n{text}\n')
    return found


def test_what_a_table_says(tmp_path: Path) -> None:
    found = configured(
        tmp_path,
        '[credentials.a]\nenv = "A_TOKEN"\nhosts = ["a.test", "*.a.test:8443"]\n'
        '[credentials.b]\nfile = "~/b"\nhosts = ["b.test"]\nplace = "query"\nname = "key"\nvariable = "B"\n',
    )
    assert found[0] == Credential(
        "a", "env", "A_TOKEN", ("a.test", "*.a.test:8443"), "header", "authorization", "A_TOKEN"
    )
    assert (found[1].source, found[1].place, found[1].field, found[1].variable) == ("file", "query", "key", "B")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('hosts = ["a.test"]', "one source"),
        ('env = "A"\nfile = "b"\nhosts = ["a.test"]', "one source"),
        ('env = "A"\nhosts = ["@pip"]', "patterns"),
        ('env = "A"\nhosts = ["a.test"]\nplace = "cookie"', "name of the cookie"),
        ('env = "A"\nhosts = ["a.test"]\nname = "a b"', "needs the name"),
        ('env = "A"\nhosts = ["a.test"]\nvariable = "a b"', "no variable"),
    ],
)
def test_what_is_no_credential(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=rf"credentials\.gh.*{said}"):
        configured(tmp_path, f"[credentials.gh]\n{text}\n")


@pytest.mark.parametrize("text", ["env = 5", 'place = "body"', 'values = "x"', 'command = "pass show x"'])
def test_a_wrong_key_is_a_configuration_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError):
        configured(tmp_path, f"[credentials.gh]\n{text}\n")


def test_sources(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    assert one(tmp_path, 'env = "A_TOKEN"').value({"A_TOKEN": SECRET}) == SECRET
    assert one(tmp_path, f'file = "{tmp_path}/secret"').value({}) == SECRET
    command = [sys.executable, "-c", f"print({SECRET!r})"]
    assert one(tmp_path, f"command = {command}").value({}) == SECRET


@pytest.mark.parametrize(
    ("text", "env", "said"),
    [
        ('env = "A_TOKEN"', {}, "A_TOKEN is not set"),
        ('env = "A_TOKEN"', {"A_TOKEN": "short"}, "shorter than 8"),
        ('env = "A_TOKEN"', {"A_TOKEN": f"{SECRET}\nx"}, "cannot stand in a header"),
        ('env = "A_TOKEN"', {"A_TOKEN": f"{SECRET}ä"}, "cannot stand in a header"),
        ('env = "A_TOKEN"', {"A_TOKEN": "x" * 10000}, "longer than 8192"),
        ('file = "/nowhere/secret"', {}, "cannot be read"),
        ('command = ["/nowhere/pass"]', {}, "cannot be run"),
        (f'command = ["sh", "-c", "echo {SECRET}; echo {SECRET} >&2; exit 3"]', {"PATH": "/bin:/usr/bin"}, "status 3"),
    ],
)
def test_a_source_that_fails_says_which_and_nothing_of_a_value(
    tmp_path: Path, text: str, env: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=rf"credentials\.gh: .*{re.escape(said)}") as error:
        one(tmp_path, text).value(env)
    assert SECRET not in str(error.value)


def test_a_placeholder_has_the_shape_of_its_value() -> None:
    for value in ("ghp_0123456789abcdefABCDEF", "sk-live-0123456789", "AKIAIOSFODNN7EXAMPLE", "0123-4567-89ab"):
        made = placeholder_for(value)
        assert made != value and len(made) == len(value)
        assert re.sub("[a-z]", "a", re.sub("[A-Z]", "A", re.sub("[0-9]", "0", made))) == re.sub(
            "[a-z]", "a", re.sub("[A-Z]", "A", re.sub("[0-9]", "0", value))
        )
    assert placeholder_for("ghp_0123456789abcdef").startswith("ghp_")
    assert placeholder_for("sk-live-0123456789").startswith("sk-live-")


@given(st.text(alphabet="abcXYZ0189_-./+=", min_size=8, max_size=60).filter(lambda text: any(map(str.isalnum, text))))
def test_no_placeholder_is_its_value(value: str) -> None:
    assert placeholder_for(value) != value
