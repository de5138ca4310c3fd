"""Metrics by patterns and JSON pointers that a person wrote for the output of a program of their own."""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ConfigDict

from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError
from ajuste.outputs.base import ParseError, amount, another_unit, excerpt, finite

if TYPE_CHECKING:
    import socket

SECONDS: Final = 5
"""A search that takes longer has a pattern that backtracks without end."""

BACKTRACKS: Final = "a pattern backtracks too much"
"""The reason of a trial, which would be that of all others, too."""

LONGEST_LINE: Final = 4096
"""Characters of a line that are searched."""

_CHUNK_BYTES = 1 << 16
_COMPLAINT_BYTES = 1 << 16
_EXCERPT = 200
# For a process that ends by itself to be gone.
_ENDING_SECONDS = 1.0


class Pattern(BaseModel):
    """``pattern`` is searched in each line of ``stream``; its first group is the value of ``metric``, in its ``unit``
    if it has no other.
    """

    model_config = ConfigDict(frozen=True)
    metric: str
    pattern: str
    stream: str = "stdout"
    unit: str = ""


def check_pattern(pattern: str, groups: int = 1) -> None:
    """Raise RequestError for what is no regular expression or has fewer ``groups``."""
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as failure:
        raise RequestError(f"not a regular expression: {failure}; expected the syntax of Python") from None
    if compiled.groups < groups:
        raise RequestError("the pattern has no group; expected the number in ( )")


def search(patterns: Sequence[Pattern], streams: dict[str, str]) -> dict[str, float]:
    """Return the metrics of ``patterns`` in the text of each stream; the last line that matches counts.

    Python's ``re`` cannot be stopped, and a pattern such as ``(a+)+b`` runs for ever on the wrong text. So a process of
    its own (``search_lines.py``) searches, within a limit of processor time. Raises ParseError.
    """
    request = {
        "patterns": [(p.pattern, p.stream) for p in patterns],
        "streams": streams,
        "longest": LONGEST_LINE,
        "seconds": SECONDS,
    }
    try:
        reply = _SEARCHER.ask(json.dumps(request).encode("ascii"), 10 * SECONDS)
    except _SearcherLostError as lost:
        if lost.crashed:
            raise ParseError(f"the search for patterns failed: {lost}") from None
        names = ", ".join(f'"{pattern.metric}" by {pattern.pattern}' for pattern in patterns)
        raise ParseError(
            f"searching for {names} took more than {SECONDS} s; {BACKTRACKS}",
            hint="avoid nested repetitions, such as (a+)+",
        ) from None
    metrics = {}
    texts: list[tuple[str, str] | None] = json.loads(reply)
    for pattern, match in zip(patterns, texts, strict=True):
        if match is None:
            raise ParseError(
                f'no line of {pattern.stream} matches the pattern of "{pattern.metric}", {pattern.pattern}'
            )
        text, rest = match
        metrics[pattern.metric] = amount(text, pattern.unit, f'"{pattern.metric}"')
        if (printed := another_unit(text, rest, pattern.unit)) is not None:
            raise ParseError(
                f'{excerpt(text)} for "{pattern.metric}" is in {printed}, and the metric in {pattern.unit}',
                hint="put the unit into the pattern's group, such as ([0-9.]+ *[a-z]+): it is then converted",
            )
    return metrics


def first_groups(lines: Sequence[str], pattern: str, limit_s: float) -> list[str]:
    """Return the first group of each line that matches, as ``search``. Raises ParseError, also beyond ``limit_s``."""
    return _matches(lines, pattern, limit_s, "each")


def lines_with(lines: Sequence[str], pattern: str, limit_s: float) -> list[str]:
    """Return the lines that match. Raises ParseError, also beyond ``limit_s``."""
    return _matches(lines, pattern, limit_s, "any")


def _matches(lines: Sequence[str], pattern: str, limit_s: float, find: str) -> list[str]:
    request = {
        "patterns": [(pattern, "lines")],
        "streams": {"lines": "\n".join(lines)},
        "longest": LONGEST_LINE,
        "seconds": limit_s,
        "find": find,
    }
    try:
        matches: list[list[str]] = json.loads(_SEARCHER.ask(json.dumps(request).encode("ascii"), limit_s))
    except _SearcherLostError:
        raise ParseError(f"searching took more than {limit_s} s; the pattern may backtrack too much") from None
    return matches[0]


class _SearcherLostError(Exception):
    # The process that searches is gone, or prints nothing for too long. The message is its last output.
    def __init__(self, complaint: str, *, crashed: bool) -> None:
        super().__init__(complaint)
        self.crashed = crashed
        """Ended by itself, not by a limit."""


class _Searcher:
    # The process that searches for all of this one, begun when it is first needed, and anew after it was lost.
    #
    # It ends when its input does: whatever ends Ajuste ends it, at the latest when its search is at the limit. A group
    # of its own keeps the terminal's signals away.
    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._complaints = -1

    def ask(self, request: bytes, limit_s: float) -> bytes:
        with self._turn:
            if self._process is None or self._process.poll() is not None:
                self.end()
                self._begin()
            assert self._link is not None
            answer = bytearray()
            try:
                self._link.settimeout(limit_s)
                self._link.sendall(request + b"\n")
                while not answer.endswith(b"\n"):
                    some = self._link.recv(_CHUNK_BYTES)
                    if not some:
                        raise self._lost()
                    answer += some
            except OSError:  # It ended while it was being asked, or the time is up.
                raise self._lost() from None
            except BaseException:  # What it says now would be taken for another answer.
                self.end()
                raise
            return bytes(answer)

    def _begin(self) -> None:
        import socket  # few studies have patterns

        self._link, theirs = socket.socketpair()
        self._complaints = os.memfd_create("complaints")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(__file__).with_name("search_lines.py"))],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._complaints,
                process_group=0,
            )

    def _lost(self) -> _SearcherLostError:
        assert self._process is not None
        assert self._link is not None
        self._link.close()  # Else it may wait for more.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING_SECONDS)
        code = self._process.poll()
        complaint = os.pread(self._complaints, _COMPLAINT_BYTES, 0).decode(errors="replace").strip()[-_EXCERPT:]
        self.end()
        return _SearcherLostError(complaint, crashed=code is not None and code > 0)

    def end(self) -> None:
        if self._process is None or self._link is None:
            return
        self._link.close()
        self._process.kill()
        self._process.wait()
        os.close(self._complaints)
        self._process = None

    def let_go(self) -> None:
        # In a fork the process belongs to the parent.
        if self._process is not None and self._link is not None:
            self._link.close()
            os.close(self._complaints)
            self._process.poll()  # It is no child of this one, and so it counts as waited for.
        self._turn = threading.Lock()  # A thread that is not here may have the other one.
        self._process = None


_SEARCHER: Final = _Searcher()
atexit.register(_SEARCHER.end)
os.register_at_fork(after_in_child=_SEARCHER.let_go)


# Metrics by JSON pointers into the document that your own program prints (RFC 6901).


_FORM: Final = re.compile(r"(/([^~/]|~[01])*)*")
_INDEX: Final = re.compile(r"0|[1-9][0-9]*")
_OPENING: Final = re.compile(r"^[ \t]*[\[{]", re.MULTILINE)


class Pointer(BaseModel):
    """``pointer`` leads to the value of ``metric`` in the document on ``stream``: a number, or a text that has one
    with a unit.
    """

    model_config = ConfigDict(frozen=True)
    metric: str
    pointer: str
    stream: str = "stdout"
    unit: str = ""


def check_pointer(pointer: str) -> None:
    """Raise RequestError for what is no JSON pointer."""
    if not pointer.startswith("/"):
        raise RequestError(f'"{pointer}" is not a JSON pointer; expected a slash first, as in /jobs/0/write/iops')
    if not _FORM.fullmatch(pointer):
        raise RequestError(f'"{pointer}" is not a JSON pointer; expected ~0 for ~, and ~1 for a slash in a name')


def follow(document: Any, pointer: str) -> Any:
    """Return the value in ``document``. Raises ParseError that says how far the pointer led."""
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
    """Return the metrics of ``pointers`` in the text of each stream, which must be one JSON document. Lines before its
    opening bracket are skipped (fio prints its remarks there). Raises ParseError.
    """
    documents = {stream: _document(streams.get(stream, ""), stream) for stream in {p.stream for p in pointers}}
    metrics = {}
    for pointer in pointers:
        value = follow(documents[pointer.stream], pointer.pointer)
        if isinstance(value, str) and value[:1].isdecimal():
            metrics[pointer.metric] = amount(value, pointer.unit, f'"{pointer.metric}"')
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ParseError(f'{pointer.pointer} is {_kind(value)}; expected a number for "{pointer.metric}"')
        metrics[pointer.metric] = finite(value, f'"{pointer.metric}"')
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
