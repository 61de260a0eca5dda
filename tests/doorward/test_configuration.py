"""The layers of the configuration: what wins, what adds up, what is refused, and what every value remembers."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from doorward.configuration import Configuration, load
from doorward.configuration_error import ConfigurationError, Problem
from doorward.configuration_gather import Origin
from doorward.errors import UsageError
from doorward.project_trust import with_level


class Machine:
    """A home, a system file and a project in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home" / ".doorward"
        self.system = root / "etc" / "config.toml"
        self.project = root / "project"
        for folder in (self.home / "profiles", self.system.parent, self.project / ".doorward"):
            folder.mkdir(parents=True)

    def write(self, file: Path, text: str) -> None:
        file.write_text(text)
        file.chmod(0o644)

    def config(self, text: str) -> None:
        self.write(self.home / "config.toml", text)

    def project_config(self, text: str, trust: str | None = "trusted", more: str = "") -> None:
        self.write(self.project / ".doorward" / "config.toml", text)
        stated = f'[projects."{self.project}"]\ntrust_level = "{trust}"\n' if trust else ""
        self.config(f"{more}\n{stated}")

    def load(self, cwd: Path | None = None, **given: Any) -> Configuration:
        env = given.pop("env", {"HOME": "/home/u"})
        return load(str(self.home), str(cwd or self.project), env, system=str(self.system), **given)

    def problems(self, **given: Any) -> tuple[Problem, ...]:
        with pytest.raises(ConfigurationError) as caught:
            self.load(**given)
        return caught.value.problems


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# layers


def test_without_any_file_the_built_in_values_hold(machine: Machine) -> None:
    configuration = machine.load()
    assert configuration.text("sandbox_mode") == "workspace-write"
    assert configuration.text("approval_policy") == "on-request"
    assert configuration.optional_text("network.mode") is None and not configuration.is_set("network.mode")
    assert configuration.strings("network.allow") == ()
    assert configuration.features() == {"guardian_approval": False}
    assert configuration.origin("sandbox_mode") == Origin("builtin", "built-in")
    assert configuration.project_trust == "unknown"


def test_a_higher_layer_replaces_a_value_and_every_value_knows_its_place(machine: Machine) -> None:
    machine.write(machine.system, 'require = "best-effort"\napproval_policy = "never"\n')
    machine.config('approval_policy = "untrusted"\n\n[env]\ninherit = "core"\n')
    machine.write(machine.home / "profiles" / "ci.toml", 'env.inherit = "none"\n')
    configuration = machine.load(profile="ci", flags={"sandbox_mode": "read-only"})
    assert configuration.origin("require") == Origin("file", f"{machine.system}:1")
    assert configuration.text("approval_policy") == "untrusted"
    assert configuration.origin("approval_policy") == Origin("file", "config.toml:1")
    assert configuration.text("env.inherit") == "none"
    assert configuration.origin("env.inherit") == Origin("file", "profiles/ci.toml:1")
    assert configuration.origin("sandbox_mode") == Origin("flag", "--sandbox")


def test_options_beat_overrides_and_overrides_beat_the_profile(machine: Machine) -> None:
    machine.write(
        machine.home / "profiles" / "p.toml", 'sandbox_mode = "danger-full-access"\nrequire = "best-effort"\n'
    )
    configuration = machine.load(
        profile="p",
        overrides=["sandbox_mode=read-only", "require=full", "require=best-effort"],
        flags={"sandbox_mode": "workspace-write"},
    )
    assert configuration.text("sandbox_mode") == "workspace-write"
    assert configuration.text("require") == "best-effort"
    assert configuration.origin("require") == Origin("flag", "-c require")


def test_arrays_add_up_and_each_entry_names_its_own_line(machine: Machine) -> None:
    machine.write(machine.system, 'network.deny = ["bad.test"]')
    machine.config(
        '[network]\nallow = [\n  "a.test",\n  # why\n  {host = "db.corp:5432", addresses = ["10.0.0.0/8"]},\n]\n'
    )
    configuration = machine.load(overrides=['network.allow=["c.test"]'], flags={"network.allow": ["@pip", "d.test"]})
    assert list(configuration.entries("network.allow")) == [
        ("a.test", Origin("file", "config.toml:3")),
        ({"host": "db.corp:5432", "addresses": ["10.0.0.0/8"]}, Origin("file", "config.toml:5")),
        ("c.test", Origin("flag", "-c network.allow")),
        ("@pip", Origin("flag", "--allow")),
        ("d.test", Origin("flag", "--allow")),
    ]
    assert configuration.value("network.deny") == ("bad.test",)
    assert configuration.origin("network.allow") == Origin("flag", "--allow")
    assert configuration.origin("network.deny") == Origin("file", f"{machine.system}:1")


def test_pins_of_all_layers_count_and_a_higher_one_moves_a_name(machine: Machine) -> None:
    machine.config('network.hosts = {"db.test" = "127.0.0.1", "x.test" = "::1"}')
    configuration = machine.load(flags={"network.hosts": {"DB.test": "127.0.0.2"}})
    assert configuration.table("network.hosts") == {"x.test": "::1", "DB.test": "127.0.0.2"}
    assert configuration.value("network.hosts") == configuration.table("network.hosts")
    assert configuration.entries("network.hosts")[0].origin == Origin("file", "config.toml:1")


def test_a_table_holds_only_what_was_set(machine: Machine) -> None:
    machine.config("[network.limits]\nhead_time = 4\nconnections = 8\n")
    configuration = machine.load()
    assert configuration.table("network.limits") == {"head_time": 4.0, "connections": 8}
    assert configuration.value("network.limits.reply_time") == 60.0


def test_a_librarys_arguments_say_so(machine: Machine) -> None:
    configuration = machine.load(flags={"network.allow": ["a.test"], "env.inherit": "none"}, source="api")
    assert configuration.entries("network.allow")[0].origin == Origin("api", "network.allow")
    assert configuration.origin("env.inherit") == Origin("api", "env.inherit")


def test_features_are_switched_by_name(machine: Machine) -> None:
    machine.config("[features]\nguardian_approval = true\n")
    assert machine.load().features() == {"guardian_approval": True}
    off = machine.load(flags={"features.guardian_approval": False})
    assert off.features() == {"guardian_approval": False}
    assert off.origin("features.guardian_approval") == Origin("flag", "--disable guardian_approval")


def test_a_configuration_cannot_be_changed(machine: Machine) -> None:
    configuration = machine.load(flags={"network.allow": [{"host": "a.test", "addresses": ["10.0.0.1"]}]})
    entry = configuration.entries("network.allow")[0].value
    entry["addresses"].append("10.0.0.2")
    entry["host"] = "b.test"
    configuration.table("network.hosts")["x"] = "y"
    assert configuration.value("network.allow") == ({"host": "a.test", "addresses": ["10.0.0.1"]},)
    assert configuration.table("network.hosts") == {}
    with pytest.raises(TypeError):
        configuration.values["x"] = "y"  # type: ignore[index]
    with pytest.raises(AttributeError):
        configuration.project_trust = "trusted"  # type: ignore[misc]


@pytest.mark.parametrize("call", ["value", "origin", "entries", "text", "is_set", "table"])
def test_a_key_that_does_not_exist_is_a_mistake_of_the_caller(machine: Machine, call: str) -> None:
    with pytest.raises(KeyError):
        getattr(machine.load(), call)("sandbox_mod")
    with pytest.raises(KeyError):
        machine.load().entries("sandbox_mode")


def test_a_home_folder_in_a_path_is_the_callers(machine: Machine) -> None:
    machine.config('filesystem.write = ["~/cache", "sub", "/abs"]')
    assert machine.load(env={"HOME": "/home/u/"}).strings("filesystem.write") == ("/home/u/cache", "sub", "/abs")
    (problem,) = machine.problems(env={})
    assert "HOME" in problem.message


# strictness


@pytest.mark.parametrize(
    ("text", "line", "key", "message", "suggestion"),
    [
        ('sandbox_mod = "read-only"', 1, "sandbox_mod", "there is no such key", "did you mean sandbox_mode?"),
        ('\n\nallow = ["a.test"]', 3, "allow", "there is no such key", "did you mean network.allow?"),
        ("[network]\nmod = 'off'", 2, "network.mod", "there is no such key", "did you mean network.mode?"),
        ("[netwrok]\nmode = 'off'", 1, "netwrok", "there is no such key", None),
        (
            "network.limits.head-time = 3",
            1,
            "network.limits.head-time",
            "there is no such key",
            "network.limits.head_time",
        ),
        ('network = "off"', 1, "network", "is a table, not the text", "network.mode"),
        ('sandbox_mode = "readonly"', 1, "sandbox_mode", "must be one of", 'did you mean "read-only"?'),
        ("sandbox_mode = 1", 1, "sandbox_mode", "the number 1", None),
        ('network.allow = "a.test"', 1, "network.allow", "must be an array of rules", 'write ["a.test"]'),
        ('[network]\nallow = [\n"a.test",\n3]', 4, "network.allow", "the number 3", None),
        ('network.allow = [{addresses = ["10.0.0.1"]}]', 1, "network.allow", "names no host", 'host = "NAME"'),
        ("network.allow = [{}]", 1, "network.allow", "names no host", 'it needs host = "NAME"'),
        ('network.hosts = {db.test = "127.0.0.1"}', 1, "network.hosts.db", "needs quotes", '"db.test"'),
        ('[network.hosts]\n"db.test" = "127.1"', 2, 'network.hosts."db.test"', "must be an address", None),
        ('network.upstream_proxy = "proxy.corp:3128"', 1, "network.upstream_proxy", "URL", "http://proxy.corp:3128"),
        ('network.upstream_proxy = "socks5://p"', 1, "network.upstream_proxy", "must be a URL", None),
        ("network.limits.head_time = 0", 1, "network.limits.head_time", "positive number of seconds", None),
        ("network.limits.head_time = true", 1, "network.limits.head_time", "not true", None),
        ("network.limits.head = 1.5", 1, "network.limits.head", "whole number", None),
        ("network.limits.head_time = nan", 1, "network.limits.head_time", "positive number of seconds", None),
        ('filesystem.write = ["~other/x"]', 1, "filesystem.write", "another user's home", None),
        ('env.pass = ["A=B"]', 1, "env.pass", "not a variable's name", None),
        ('projects."rel".trust_level = "trusted"', 1, "projects.rel.trust_level", "whole path", None),
        ('projects."/x".trust_level = "yes"', 1, 'projects."/x".trust_level', "must be one of", None),
        ('projects."/x".trust = "trusted"', 1, 'projects."/x".trust', "there is no such key", None),
        ("env.inherit = 1979-05-27", 1, "env.inherit", "the date 1979-05-27", None),
    ],
)
def test_a_mistake_names_its_file_line_key_and_the_nearest_spelling(
    machine: Machine, text: str, line: int, key: str, message: str, suggestion: str | None
) -> None:
    machine.config(text)
    (problem,) = machine.problems()
    assert (problem.file, problem.line, problem.key) == (str(machine.home / "config.toml"), line, key)
    assert message in problem.message
    assert suggestion is None or (problem.suggestion is not None and suggestion in problem.suggestion)


@pytest.mark.parametrize(
    ("text", "message", "suggestion"),
    [
        ("gaurdian_approval = true", "there is no such key", "did you mean features.guardian_approval?"),
        ('guardian_approval = "false"', 'true or false, not the text "false"', "write false, without quotes"),
        ("guardian_approval = 1", "true or false, not the number 1", "write true"),
        ("guardian_approval = {on = true}", "true or false", None),
    ],
)
def test_a_misspelt_or_mistyped_feature_is_never_silently_dead(
    machine: Machine, text: str, message: str, suggestion: str | None
) -> None:
    """P-AP-24"""
    machine.config(f"[features]\n{text}\n")
    (problem,) = machine.problems()
    assert problem.line == 2 and message in problem.message
    assert suggestion is None or suggestion in str(problem.suggestion)


@pytest.mark.parametrize("stated", [{"feature_stages.web": "experimental"}, None])
def test_an_applications_own_feature_is_registered_wherever_it_is_switched(
    machine: Machine, stated: dict[str, object] | None
) -> None:
    machine.config("[features]\nweb = true\n" + ("" if stated else '[feature_stages]\nweb = "under development"\n'))
    configuration = machine.load(flags=stated or {})
    assert configuration.features()["web"] is True
    assert machine.load(flags={**(stated or {}), "features.web": False}).features()["web"] is False
    machine.config('feature_stages.web = "stable"\n')
    assert machine.load().features()["web"] is False, "off until somebody enables it"


def test_an_applications_own_feature_is_held_to_the_same_rules(machine: Machine) -> None:
    """P-AP-24"""
    machine.config('[feature_stages]\nweb = "beta"\nguardian_approval = "stable"\n[features]\nwbe = true\n')
    found = [(problem.line, problem.message) for problem in machine.problems()]
    assert [line for line, _ in found] == [2, 3, 5]
    assert "must be one of" in found[0][1] and "doorward's own" in found[1][1] and "no such key" in found[2][1]
    machine.config('[feature_stages]\nweb = "stable"\n[features]\nweb = "yes"\n')
    (problem,) = machine.problems()
    assert (problem.line, problem.suggestion) == (4, "write true, without quotes")


def test_a_removed_or_renamed_feature_is_said_to_be_so(machine: Machine) -> None:
    """P-AP-24"""
    machine.config('[feature_stages]\nold = "removed"\nlate = "deprecated"\n[features]\nold = true\nlate = true\n')
    configuration = machine.load()
    assert configuration.features()["old"] is False and configuration.features()["late"] is True
    assert [notice.split(": ")[0] for notice in configuration.notices] == ["config.toml:5", "config.toml:6"]
    machine.config("[features]\nsmart_approvals = true\n")
    configuration = machine.load()
    assert configuration.features()["guardian_approval"] is True
    assert configuration.notices == ("config.toml:2: features.smart_approvals is now features.guardian_approval",)


def test_a_project_cannot_switch_features(machine: Machine) -> None:
    machine.project_config("features.web = true\n", more='feature_stages.web = "stable"')
    assert "cannot set this" in machine.problems()[0].message


def test_a_feature_at_the_wrong_level_is_told_where_it_belongs(machine: Machine) -> None:
    """P-AP-24"""
    machine.config("guardian_approval = true\n")
    assert machine.problems()[0].suggestion == "did you mean features.guardian_approval?"


def test_all_problems_of_all_layers_come_at_once(machine: Machine) -> None:
    machine.write(machine.system, "sandbox_mode = 1\n")
    machine.config('x = 1\n[network]\nallow = ["a.test", 2, {}]\n')
    machine.write(machine.home / "profiles" / "p.toml", "= broken")
    problems = machine.problems(profile="p", overrides=["y=1", "z"], flags={"sandbox_mode": "loose"})
    assert [(os.path.basename(problem.file), problem.line) for problem in problems] == [
        ("config.toml", 1),
        ("config.toml", 1),
        ("config.toml", 3),
        ("config.toml", 3),
        ("p.toml", 1),
        ("-c y", None),
        ("-c z", None),
        ("--sandbox", None),
    ]


def test_the_error_is_a_usage_error_that_reads_as_one_line_a_problem(machine: Machine) -> None:
    machine.config('sandbox_mode = "readonly"\n')
    with pytest.raises(UsageError) as caught:
        machine.load()
    assert str(caught.value) == (
        f"doorward: {machine.home}/config.toml:1: sandbox_mode: must be one of "
        '"danger-full-access", "workspace-write", "read-only", not the text "readonly"; did you mean "read-only"?'
    )
    machine.config('a = 1\n"b\\u001b[2J" = 1\n')
    with pytest.raises(UsageError) as caught:
        machine.load()
    text = str(caught.value)
    assert text.startswith("doorward: 2 problems in the configuration:\n  ") and text.count("\n") == 2
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"a = \n", 1, "is not valid TOML"),
        (b"a = 1\na = 2\n", 2, "is not valid TOML"),
        (b'a = "x\n\n', 1, "is not valid TOML"),
        (b"\n\nx = '\xff'", 3, "is not UTF-8"),
        (b"\xef\xbb\xbfa = 1", 1, "is not valid TOML"),
        (b"a = [", 1, "is not valid TOML"),
    ],
)
def test_a_broken_file_is_told_with_its_line(machine: Machine, data: bytes, line: int, message: str) -> None:
    (machine.home / "config.toml").write_bytes(data)
    (problem,) = machine.problems()
    assert problem.line == line and message in problem.message


def test_a_file_nested_without_end_is_an_error_and_no_crash(machine: Machine) -> None:
    machine.config("a = " + "[" * 100_000)
    assert len(machine.problems()) == 1


def test_a_profile_that_is_not_there_lists_those_that_are(machine: Machine) -> None:
    machine.write(machine.home / "profiles" / "ci.toml", "")
    machine.write(machine.home / "profiles" / "dev.toml", "")
    for name in ("cii", "../config", "", ".hidden"):
        (problem,) = machine.problems(profile=name)
        assert problem.message == "there is no such profile" and problem.suggestion == "there are: ci, dev"
    assert machine.load(profile="ci").text("require") == "full"


# contradictions


@pytest.mark.parametrize("key", ["network.allow", "network.deny"])
def test_no_rule_holds_with_the_network_open(machine: Machine, key: str) -> None:
    machine.config(f'{key} = ["a.test"]\n')
    (problem,) = machine.problems(flags={"network.mode": "full"})
    assert problem.file == "config.toml:1"
    assert problem.message == "the rule a.test would not hold with network full (--network)"
    assert problem.suggestion is not None and "--network proxied" in problem.suggestion
    (problem,) = machine.problems(flags={"sandbox_mode": "danger-full-access"})
    assert "network full (--sandbox)" in problem.message
    assert machine.load(flags={"sandbox_mode": "danger-full-access", "network.mode": "proxied"}).is_set(key)


def test_an_allow_that_was_meant_to_work_with_the_network_off(machine: Machine) -> None:
    for flags in ({"network.mode": "off"}, {"sandbox_mode": "read-only"}):
        (problem,) = machine.problems(flags={**flags, "network.allow": ["a.test"]})
        assert problem.file == "--allow" and "--network proxied" in str(problem.suggestion)
    machine.config('network = {mode = "off", allow = [{host = "a.test"}]}\n')
    assert "the rule a.test would not hold with network off (config.toml:1)" in machine.problems()[0].message


def test_standing_rules_do_not_forbid_a_run_without_network(machine: Machine) -> None:
    machine.config('network.allow = ["a.test"]\nnetwork.deny = ["b.test"]\n')
    assert machine.load(flags={"network.mode": "off"}).text("network.mode") == "off"
    assert machine.load(flags={"network.mode": "off", "network.deny": ["c.test"]}).is_set("network.deny")


def test_a_path_cannot_be_opened_and_closed_in_one_breath(machine: Machine) -> None:
    machine.config('[filesystem]\nwrite = ["/d"]\ndeny_read = ["/d"]\n')
    (problem,) = machine.problems()
    assert problem.file == "config.toml:3" and "filesystem.write (config.toml:2)" in problem.message
    machine.config('[filesystem]\nwrite = ["/d"]\n')
    assert machine.load(flags={"filesystem.read_only": ["/d"]}).strings("filesystem.read_only") == ("/d",)


# the project


def test_a_projects_file_counts_only_where_it_is_trusted(machine: Machine) -> None:
    text = 'network.allow = ["a.test"]\n'
    machine.project_config(text)
    configuration = machine.load()
    assert configuration.project_trust == "trusted" and configuration.project_root == str(machine.project)
    assert list(configuration.entries("network.allow")) == [("a.test", Origin("file", ".doorward/config.toml:1"))]
    assert configuration.notices == ()
    machine.project_config(text, trust="untrusted")
    configuration = machine.load()
    assert configuration.project_trust == "untrusted" and configuration.strings("network.allow") == ()
    assert configuration.notices == ()
    machine.project_config(text, trust=None)
    configuration = machine.load()
    assert configuration.project_trust == "unknown" and configuration.strings("network.allow") == ()
    (notice,) = configuration.notices
    # the advice does what it says
    program, command, folder = shlex.split(notice.split("`")[1])
    assert (program, command) == ("doorward", "trust")
    machine.config(with_level("", folder, "trusted"))
    assert machine.load().project_trust == "trusted"


def test_an_untrusted_file_is_not_even_parsed(machine: Machine) -> None:
    machine.project_config("= broken", trust="untrusted")
    machine.load()


def test_a_sub_folder_uses_the_file_of_the_folder_that_was_trusted(machine: Machine) -> None:
    machine.project_config('network.allow = ["a.test"]\n')
    planted = machine.project / "sub" / ".doorward"
    planted.mkdir(parents=True)
    machine.write(planted / "config.toml", 'network.allow = ["evil.test"]\n')
    assert machine.load(cwd=machine.project / "sub").strings("network.allow") == ("a.test",)


def test_the_home_of_doorward_is_no_project(machine: Machine) -> None:
    machine.config(f'[projects."{machine.home.parent}"]\ntrust_level = "trusted"\n')
    assert machine.load(cwd=machine.home.parent).project_trust == "trusted"
    machine.config("")
    assert machine.load(cwd=machine.home.parent).notices == ()


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('sandbox_mode = "danger-full-access"', "sandbox_mode"),
        ('approval_policy = "never"', "approval_policy"),
        ('require = "best-effort"', "require"),
        ('network.mode = "full"', "network.mode"),
        ('network.upstream_proxy = "http://p:1"', "network.upstream_proxy"),
        ("network.limits.head_time = 9", "network.limits.head_time"),
        ('filesystem.write = ["/etc"]', "filesystem.write"),
        ('filesystem.allow_unix = ["/run/x"]', "filesystem.allow_unix"),
        ('env.pass = ["TOKEN"]', "env.pass"),
        ("features.guardian_approval = false", "features.guardian_approval"),
        ('projects."/x".trust_level = "trusted"', 'projects."/x".trust_level'),
    ],
)
def test_a_project_cannot_loosen_or_set_what_is_the_machines(machine: Machine, line: str, key: str) -> None:
    machine.project_config(f"# one\n{line}\n")
    (problem,) = machine.problems()
    assert (problem.file, problem.line, problem.key) == (str(machine.project / ".doorward" / "config.toml"), 2, key)


def test_a_project_can_tighten_and_add(machine: Machine) -> None:
    machine.project_config(
        'sandbox_mode = "read-only"\napproval_policy = "untrusted"\nenv.inherit = "none"\n'
        'network.mode = "proxied"\nnetwork.allow = ["a.test"]\nnetwork.deny = ["b.test"]\n'
        'network.hosts = {"x.test" = "127.0.0.1"}\nfilesystem.deny_read = [".env"]\n'
    )
    configuration = machine.load()
    assert configuration.text("sandbox_mode") == "read-only"
    assert configuration.strings("filesystem.deny_read") == (".env",)
    assert configuration.table("network.hosts") == {"x.test": "127.0.0.1"}


def test_what_a_lower_layer_tightened_stays_tight_in_a_project(machine: Machine) -> None:
    machine.project_config('network.mode = "proxied"\n', more='sandbox_mode = "read-only"')
    (problem,) = machine.problems()
    assert problem.key == "network.mode" and "below it stands off" in problem.message
    machine.project_config(
        'network.hosts = {"X.test" = "127.0.0.2"}\n', more='network.hosts = {"x.test" = "127.0.0.1"}'
    )
    assert "cannot move a name that config.toml:1 pins" in machine.problems()[0].message


def test_trust_cannot_be_given_by_another_layer(machine: Machine) -> None:
    line = f'projects."{machine.project}".trust_level = "trusted"'
    machine.write(machine.system, line)
    assert machine.problems()[0].file == str(machine.system)
    machine.system.unlink()
    assert len(machine.problems(overrides=[line.replace(" ", "")])) == 1


def test_one_folder_under_two_names_with_two_levels_is_a_contradiction(machine: Machine, tmp_path: Path) -> None:
    """P-AP-23"""
    (tmp_path / "link").symlink_to(machine.project)
    levels = f'[projects."{machine.project}"]\ntrust_level = "trusted"\n[projects."{tmp_path}/link/"]\ntrust_level = '
    machine.config(f'{levels}"untrusted"\n')
    (problem,) = machine.problems()
    assert problem.line == 4 and "stands above as trusted" in problem.message
    machine.config(f'{levels}"trusted"\n')
    assert machine.load().project_trust == "trusted"


# start-up

_PROBE = """
import __future__, enum, os, re, sys, types, typing
before = set(sys.modules)
from doorward.configuration import load
load(sys.argv[1], "/", {}, flags={"network.allow": ["a.test"]}, overrides=["require=full"], system=sys.argv[1] + "/s")
print(*sorted(name for name in set(sys.modules) - before if not name.startswith("doorward")))
"""


def test_a_run_without_files_imports_next_to_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PROBE, str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


@pytest.mark.parametrize("given", [{"overrides": ["network.hosts={a=1"]}, {"flags": {"network": 1}}, {"profile": "x"}])
def test_nothing_loads_from_a_wrong_request(machine: Machine, given: dict[str, Any]) -> None:
    assert machine.problems(**given)
