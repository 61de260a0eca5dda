"""What `json` would write and read, without `json`."""

import json
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.start_json import _plain, dumps, loads, value_at

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.booleans())
def test_it_writes_what_json_writes(value: object, sort_keys: bool, spaced: bool) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    wanted = json.dumps(value, separators=separators, sort_keys=sort_keys, allow_nan=False)
    assert dumps(value, sort_keys=sort_keys, spaced=spaced) == wanted
    assert _plain()[0](value, sort_keys=sort_keys, spaced=spaced) == wanted


@given(VALUES)
def test_it_reads_what_it_wrote(value: object) -> None:
    text = dumps(value)
    assert loads(text) == loads(text.encode()) == loads(f"\n {text}\t") == json.loads(text)


@pytest.mark.parametrize("read", [value_at, _plain()[2]])
@given(value=VALUES)
def test_a_value_is_read_where_it_stands(read: Any, value: object) -> None:
    text = dumps(value)
    assert read(f'{{"a":{text},1', 5) == (value, 5 + len(text))


@pytest.mark.parametrize("read", [value_at, _plain()[2]])
@pytest.mark.parametrize("text", ["", "{", "nul", '[NaN]', "-Infinity", '{"a":Infinity}', '["\t"]', '"\n"'])
def test_what_could_not_stand_in_json_is_no_value(read: Any, text: str) -> None:
    with pytest.raises(ValueError):
        read(text, 0)


def test_a_byte_that_was_no_text_survives() -> None:
    assert dumps("\udcff") == '"\\udcff"' and loads(dumps("\udcff")) == "\udcff"


@pytest.mark.parametrize("text", ["", "{", "[1,]", "1 2", "nul", '{"a"}', "'a'", '"\n"', b"\xff\xfe"])
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        loads(text)


@pytest.mark.parametrize("value", [math.nan, math.inf, {math.nan: 1}])
def test_what_json_has_no_word_for_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="Circular"):
        dumps(endless)
    with pytest.raises(TypeError, match="object is not"):
        dumps(object())


def test_it_loads_no_regular_expressions() -> None:
    code = "import doorward.start_json; print({'re', 'json', 'typing'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"],
                          capture_output=True, text=True, timeout=60, check=True)  # fmt: skip
    assert done.stdout == "set()\n"
