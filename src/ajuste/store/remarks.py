"""What people say about runs: tags, which the store has, and notes: a file each, beside the store."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from ajuste.machine.files import make_directory
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.wording import visible_line

PINNED: Final = "pinned"
"""The tag of runs that lists begin with."""
LONGEST: Final = 10_000
_RUN: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]{0,99}")
_TAG: Final = re.compile(r"[^\s,#]{1,40}")


def valid_tags(words: Iterable[str]) -> list[str]:
    """Each of them once, in order of the alphabet. Raises RequestError for what is no tag."""
    found = sorted(set(words))
    for word in found:
        if not _TAG.fullmatch(word) or not word.isprintable():
            raise RequestError(
                f"tag {visible_line(word[:80])!r}: expected 1 to 40 printable characters without blanks, commas and #"
            )
    return found


class RunNotes:
    """By the id of the run."""

    def __init__(self, home: Home) -> None:
        self._directory = home.data / "notes"

    def of(self, run: str) -> str:
        """Empty where nobody wrote any."""
        if not _RUN.fullmatch(run):
            return ""
        try:
            return (self._directory / f"{run}.txt").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def all(self) -> dict[str, str]:
        """Of every run that has one."""
        return {file.stem: self.of(file.stem) for file in self._directory.glob("*.txt")}

    def keep(self, run: str, text: str) -> None:
        """Raises RequestError for a text that is too long."""
        if not _RUN.fullmatch(run):
            raise RequestError(f"run {run[:80]!r} not found in the store", hint="list runs with ajuste report")
        if len(text) > LONGEST:
            raise RequestError(f"the note has {len(text):,} characters; expected at most {LONGEST:,}")
        file = self._directory / f"{run}.txt"
        if not text.strip():
            file.unlink(missing_ok=True)
            return
        make_directory(self._directory)
        new = file.with_suffix(".part")
        new.write_text(text.strip() + "\n", encoding="utf-8")
        new.replace(file)

    def forget(self, run: str) -> None:
        """As if nobody had written any."""
        with suppress(RequestError):
            self.keep(run, "")
