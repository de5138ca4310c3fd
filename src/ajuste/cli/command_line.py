"""The command that a person gave."""

from __future__ import annotations

import shlex
import sys
from typing import Final

_SHOWING: Final = frozenset({"--quiet", "--json", "--fresh"})


def command_line() -> str:
    """As one line for a shell, without the words that only say how its results are shown or that old ones are not."""
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    own = [word for word in words[:end] if word not in _SHOWING]
    return shlex.join(["ajuste", *own, *words[end:]])
