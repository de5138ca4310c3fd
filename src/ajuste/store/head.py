"""What a run is found by and listed with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ajuste.store.checks import UNREADABLE, DamageError, check_of

STORE_VERSION: Final = 4
CHECKED_BYTES: Final = 16 << 20
"""A file up to this size is checked whenever it is opened: that takes some hundredths of a second."""
HEAD: Final = (
    *("id", "study", "fingerprint", "seed", "created", "ajuste", "begun", "taken_up", "unverified_before"),
    *("base", "deleted", "stopped", "kernel", "workload", "answer", "tags", "size_bytes"),
)
_TRUTHS: Final = tuple(map(HEAD.index, ("unverified_before", "deleted")))


class Head(NamedTuple):
    """By what a run is found, and what is listed of it."""

    id: str
    study: str
    fingerprint: str
    seed: int
    created: str
    ajuste: str
    begun: int
    taken_up: int
    unverified_before: bool
    base: str
    deleted: bool
    stopped: str
    kernel: str
    workload: str
    answer: str
    tags: str
    size_bytes: int
    check: int


def verify_head(*values: Any) -> None:
    """Raises DamageError for the short values of a run that do not have the checksum after them."""
    if found_of(lambda: check_of(*values[:-1])) != values[-1]:
        raise DamageError(f"the entry of run {values[0]} is damaged: its checksum differs")


def found_of(check: Any) -> int | None:
    """The checksum, or None of what no row that was written can be: a type, or a text, that a flipped bit made."""
    try:
        found: int = check()
    except UNREADABLE:
        return None
    return found


def run_named(found: Sequence[Head], text: str) -> str | None:
    """Which run has the id ``text``, or is that of the study of that name which was taken up last."""
    named = [head for head in found if text in (head.id, head.study) and not head.deleted]
    return max(named, key=lambda head: (head.taken_up, head.id)).id if named else None


def head_of(row: Sequence[Any]) -> Head:
    """The short values of a run and their checksum. Raises DamageError."""
    values = list(row)
    for place in _TRUTHS:
        values[place] = bool(values[place])
    verify_head(*values)
    return Head(*values)
