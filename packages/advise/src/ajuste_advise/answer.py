"""The advice in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of, listed, percent
from ajuste_advise.model import Line, Look, Tried, Where

PARTS: Final[Mapping[Where, str]] = {
    "user": "running its own code",
    "kernel": "the kernel's work for it",
    "other-programs": "other programs on the CPUs",
    "interrupts": "interrupts",
    "cpu-wait": "waits for a CPU",
    "disk-wait": "waits for a disk",
    "memory-wait": "waits for memory",
    "idle": "idle CPUs",
}
"""Where the time goes, in the words of every report."""

_MOST_NAMED: Final = 2


def where_sentence(look: Look) -> str:
    """Return where most of the time goes: ``62 % of the time is waits for a disk, in fsync``."""
    if not look.shares:
        return "The kernel's figures do not show where the time goes"
    first = look.shares[0]
    spots = {"user": look.functions, "kernel": look.calls, "disk-wait": look.calls}.get(first.where, ())
    named = listed([spot.name for spot in spots[:_MOST_NAMED]])
    return f"{percent(round(first.share, 2))} of the time is {PARTS[first.where]}{f', mostly in {named}' if named else ''}"


def settings_text(lines: Sequence[Line]) -> str:
    """Return the settings as they are typed: ``vm.swappiness=10 and policy=batch``."""
    return listed([f"{line.setting}={line.level}" for line in lines])


def effect_text(verdict: Verdict) -> str:
    """Return ``elapsed −31 % (−38 % to −24 %)``."""
    return f"{verdict.metric} {verdict.effect} ({verdict.interval})"


def answer_sentence(
    lines: Sequence[Line],
    proof: Verdict | None,
    tried: Sequence[Tried],
    look: Look,
    at_most: float | None,
    minutes: float,
) -> str:
    """Return the answer: what to set and what it does, or that nothing is proved to help, and where the time goes."""
    count = len({row.setting for row in tried})
    if lines and proof is not None and proof.verdict == "improves":
        matter = f"{len(lines)} of {count_of(count, 'setting')} that {'was' if count == 1 else 'were'} tried "
        return f"Set {settings_text(lines)}: {effect_text(proof)}. {matter}{'matters' if len(lines) == 1 else 'matter'}."
    where = where_sentence(look)
    if not tried:
        return f"No setting of the catalogue can matter here: {where}."
    if lines and proof is not None:
        return (
            f"Nothing is proved to help: {settings_text(lines)} looked best, and fresh blocks say {effect_text(proof)}. "
            f"{where}."
        )
    if at_most is not None:
        limit = percent(round(max(at_most, 0.001), 3))
        return f"None of {count_of(count, 'setting')} improves {look.metric} by more than {limit}: {where}."
    open_ = [row for row in tried if row.verdict is not None and row.verdict.is_open]
    return (
        f"None of {count_of(count, 'setting')} is proved to improve {look.metric} within {minutes:g} minutes; "
        f"{count_of(len(open_), 'level')} undecided. {where}."
    )
