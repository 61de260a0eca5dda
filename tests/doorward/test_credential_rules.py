"""A rule that names a credential: which requests it goes into, and what is a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from doorward.allowlists.conditions import Request
from doorward.allowlists.decision import Effect
from doorward.allowlists.host import Name
from doorward.configuration import Configuration, load
from doorward.configuration_error import ConfigurationError
from doorward.errors import UsageError
from doorward.inspection_settings import inspection_for
from doorward.network_settings import asks_for_inspection, network_settings
from doorward.proxy.policy import policy_from_settings
from doorward.sessions.home import Home

FORGE = '[credentials.forge]\nenv = "FORGE_TOKEN"\n'


def configured(tmp_path: Path, text: str, project: str = "") -> Configuration:
    home, work = tmp_path / "home", tmp_path / "work"
    (work / ".doorward").mkdir(parents=True)
    home.mkdir()
    trusted = f'[projects."{work}"]\ntrust_level = "trusted"\n' if project else ""
    (home / "config.toml").write_text(text + trusted)
    if project:
        (work / ".doorward" / "config.toml").write_text(project)
    return load(str(home), str(work), {})


def inspected(tmp_path: Path, text: str, project: str = "") -> object:
    configuration = configured(tmp_path, text, project)
    home = Home(str(tmp_path / "home"))
    settings, _ = network_settings(configuration, home, {})
    assert asks_for_inspection(configuration, settings)
    return inspection_for(configuration, settings, home, {}), settings


@pytest.fixture(autouse=True)
def _able(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doorward.inspection_settings.interpreter", lambda named: "/python")


def rules(*entries: str) -> str:
    return f"[network]\nallow = [{', '.join(entries)}]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            rules('{host = "a.test", credential = "forg"}') + FORGE + 'hosts = ["a.test"]\n',
            r'config\.toml:2: network\.allow: .*"forg".*there is no \[credentials\.forg\]; did you mean "forge"\?',
        ),
        (
            rules('{host = "a.test", credential = "forge"}'),
            r"config\.toml:2: network\.allow: .*there is no .*; there is none yet",
        ),
        (
            rules('{host = "b.test", credential = "forge"}') + FORGE + 'hosts = ["a.test"]\n',
            r"config\.toml:2: network\.allow: .*beyond the hosts of credentials\.forge, a\.test",
        ),
        (
            rules('{host = "*.a.test", credential = "forge"}') + FORGE + 'hosts = ["a.test"]\n',
            "beyond the hosts",
        ),
        (
            rules('{host = "a.test:8443", credential = "forge"}') + FORGE + 'hosts = ["a.test"]\n',
            "beyond the hosts",
        ),
        (
            rules('{host = "a.test:80", credential = "forge"}') + FORGE,
            "port 80 alone",
        ),
    ],
)
def test_a_mistake_names_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        inspected(tmp_path, text)


def test_a_credential_goes_somewhere(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"credentials\.forge: it needs hosts.*credential = "):
        inspected(tmp_path, rules('"a.test"') + FORGE)


def test_a_project_does_not_choose_where_it_goes(tmp_path: Path) -> None:
    """It may use one within its hosts; it may not give hosts to one that has none."""
    project = rules('{host = "evil.test", credential = "forge"}')
    with pytest.raises(ConfigurationError, match=r"\.doorward/config\.toml:2: .*project's own rule cannot say"):
        inspected(tmp_path, FORGE, project)


def test_what_the_door_is_told(tmp_path: Path) -> None:
    text = rules(
        '{host = "a.test", methods = ["GET"], credential = "forge"}',
        '{host = "a.test", methods = ["POST"]}',
        '{host = "**.b.test:8000-8010", credential = "forge"}',
    )
    inspection, settings = inspected(tmp_path, text + FORGE)  # type: ignore[misc]
    assert inspection.settings == {
        "every": False, "credentials": {"forge": ["a.test", "**.b.test:8000-8010"]}, "by_rule": ["forge"],
    }  # fmt: skip
    assert inspection.work["names"] == ["a.test", "b.test"]
    policy = policy_from_settings({**settings, "inspection": inspection.settings})

    def into(name: str, method: str, port: int = 443) -> tuple[str, ...]:
        decision = policy.decide(Name(name), port)
        assert decision.effect is Effect.ALLOW and policy.inspects(decision)
        return policy.credentials_in(decision, Request(method, "/"))

    assert into("a.test", "GET") == ("forge",) and into("a.test", "POST") == ()
    assert into("x.b.test", "POST", 8001) == ("forge",)


def test_a_wider_rule_takes_nothing_away(tmp_path: Path) -> None:
    """Rules add up: a host that is allowed whole is still inspected where a rule for it names a credential."""
    text = rules('"a.test"', '{host = "a.test", paths = ["/in/**"], credential = "forge"}')
    inspection, settings = inspected(tmp_path, text + FORGE + 'hosts = ["**.a.test"]\n')  # type: ignore[misc]
    policy = policy_from_settings({**settings, "inspection": inspection.settings})
    decision = policy.decide(Name("a.test"), 443)
    assert policy.inspects(decision)
    assert policy.credentials_in(decision, Request("GET", "/in/x")) == ("forge",)
    assert policy.credentials_in(decision, Request("GET", "/out")) == ()
    assert policy.credentials_in(decision, Request("GET", "/in/x", upgrade=True)) == ("forge",)
