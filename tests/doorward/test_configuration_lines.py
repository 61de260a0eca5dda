"""Line numbers: on every TOML text the same keys and entries as tomllib reads, each on its line."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.configuration_lines import Path, lines_of


def paths(value: object, at: Path = ()) -> set[Path]:
    """Every path of a parsed document."""
    if isinstance(value, dict):
        below = [(key, inner) for key, inner in value.items()]
    elif isinstance(value, list):
        below = list(enumerate(value))
    else:
        return set()
    return {(*at, key) for key, _ in below}.union(*(paths(inner, (*at, key)) for key, inner in below))


DOCUMENT = '''\
# a comment with a = 1
top = "a" # another

[network]
allow = [
  "a.test",   # not ] here

  {host = "b.test", addresses = [
     "10.0.0.1", "]"]},
]
"quoted key".sub = 1
'literal.key' = 2
dotted . "x" = {a.b = 1, c = [1, [2, 3]]}

[a."b.c".d]
text = """
x = 1
[no.table]
"""
tail = """a"""""
raw = \'\'\'
y = 2\'\'\'
when = 1979-05-27 07:32:00
then = [1979-05-27T07:32:00Z, 07:32:00, 1e3, inf]

[[tables]]
x = 1
[[tables]]
x = 2
  [tables.sub]
  y = 3
  [[tables.inner]]
  z = 4
  [[tables.inner]]
  z = 5
"esc\\u0061ped" = 6
'''


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_key_and_entry_is_found_on_its_line(end: str) -> None:
    text = DOCUMENT.replace("\n", end)
    lines = lines_of(text)
    assert set(lines) == paths(tomllib.loads(text))
    expected: dict[Path, int] = {
        ("top",): 2,
        ("network",): 4,
        ("network", "allow"): 5,
        ("network", "allow", 0): 6,
        ("network", "allow", 1): 8,
        ("network", "allow", 1, "addresses", 1): 9,
        ("network", "quoted key", "sub"): 11,
        ("network", "literal.key"): 12,
        ("network", "dotted", "x", "a", "b"): 13,
        ("network", "dotted", "x", "c", 1, 0): 13,
        ("a", "b.c", "d"): 15,
        ("a", "b.c", "d", "text"): 16,
        ("a", "b.c", "d", "tail"): 20,
        ("a", "b.c", "d", "when"): 23,
        ("a", "b.c", "d", "then", 2): 24,
        ("tables", 0, "x"): 27,
        ("tables", 1, "x"): 29,
        ("tables", 1, "sub", "y"): 31,
        ("tables", 1, "inner", 1, "z"): 35,
        ("tables", 1, "inner", 1, "escaped"): 36,
    }
    assert {path: lines[path] for path in expected} == expected


KEYS = st.sampled_from(["a", "b-1", '"q.q"', "'l'", '"\\u0041"', "1"])
SCALARS = st.sampled_from(
    [
        '"x"',
        "'y'",
        '"a\\"b"',
        '"""m\n\\"""\n"""',
        "'''r\n''x'''",
        "1",
        "-1.5e3",
        "true",
        "1979-05-27 07:32:00",
        "0x1F",
        "nan",
    ]
)
GAPS = st.sampled_from(["", " ", "\n", " # c ]\n", "\n\n  "])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(st.tuples(GAPS, inner, GAPS), max_size=3).map(
            lambda rows: "[" + ",".join(f"{before}{value}{after}" for before, value, after in rows) + "]"
        ),
        st.dictionaries(st.sampled_from("pqr"), inner, max_size=2).map(
            lambda rows: "{" + ", ".join(f"{key} = {value}" for key, value in rows.items()) + "}"
        ),
    ),
    max_leaves=6,
)
STATEMENTS = st.one_of(
    st.tuples(st.lists(KEYS, min_size=1, max_size=3), VALUES).map(lambda row: f"{' . '.join(row[0])} = {row[1]}"),
    st.lists(KEYS, min_size=1, max_size=2).map(lambda keys: f"[{'.'.join(keys)}]"),
    st.lists(KEYS, min_size=1, max_size=2).map(lambda keys: f"[[ {' . '.join(keys)} ]] # t"),
    st.sampled_from(["", "# only = 'a comment'"]),
)


@given(st.lists(STATEMENTS, max_size=8))
def test_any_document_that_tomllib_reads_gives_the_same_keys(statements: list[str]) -> None:
    kept: list[str] = []
    for statement in statements:
        try:
            tomllib.loads("\n".join([*kept, statement]))
        except tomllib.TOMLDecodeError:
            continue
        kept.append(statement)
    text = "\n".join(kept)
    lines = lines_of(text)
    assert set(lines) == paths(tomllib.loads(text))
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
