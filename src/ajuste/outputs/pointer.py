"""Metrics by JSON pointers into the document that a program of one's own prints (RFC 6901)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from ajuste.model.error import RequestError
from ajuste.outputs.failure import ParseError, excerpt, finite

_FORM: Final = re.compile(r"(/([^~/]|~[01])*)*")
_INDEX: Final = re.compile(r"0|[1-9][0-9]*")
_OPENING: Final = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)


class Pointer(BaseModel):
    """``pointer`` leads to the value of ``metric`` in the document on ``stream``."""

    model_config = ConfigDict(frozen=True)
    metric: str
    pointer: str
    stream: str = "stdout"


def check_pointer(pointer: str) -> None:
    """Raises RequestError for what is no JSON pointer."""
    if not pointer.startswith("/"):
        raise RequestError(f'"{pointer}" is not a JSON pointer; expected a slash first, as in /jobs/0/write/iops')
    if not _FORM.fullmatch(pointer):
        raise RequestError(f'"{pointer}" is not a JSON pointer; expected ~0 for ~, and ~1 for a slash in a name')


def follow(document: Any, pointer: str) -> Any:
    """The value in ``document``. Raises ParseError that says how far the pointer led."""
    value, way = document, ""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _INDEX.fullmatch(name) and len(name) < 10 and int(name) < len(value):
            value = value[int(name)]
        else:
            raise ParseError(f"{way or 'the document'} is {_kind(value)} and has no {excerpt(name)}")
        way += f"/{token}"
    return value


def pointed(pointers: Sequence[Pointer], streams: dict[str, str]) -> dict[str, float]:
    """The metrics of ``pointers`` in the text of each stream, which must be one JSON document.

    Lines before the one that opens an object or a list are passed over (fio prints its remarks there). Raises
    ParseError.
    """
    documents = {stream: _document(streams.get(stream, ""), stream) for stream in {p.stream for p in pointers}}
    metrics = {}
    for one in pointers:
        value = follow(documents[one.stream], one.pointer)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ParseError(f'{one.pointer} is {_kind(value)}; expected a number for "{one.metric}"')
        metrics[one.metric] = finite(value, f'"{one.metric}"')
    return metrics


def _document(text: str, stream: str) -> Any:
    begin = _OPENING.search(text)
    try:
        return json.loads(text[begin.start() :] if begin else text)
    except RecursionError:
        raise ParseError(f"the JSON document on {stream} is nested too deeply") from None
    except ValueError as failure:
        reason = failure.msg if isinstance(failure, json.JSONDecodeError) else "a number with too many digits"
        raise ParseError(f"{stream} is not a JSON document ({reason}): {excerpt(text) if text else 'empty'}") from None


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    names = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number"}
    return f"{names[type(value)]} of {len(value)}" if isinstance(value, list) else names[type(value)]
