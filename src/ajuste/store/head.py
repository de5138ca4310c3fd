"""Heads of runs, by which they are found and listed, and what people say about them: tags, and notes in a file each,
beside the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ajuste.machine.files import make_directory, remove_file, replace_file
from ajuste.machine.home import Home
from ajuste.model.caller import open_found
from ajuste.model.error import RequestError
from ajuste.model.wording import visible_line

PINNED: Final = "pinned"
"""The tag of runs that lists begin with."""
LONGEST: Final = 10_000
_RUN: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]{0,99}")
_TAG: Final = re.compile(r"[^\s,#]{1,40}")


def valid_tags(words: Iterable[str]) -> list[str]:
    """Return the tags once each, in alphabetical order. Raises RequestError for an invalid tag."""
    tags = sorted(set(words))
    for word in tags:
        if not _TAG.fullmatch(word) or not word.isprintable():
            raise RequestError(
                f"tag {visible_line(word[:80])!r}: expected 1 to 40 printable characters without blanks, commas and #"
            )
    return tags


class RunNotes:
    """The notes by the id of the run."""

    def __init__(self, home: Home) -> None:
        self._directory = home.data / "notes"

    def of(self, run: str) -> str:
        """Empty where nobody wrote any."""
        if not _RUN.fullmatch(run):
            return ""
        try:
            with open_found(self._directory / f"{run}.txt") as file:
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def all(self) -> dict[str, str]:
        """Return the notes of all runs that have one."""
        return {file.stem: self.of(file.stem) for file in self._directory.glob("*.txt")}

    def keep(self, run: str, text: str) -> None:
        """Raises RequestError for a text that is too long."""
        if not _RUN.fullmatch(run):
            raise RequestError(f"run {run[:80]!r} not found in the store", hint="list runs with ajuste report")
        if len(text) > LONGEST:
            raise RequestError(f"the note has {len(text):,} characters; expected at most {LONGEST:,}")
        file = self._directory / f"{run}.txt"
        if not text.strip():
            remove_file(file)
            return
        make_directory(self._directory)
        replace_file(file, f"{text.strip()}\n".encode())

    def forget(self, run: str) -> None:
        """Remove a run's note."""
        with suppress(RequestError):
            self.keep(run, "")


IMPORTED: Final = "imported-"
"""Before the fingerprint of a run that came in a bundle: it is shown, and never stands for a measurement of this store,
so that nobody's file answers the question of `ajuste run`."""


class Head(NamedTuple):
    """The columns by which a run is found, and those that are listed of it.

    ``begun`` and ``taken_up`` count what happened in this store, so that no clock decides which run is the latest: when
    the run was begun, and when it was begun, gone on with, or shown instead of being measured again. ``deleted``: it is
    kept for the trials that other runs have of it. Of what it measured itself, ``trials`` and ``size_bytes`` are how
    much, ``total`` and ``recorded`` the sums of the checksums of its trials and recordings: none is missing or stale.
    """

    id: str
    study: str
    fingerprint: str
    seed: int
    created: str
    ajuste: str
    begun: int
    taken_up: int
    base: str
    deleted: bool
    stopped: str
    kernel: str
    workload: str
    answer: str
    tags: str
    size_bytes: int
    trials: int
    total: int
    recorded: int
    check: int

    @property
    def kernels(self) -> tuple[str, ...]:
        """Return each kernel that was compared, or ``host``."""
        return tuple(self.kernel.split(", "))

    @property
    def imported(self) -> bool:
        """Return whether it came in a bundle."""
        return self.fingerprint.startswith(IMPORTED)


@dataclass(frozen=True)
class Run:
    """A run of a study as the store has it. ``stopped`` is empty while it can go on; a run that ended never changes.
    It has the trials of its ``base``, if it has one, and its own.
    """

    id: str
    study: str
    fingerprint: str
    seed: int
    created: str
    ajuste: str
    named: str
    resolved: str
    stopped: str = ""
    stopped_because: str = ""
    base: str = ""
    answer: str = ""
    environment: dict[str, Any] = field(default_factory=dict)

    @property
    def imported(self) -> bool:
        """Return whether it came in a bundle: others measured it."""
        return self.fingerprint.startswith(IMPORTED)


def run_named(heads: Sequence[Head], text: str) -> Head | None:
    """Return which run has the id ``text``, or is that of the study of that name which was taken up last: an imported
    one only where there is no other.
    """
    named = [head for head in heads if text in (head.id, head.study) and not head.deleted]
    return max(named, key=lambda head: (not head.imported, head.taken_up, head.id)) if named else None
