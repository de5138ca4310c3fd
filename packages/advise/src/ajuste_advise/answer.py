"""The advice in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from ajuste.model.verdict import Verdict
from ajuste.model.wording import amount, count_of, first_few, listed, percent, sentence_start
from ajuste_advise.budget import Budget
from ajuste_advise.candidates import Choice
from ajuste_advise.model import Line, Look, TimeShare, Tried, Where
from ajuste_search.tuning.model import KeptLimit

PARTS: Final[Mapping[Where, str]] = {
    "user": "running its own code",
    "kernel": "the kernel's work for it",
    "other-programs": "other programs on the CPUs",
    "interrupts": "interrupts",
    "waiting": "not running: waiting or sleeping",
    "cpu-wait": "waits for a CPU",
    "disk-wait": "waits for a disk",
    "memory-wait": "waits for memory",
    "idle": "idle CPUs",
}
"""The parts of the time, in the words of every report."""

_MOST_NAMED: Final = 2
_MOST_CANDIDATES: Final = 4
_BUSY: Final[frozenset[Where]] = frozenset({"user", "kernel", "other-programs", "interrupts"})
_WAITS: Final[frozenset[Where]] = frozenset({"cpu-wait", "disk-wait", "memory-wait"})
# From this share of the CPU time on, the work on the CPUs decides, not what waits for them.
_MOSTLY_BUSY: Final = 0.85


def where_sentence(look: Look) -> str:
    """Return where most of the time goes: ``62 % of the time is waits for a disk, mostly in fsync``."""
    part = main_part(look.shares)
    if part is None:
        return "the kernel's figures do not show where the time goes"
    spots = {"user": look.functions, "kernel": look.calls, "disk-wait": look.calls}.get(part.where, ())
    names = listed([spot.name for spot in spots[:_MOST_NAMED]])
    where = f"{PARTS[part.where]}{f', mostly in {names}' if names else ''}"
    return f"{percent(round(part.share, 2))} of the time is {where}{_contended(part, look.shares)}"


def _contended(part: TimeShare, shares: Sequence[TimeShare]) -> str:
    # Who waits is not known, only that some task does: the workload may wait for a CPU then, too.
    wait = next((other.share for other in shares if other.where == "cpu-wait"), 0.0)
    if part.where != "waiting" or wait < part.share:
        return ""
    return f", while some task waited for a CPU in {percent(round(wait, 2))} of it"


def main_part(shares: Sequence[TimeShare]) -> TimeShare | None:
    """Return the part with most of the time. Waits count only where the CPUs are not busy: there they decide."""
    by_part = {part.where: part for part in shares}
    busy = [part for part in shares if part.where in _BUSY]
    waits = [part for part in shares if part.where in _WAITS]
    if sum(part.share for part in busy) >= _MOSTLY_BUSY or not (waits or "waiting" in by_part):
        return max(busy, key=lambda part: part.share, default=by_part.get("idle"))
    if (waiting := by_part.get("waiting")) is not None and all(waiting.share >= part.share for part in busy):
        known = [part for part in waits if part.where != "cpu-wait" and part.share >= waiting.share / 2]
        return max(known, key=lambda part: part.share, default=waiting)
    # A CPU is waited for wherever several tasks want to run; that alone explains nothing while one is idle.
    return max((*busy, *waits), key=lambda part: part.share)


def settings_text(lines: Sequence[Line]) -> str:
    """Return the settings as they are typed: ``vm.swappiness=10 and policy=batch``."""
    return listed([f"{line.setting}={line.level}" for line in lines])


def effect_text(verdict: Verdict) -> str:
    """Return ``elapsed −31 % (−38 % to −24 %)``; of a difference also of how much it is one."""
    of = f" of {amount(verdict.old, verdict.unit)}" if verdict.scale == "difference" and verdict.old else ""
    return f"{verdict.metric} {verdict.effect}{of} ({verdict.interval})"


def answer_sentence(
    look: Look,
    choice: Choice,
    tried: Sequence[Tried],
    lines: Sequence[Line],
    proof: Verdict | None,
    broken: Sequence[KeptLimit],
    at_most: float | None,
    budget: Budget,
) -> str:
    """Return the answer: what to set and what it does, or that nothing is proved to help, and where the time goes."""
    count = len({row.setting for row in tried})
    where = where_sentence(look)
    if not tried:
        return f"{_not_tried(choice)}. {sentence_start(where)}."
    improves = proof is not None and proof.verdict == "improves"
    if lines and proof is not None and improves and broken:
        verb = "breaks" if broken[0].holds == "no" else "is not known to keep"
        return f"Nothing is advised: {settings_text(lines)} improves {effect_text(proof)}, but {verb} {broken[0].text}."
    if lines and proof is not None and improves:
        needed = "is needed" if len(lines) == 1 else "are needed"
        tally = f"Of {count_of(count, 'setting')} tried, {len(lines)} {needed}"
        return f"Set {settings_text(lines)}: {effect_text(proof)}. {tally}."
    if lines and proof is not None:
        looked = f"{settings_text(lines)} looked best, and fresh blocks say {effect_text(proof)}"
        return f"Nothing is proved to help: {looked}; {where}."
    if at_most is not None:
        limit = percent(round(max(at_most, 0.001), 3))
        return f"{_none_of(count)} improves {look.metric} by more than {limit}: {where}."
    best = max(row.gain for row in tried)
    looked = f"the best looked {percent(round(best, 3))} better" if best > 0 else "none looked better"
    unproved = f"{_none_of(count)} is proved to improve {look.metric} in {budget}"
    return f"{unproved}; {looked}. {sentence_start(where)}."


def _none_of(count: int) -> str:
    return "Not even the one setting tried" if count == 1 else f"None of {count_of(count, 'setting')} tried"


def _not_tried(choice: Choice) -> str:
    if choice.candidates:
        first = listed(first_few([candidate.setting for candidate in choice.candidates], _MOST_CANDIDATES))
        return f"{count_of(len(choice.candidates), 'setting')} may matter: {first}"
    locked = [row for row in choice.untried if row.why == "locked"]
    if locked:
        words, count = Counter(row.words for row in locked).most_common(1)[0]
        return f"{count_of(count, 'setting')} may matter, but cannot be changed here ({words})"
    return "No setting of the catalogue can matter here"
