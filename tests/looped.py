"""Tests of many entries: each loop is one test, whose failure names every entry that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any

import pytest

Test = Callable[..., None]


def each(entries: Iterable[Any], name: Callable[[Any], str] = str) -> Callable[[Test], Test]:
    """Turn a test of one entry, its first parameter, into one of all ``entries``; fixtures follow."""

    def looped(test: Test) -> Test:
        first, *fixtures = signature(test).parameters.values()

        @wraps(test)
        def loop(**fixtures: Any) -> None:
            problems = []
            for entry in entries:
                try:
                    test(**{first.name: entry}, **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - each entry is looked at
                    problems.append(f"{name(entry)}: {type(error).__name__}: {error}")
            assert not problems, "\n\n".join(problems)

        loop.__signature__ = signature(test).replace(parameters=fixtures)  # type: ignore[attr-defined]
        return loop

    return looped
