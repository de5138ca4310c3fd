"""Metrics by patterns that a person wrote for the output of a program of their own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from ajuste.model.error import RequestError
from ajuste.outputs.failure import ParseError, figure

SECONDS: Final = 5
"""A search that takes longer has a pattern that backtracks without end."""

LONGEST_LINE: Final = 4096
"""Characters of a line that are searched."""


class Pattern(BaseModel):
    """``pattern`` is sought in each line of ``stream``; its first group is the value of ``metric``."""

    model_config = ConfigDict(frozen=True)
    metric: str
    pattern: str
    stream: str = "stdout"


def check_pattern(pattern: str) -> None:
    """Raises RequestError for what is no regular expression or has no group."""
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as failure:
        raise RequestError(f"not a regular expression: {failure}; expected the syntax of Python") from None
    if compiled.groups < 1:
        raise RequestError("the pattern has no group; expected the number in ( )")


def search(patterns: Sequence[Pattern], streams: dict[str, str]) -> dict[str, float]:
    """The metrics of ``patterns`` in the text of each stream; the last line that matches counts.

    Python's ``re`` cannot be stopped, and a pattern such as ``(a+)+b`` runs for ever on the wrong text. So the search
    is done in a process of its own (``search_lines.py``), which has a limit of processor time. Raises ParseError.
    """
    request = json.dumps(
        {"patterns": [(p.pattern, p.stream) for p in patterns], "streams": streams, "longest": LONGEST_LINE}
    )
    script = Path(__file__).with_name("search_lines.py")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(script), str(SECONDS)],
            input=request.encode("ascii"),
            capture_output=True,
            timeout=10 * SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _too_slow(patterns) from None
    if done.returncode < 0:
        raise _too_slow(patterns)
    if done.returncode:
        raise ParseError(f"the search for patterns failed: {done.stderr.decode(errors='replace').strip()[-200:]}")
    found: list[str | None] = json.loads(done.stdout)
    metrics = {}
    for pattern, text in zip(patterns, found, strict=True):
        if text is None:
            raise ParseError(
                f'no line of {pattern.stream} matches the pattern of "{pattern.metric}", {pattern.pattern}'
            )
        metrics[pattern.metric] = figure(text, f'"{pattern.metric}"')
    return metrics


def _too_slow(patterns: Sequence[Pattern]) -> ParseError:
    names = ", ".join(pattern.metric for pattern in patterns)
    return ParseError(
        f"searching for {names} took more than {SECONDS} s; a pattern backtracks too much",
        hint="avoid nested repetitions, such as (a+)+",
    )
