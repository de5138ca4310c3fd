"""What was seen of a running kernel, before anybody judges it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Said = tuple[str, ...]
"""The words of a command, without the program's name."""


@dataclass(frozen=True)
class Facts:
    """``build`` is ``uname -v``. ``reads`` has the content of files, ``unreadable`` why others could not be read;
    ``chosen`` what a scheduler file said after each choice was written to it, ``refused`` why one was not taken.
    ``output`` and ``failed`` are of the bundled programs that were run. ``disk`` is the block device that was asked.
    """

    build: str
    disk: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    chosen: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    output: Mapping[Said, str] = field(default_factory=dict)
    failed: Mapping[Said, str] = field(default_factory=dict)

    def sight(self, path: str) -> str:
        """What a person sees who looks at the file."""
        return self.reads.get(path, self.unreadable.get(path, "not looked at"))

    def figures(self, words: Said) -> dict[str, str]:
        """``name=value`` of what a bundled program printed; none if it failed."""
        return dict(re.findall(r"(\w+)=(\S+)", self.output.get(words, "")))
