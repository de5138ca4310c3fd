from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.error import RequestError
from ajuste.outputs.base import ParseError
from ajuste.outputs.pattern import Pointer, check_pointer, follow, pointed

# The document and the values of RFC 6901, section 5, and one more level.
DOCUMENT = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
    "~1": 9,
    "jobs": [{"write": {"iops": 1234.5}}],
}


def read(pointer: str, text: str, stream: str = "stdout") -> float:
    return pointed([Pointer(metric="m", pointer=pointer, stream=stream)], {stream: text})["m"]


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
        ("/~01", 9),
        ("/jobs/0/write/iops", 1234.5),
    ],
)
def test_a_pointer_leads_where_the_standard_says(pointer: str, value: float) -> None:
    check_pointer(pointer)
    assert read(pointer, json.dumps(DOCUMENT)) == value


@pytest.mark.parametrize(
    ("pointer", "words"),
    [
        ("/jobs/1/write", r'/jobs is a list of 1 and has no "1"'),
        ("/jobs/00/write", 'has no "00"'),
        ("/jobs/-", 'has no "-"'),
        ("/jobs/0/read/iops", r'/jobs/0 is an object and has no "read"'),
        ("/foo/0/x", r'/foo/0 is a text and has no "x"'),
        ("/nothing", r'the document is an object and has no "nothing"'),
        ("/foo/0", "/foo/0 is a text; expected a number"),
        ("/foo", "/foo is a list of 2; expected a number"),
    ],
)
def test_a_pointer_that_leads_nowhere_says_how_far_it_led(pointer: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        read(pointer, json.dumps(DOCUMENT))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "stdout is not a JSON document .*: empty"),
        ("done in 3 s\n", "not a JSON document"),
        ('{"a": 1', "not a JSON document"),
        ('{"a": 1} {"a": 2}', "not a JSON document"),
        ('{"a": 1e999}', "not a finite number"),
        ('{"a": NaN}', "not a finite number"),
        ('{"a": true}', "/a is true; expected a number"),
        ('{"a": null}', "/a is null; expected a number"),
        ('{"a": 1' + "0" * 400 + "}", "not a finite number"),
        ('{"a": 1' + "0" * 5000 + "}", "too many digits"),
        ("[" * 100_000, "nested too deeply|not a JSON document"),
    ],
)
def test_what_is_no_number_in_a_document_is_refused(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        read("/a", text)


def test_remarks_before_the_document_are_passed_over_and_streams_are_apart() -> None:
    assert read("/a", 'note: both engines selected\n{"a": 1.5}\n', stream="stderr") == 1.5


@pytest.mark.parametrize("pointer", ["", "a", "jobs/0", "/a~2", "/~", "#/a"])
def test_what_is_no_pointer_is_refused(pointer: str) -> None:
    with pytest.raises(RequestError, match="is not a JSON pointer"):
        check_pointer(pointer)


def _paths(document: Any, way: str = "") -> list[tuple[str, Any]]:
    paths = [(way, document)]
    steps = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in steps:
        paths += _paths(value, f"{way}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return paths


@given(
    st.recursive(
        st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    )
)
def test_every_value_of_any_document_is_found_by_its_pointer(document: Any) -> None:
    read_back = json.loads(json.dumps(document))
    for pointer, value in _paths(read_back):
        if pointer:
            check_pointer(pointer)
            assert follow(read_back, pointer) is value
