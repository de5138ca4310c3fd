from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from ajuste.study.problem import KeyPath, at_or_around, locate

TEXT = '''\
# a comment = 1
name = "x # no comment"
"quoted.key" = 'a "literal"'

[[factor]]
name = "one"
levels = [
    1,  # first ]
    2,
    [3, { deep = "}" }],
]

[[factor]]
name = """
[not.a.header]
not_a_key = 1 \\""" still """"

[workload]
kind = "matrix"
parameters = { size = 1, "odd name" = [1, 2], a.b = 3 }
when = 1979-05-27 07:32:00
[[workload.background]]
kind = 'spin'
attributes.nice = 4
[[workload.background]]
note = \'\'\'
[x]
y = 1\'\'\'\'
[workload.background.attributes]
nice=5
[ a . "b c" . d ]
e = true'''


def test_everything_is_found_where_it_is_written() -> None:
    lines = locate(TEXT)
    expected: dict[KeyPath, int] = {
        ("name",): 2,
        ("quoted.key",): 3,
        ("factor",): 5,
        ("factor", 0): 5,
        ("factor", 0, "levels"): 7,
        ("factor", 0, "levels", 0): 8,
        ("factor", 0, "levels", 2): 10,
        ("factor", 0, "levels", 2, 1, "deep"): 10,
        ("factor", 1, "name"): 14,
        ("workload",): 18,
        ("workload", "parameters", "odd name", 1): 20,
        ("workload", "parameters", "a", "b"): 20,
        ("workload", "when"): 21,
        ("workload", "background", 0, "attributes", "nice"): 24,
        ("workload", "background", 1): 25,
        ("workload", "background", 1, "attributes", "nice"): 30,
        ("a", "b c", "d", "e"): 32,
    }
    assert {path: lines.get(path) for path in expected} == expected
    assert set(lines) == set(paths(tomllib.loads(TEXT)))


def test_what_is_missing_is_placed_at_the_table_around_it() -> None:
    lines = locate(TEXT)
    assert at_or_around(lines, ("workload", "background", 1, "command")) == 25
    assert at_or_around(lines, ("budget", "min_blocks")) is None


def paths(value: Any, base: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield every path that tomllib finds."""
    if base:
        yield base
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from paths(below, (*base, key))


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALARS = (
    st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.dates()
    | st.times()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)


def check(text: str) -> None:
    lines = locate(text)
    rows = text.split("\n")
    locations = list(paths(tomllib.loads(text)))
    assert set(lines) == set(locations)
    for path in locations:
        key = path[-1]
        if isinstance(key, str):
            row = rows[lines[path] - 1]
            assert key in row or json.dumps(key)[1:-1] in row or "\\" in row or not key.isprintable()


@given(st.dictionaries(KEYS, VALUES | st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=3), max_size=5))
def test_every_path_that_tomllib_finds_is_located_on_a_line_that_contains_its_key(document: dict[str, Any]) -> None:
    check(tomlkit.dumps(document))


LINES = st.sampled_from(
    [
        "[a]",
        "[[a]]",
        "[[a.b]]",
        "[a.b]",
        "[a.c.d]",
        "[[e]] # [x]",
        "[[ e . 'f' ]]",
        "x = 1",
        "y = [ # ]\n 1,\n [2, {z = 3}], ]",
        '  z.k = { p = \'q\', r.s = "}\\"" }',
        't = """\n[u]\nv = 1"""',
        "'w' = '''\n= ''  '''",
        "",
        "# = [",
    ]
)


@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=500)
def test_any_mixture_of_headers_and_keys_that_is_toml_is_located(rows: list[str], newline: str) -> None:
    text = "\n".join(rows)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    check(text)
    assert locate(text.replace("\n", newline)) == locate(text)
