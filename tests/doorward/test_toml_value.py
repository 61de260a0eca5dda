"""One value set or taken out, and everything else as it was."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.toml_edit import Uneditable
from doorward.toml_value import with_value, without_value

FEATURE = ("features", "guardian_approval")
PROJECT = ("projects", "/srv/my project", "trust_level")

TEXTS = {
    "empty": "",
    "other": "# mine\nsandbox_mode = 'read-only' # strict\n",
    "table": "[features] # here\n# about the next\nother = true\n\n[network]\nallow = []\n",
    "set": "[features]\n  guardian_approval   =  false  # off for now\n# end\n",
    "dotted": "features.other = true # x\n[network]\nmode = 'off'\n",
    "inline": "features = {other = true}\n",
    "quoted": "['features']\n'guardian_approval' = false # q\n",
    "crlf": "# a\r\n[features]\r\nother = true\r\n",
    "no-end": "[features]\nother = true",
    "array": "[[rules]]\na = 1\n[[rules]]\na = 2\n",
    "project": '[projects."/srv/my project"]\ntrust_level = "untrusted" # why\n',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(("path", "value"), [(FEATURE, True), (PROJECT, "trusted"), (("top",), True)])
def test_it_means_what_it_meant_with_the_value(text: str, path: tuple[str, ...], value: str | bool) -> None:
    new = with_value(text, path, value)
    document: Any = tomllib.loads(new)
    wanted: Any = tomllib.loads(text)
    inside = wanted
    for name in path[:-1]:
        inside = inside.setdefault(name, {})
    inside[path[-1]] = value
    assert document == wanted
    for comment in [line[line.index("#") :].strip() for line in text.splitlines() if "#" in line]:
        assert comment in new
    assert with_value(new, path, value) == new, "a second time changes nothing"
    gone = without_value(new, path)
    if path[-1] not in text:
        assert tomllib.loads(gone) == tomllib.loads(text)


def test_a_comment_beside_the_value_stays_there() -> None:
    assert with_value(TEXTS["set"], FEATURE, True) == TEXTS["set"].replace("false", "true")


def test_a_new_value_stands_behind_its_header() -> None:
    assert with_value(TEXTS["table"], FEATURE, True) == TEXTS["table"].replace(
        "# here\n", "# here\nguardian_approval = true\n"
    )
    assert with_value("", PROJECT, "trusted") == '[projects."/srv/my project"]\ntrust_level = "trusted"\n'


def test_a_table_that_held_nothing_else_goes_with_its_value() -> None:
    text = '# a\n\n[projects."/x"]\ntrust_level = "trusted"\n\n[network]\nmode = "off"\n'
    assert without_value(text, ("projects", "/x", "trust_level")) == '# a\n\n\n[network]\nmode = "off"\n'
    assert without_value(text, ("projects", "/y", "trust_level")) == text


def test_what_is_no_table_or_no_toml_is_left_alone() -> None:
    with pytest.raises(Uneditable, match="no table"):
        with_value("features = 1\n", FEATURE, True)
    with pytest.raises(Uneditable, match="not valid TOML"):
        with_value("features = \n", FEATURE, True)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_folder_can_be_named(folder: str) -> None:
    path = ("projects", folder, "trust_level")
    new = with_value("# a\n", path, "trusted")
    assert tomllib.loads(new) == {"projects": {folder: {"trust_level": "trusted"}}}
    assert tomllib.loads(without_value(new, path)) == {}
