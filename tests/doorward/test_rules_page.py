"""docs/rules.md is true: every table, every block and every command line in it is read and checked."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, ip_address, ip_network
from pathlib import Path
from typing import NamedTuple

import pytest

from doorward.allowlists.addresses import AddressClass, IPAddress, carried, classify, unmap
from doorward.allowlists.conditions import Request, parse_conditions
from doorward.allowlists.decision import Decision, Effect, Reason
from doorward.allowlists.host import parse_host_port
from doorward.allowlists.presets import PRESETS
from doorward.allowlists.rule import MalformedRule, Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet
from doorward.allowlists.settings import rule_set_from_settings
from doorward.allowlists.special_purpose import IPV4_BLOCKS, IPV6_BLOCKS, METADATA_ADDRESSES
from doorward.commands import allowlist
from doorward.commands.dispatch import guarded
from doorward.proxy.refusal import refusal_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from doorward.allowlists.rule import RuleEffect

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rules.md"
_CODE = re.compile(r"`([^`]+)`")


class Table(NamedTuple):
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Block(NamedTuple):
    language: str
    text: str


def _parts() -> Iterator[Table | Block]:
    lines = iter(PAGE.read_text().split("\n"))
    for line in lines:
        if line.startswith("```"):
            inside = []
            for line_inside in lines:
                if line_inside.startswith("```"):
                    break
                inside.append(line_inside)
            yield Block(line[3:], "\n".join(inside))
        elif line.startswith("|"):
            rows = [_cells(line)]
            for row in lines:
                if not row.startswith("|"):
                    break
                rows.append(_cells(row))
            assert set(rows[1]) == {"---"}
            assert {len(row) for row in rows} == {len(rows[0])}, rows[0]
            yield Table(rows[0], tuple(rows[2:]))


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


PARTS = tuple(_parts())
TABLES = {part.header: part for part in PARTS if isinstance(part, Table) and part.header != ("there", "here")}


def codes(cell: str) -> list[str]:
    return _CODE.findall(cell)


def code(cell: str) -> str:
    (text,) = codes(cell)
    return text


def rules(allow: list[str], deny: list[str] | None = None) -> RuleSet:
    def parsed(entries: list[str], effect: RuleEffect) -> list:  # type: ignore[type-arg]
        return [parse_rule(entry, effect, Origin("flag", f"--{effect}")) for entry in entries]

    return RuleSet.build(parsed(allow, "allow"), parsed(deny or [], "deny"))


def decided(rule_set: RuleSet, place: str) -> Decision:
    return rule_set.decide(*parse_host_port(place, 443))


def allowed(rule_set: RuleSet, place: str) -> bool:
    return decided(rule_set, place).effect is Effect.ALLOW


def yes(cell: str) -> bool:
    assert cell in {"yes", "no"}
    return cell == "yes"


def test_every_part_of_the_page_is_checked_by_a_test_below() -> None:
    checked = {
        ("command", "does"), ("written", "hosts"), ("not a rule", "because", "write"), ("key", "says"),
        ("rule", "`a.test`", "`www.a.test`", "`x.y.a.test`", "`nota.test`"),
        ("rule", "`a.test:80`", "`a.test:443`", "`a.test:8443`", "`a.test:22`"),
        ("allow", "deny", "`127.0.0.5`", "`127.0.0.6`"), ("reason", "when", "`x-proxy-error`"),
        ("class", "addresses"), ("form", "address", "carries", "class"),
        ("rules", "asked for", "at", "dialled"), ("rules", "asked for", "hint"), ("preset", "stands for"),
        ("there", "here"), ("glob", "`/a`", "`/a/`", "`/a/b`", "`/a/b/c`", "`/a/../b`", "`/a/%2e%2e/b`"),
    }  # fmt: skip
    assert {part.header for part in PARTS if isinstance(part, Table)} == checked
    assert {part.language for part in PARTS if isinstance(part, Block)} == {"console", "toml"}


def test_what_can_be_written_parses() -> None:
    for row in TABLES["written", "hosts"].rows:
        for entry in (code(row[0]), *codes(row[1])):
            if not entry.startswith("@"):
                parse_rule(entry, "allow", Origin("file", "page"))
    assert not allowed(rules(["*"]), "gateway") and not allowed(rules(["*"]), "localhost")


@pytest.mark.parametrize("first", ["`a.test`", "`a.test:80`"])
def test_rule_against_host(first: str) -> None:
    """P-DM-03, P-DM-05, P-PP-15."""
    (table,) = [table for header, table in TABLES.items() if header[:2] == ("rule", first)]
    for rule, *cells in table.rows:
        for place, cell in zip(map(code, table.header[1:]), cells, strict=True):
            assert allowed(rules([code(rule)]), place) is yes(cell), (rule, place)
            if ":" not in place:
                as_deny = rules(["*"] if code(rule) != "*" else [], [code(rule)])
                assert (decided(as_deny, place).reason == "denied") is yes(cell), (rule, place)


def test_what_is_not_a_rule() -> None:
    """P-DM-08, P-DM-09: the suggestion is the one a person gets, and it parses."""
    for written, _, write in TABLES["not a rule", "because", "write"].rows:
        with pytest.raises(MalformedRule) as error:
            parse_rule(code(written), "allow", Origin("file", "page"))
        assert error.value.suggestion == (code(write) if write else None), written


def test_keys_of_a_table() -> None:
    keys = [code(row[0]) for row in TABLES["key", "says"].rows]
    with pytest.raises(MalformedRule, match="it has " + ", ".join(keys)):
        parse_rule({"host": "a.test", "x": 1}, "allow", Origin("file", "page"))


def test_globs() -> None:
    table = next(part for part in PARTS if isinstance(part, Table) and part.header[0] == "glob")
    for glob, *cells in table.rows:
        for path, cell in zip(map(code, table.header[1:]), cells, strict=True):
            conditions = parse_conditions({"paths": [code(glob)]})
            assert conditions is not None
            assert (conditions.unmet(Request("GET", path)) is None) is yes(cell), (glob, path)


def test_deny_beats_allow() -> None:
    """P-IP-05."""
    table = TABLES["allow", "deny", "`127.0.0.5`", "`127.0.0.6`"]
    for allow, deny, *cells in table.rows:
        rule_set = rules(codes(allow), codes(deny))
        for place, cell in zip(map(code, table.header[2:]), cells, strict=True):
            assert allowed(rule_set, place) is yes(cell), (allow, deny, place)


def test_reasons_and_their_class() -> None:
    rows = {code(row[0]): code(row[2]) for row in TABLES["reason", "when", "`x-proxy-error`"].rows}
    assert rows.keys() == {str(reason) for reason in Reason} - {"allowed"}
    example = decided(rules([]), "a.test")
    for reason, error_class in rows.items():
        refused = example.refused(Reason(reason), example.source, "")
        made = refusal_from(refused, protocol="http", method="GET", host_text="a.test", port=80)
        assert made.error_class == error_class


def test_the_guard_lists_every_block_of_every_class() -> None:
    listed = {AddressClass(code(row[0])): codes(row[1]) for row in TABLES["class", "addresses"].rows}
    assert set(listed) == set(AddressClass)
    expected: dict[AddressClass, list[str]] = {kind: [] for kind in AddressClass}
    for block, kind in IPV4_BLOCKS + IPV6_BLOCKS:
        expected[kind].append(block)
    expected[AddressClass.METADATA] = list(METADATA_ADDRESSES)
    for kind, blocks in expected.items():
        assert sorted(listed[kind]) == sorted(blocks), kind
        for block in blocks:
            ends = (ip_network(block)[0], ip_network(block)[-1])
            if block != "::/0" and all(unmap(ip) == ip and not _carried(ip) for ip in ends):  # those have a table below
                assert kind in map(classify, ends), block


def _carried(ip: IPAddress) -> list[IPAddress]:
    return [] if ip.version == 4 else [IPv4Address(value) for value in carried(int(ip))]


def test_addresses_that_carry_another() -> None:
    """P-IP-02."""
    for _, written, inside, kind in TABLES["form", "address", "carries", "class"].rows:
        ip = unmap(ip_address(code(written)))
        assert ip_address(code(inside)) in (ip, *_carried(ip)), written
        assert classify(ip) == code(kind), written


def test_what_opens_an_address() -> None:
    for written, asked, at, dialled in TABLES["rules", "asked for", "at", "dialled"].rows:
        rule_set = rules(codes(written))
        decision = decided(rule_set, code(asked))
        usable = rule_set.judge(decision, [ip_address(code(at))]).usable
        assert (decision.effect is Effect.ALLOW and bool(usable)) is yes(dialled), (written, asked)


def test_hints() -> None:
    """P-DM-12."""
    for written, asked, hint in TABLES["rules", "asked for", "hint"].rows:
        refused = decided(rules(codes(written)), code(asked))
        assert refused.hint == code(hint)
        assert allowed(rules([*codes(written), shlex.split(refused.hint)[1]]), code(asked))


def test_presets() -> None:
    assert [code(row[0]) for row in TABLES["preset", "stands for"].rows] == [f"@{name}" for name in PRESETS]


def test_rules_in_the_tables_for_newcomers_parse() -> None:
    tables = [part for part in PARTS if isinstance(part, Table) and part.header == ("there", "here")]
    assert len(tables) == 2
    seen = 0
    for table in tables:
        for _, here in table.rows:
            for text in codes(here):
                if not text.startswith(("--", "/", "allowed_domains")):
                    parse_rule(text, "allow", Origin("file", "page"))
                    seen += 1
    assert seen > 10


def test_options_in_the_text_parse() -> None:
    """`--allow …` in a sentence, and the whole commands of the table."""
    found = re.findall(r"`--(allow|deny) ([^`]+)`", PAGE.read_text())
    for effect, entry in found:
        (word,) = shlex.split(entry)
        if not word.startswith("@"):
            parse_rule(word, effect, Origin("flag", "page"))
    assert len(found) > 5


@pytest.mark.parametrize("block", [part for part in PARTS if isinstance(part, Block) and part.language == "toml"])
def test_configuration_is_taken(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from doorward.configuration import load

    (tmp_path / "config.toml").write_text(block.text)
    configuration = load(home=str(tmp_path), cwd=str(tmp_path), env={}, system=str(tmp_path / "none"))
    rows: dict[str, list[dict[str, object]]] = {"allow": [], "deny": []}
    for effect, listed in rows.items():
        for entry, origin in configuration.entries(f"network.{effect}"):
            if not str(entry).startswith("@"):
                listed.append({"rule": entry, "source": origin.source, "where": origin.where})
    built = rule_set_from_settings({**rows, "hosts": configuration.table("network.hosts")})
    assert built.allow and not [notice for notice in built.notices if "no rule allows" in notice and "db" not in notice]
    assert tomllib.loads(block.text)["network"]["allow"]


Run = Callable[[str], str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOORWARD_HOME", str(tmp_path / "home"))

    def call(command: str) -> str:
        words = shlex.split(command)
        assert words[:2] == ["doorward", "allowlist"]
        guarded(allowlist.main, words[2:])
        return capsys.readouterr().out

    return call


@pytest.mark.parametrize("block", [part for part in PARTS if isinstance(part, Block) and part.language == "console"])
def test_commands_print_what_the_page_says(block: Block, run: Run) -> None:
    shown: list[tuple[str, list[str]]] = []
    for line in block.text.split("\n"):
        if line.startswith("$ "):
            shown.append((line[2:], []))
        else:
            shown[-1][1].append(line)
    for command, lines in shown:
        assert run(command).splitlines() == lines, command


def test_the_commands_of_the_table_are_understood(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from doorward import preset_store
    from doorward.commands import allowlist_question

    preset = preset_store.PinnedPreset((), {}, ())
    monkeypatch.setattr(preset_store, "pinned", lambda *rest: preset)
    monkeypatch.setattr(allowlist_question, "system_look_up", lambda name: (ip_address("93.184.216.34"),))
    for row in TABLES["command", "does"].rows:
        assert run(code(row[0])), row[0]
