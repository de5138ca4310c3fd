"""Examples in the help of every command. A test runs them all, so that none is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

PROMPT: Final = "$ "
_UNWRAPPED: Final = "\b\n"  # before a paragraph whose lines are to stay as they are


def example(*commands: str) -> Callable[[F], F]:
    """Adds ``commands``, as they are typed, to the help of the command that is decorated."""

    def with_examples(function: F) -> F:
        function.__doc__ = examples(inspect.getdoc(function) or "", *commands)
        return function

    return with_examples


def examples(text: str, *commands: str) -> str:
    """The help ``text`` with examples after it; for groups of commands, which are no functions."""
    title = "Example:" if len(commands) == 1 else "Examples:"
    lines = "\n".join(f"  {PROMPT}{command}" for command in commands)
    return f"{text}\n\n{_UNWRAPPED}{title}\n{lines}"


def examples_in(text: str) -> list[str]:
    """The commands that a help text shows."""
    lines = (line.strip() for line in text.splitlines())
    return [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
