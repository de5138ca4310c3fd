"""Rules of stopping, and the trials to repeat."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

from ajuste.design.blocks import Allocation
from ajuste.model.results import Clock
from ajuste.model.trial import Trial
from ajuste.model.verdict import Finding
from ajuste.model.wording import count_of

MOMENT_SECONDS = 1.0
"""Blocks on a host are measured together for as long as this before anybody looks. An interruption loses no more.

To read and keep a run of ``true`` takes as long as the run itself: what is read in between makes the whole longer.
"""

MOST_ATTEMPTS = 2
"""A trial that was not clean is run once more, and then left as it is."""


BEST_PART = 3
"""A search for the best ends when one in so many configurations may still be it."""

Why = Literal["decided", "budget", "time", "irrelevant", "interrupted", "failed"]
"""The reason why a run ended; ``irrelevant``: what varies had no chance to matter. What is decided here is never
``interrupted``.
"""

LOOKS_EACH: Final = 40
"""Up to so many blocks the trials are looked at after every one."""

RARER: Final = 1.05
"""Factor between the numbers of blocks at two later looks."""

REVIEW: Final = 1.1
"""Least factor of the numbers of blocks between two reviews of what is still measured."""

# So many times what was measured is the most that is expected to be left.
_FARTHEST: Final = 12


@dataclass(frozen=True)
class StoppingLimits:
    """The budget: measured blocks (without warm-up), minutes of the host's time, and seconds of it at least. ``unit``
    is what is counted, for people.
    """

    min_blocks: int
    max_blocks: int
    max_minutes: float
    min_seconds: float = 0.0
    unit: str = "block"


@dataclass(frozen=True)
class Pace:
    """The progress of a run: ``measured`` blocks, the last one in ``seconds``; the next one has ``trials``, and
    ``left_s`` of the budget are left.
    """

    seconds: float
    measured: int
    trials: int
    left_s: float


@dataclass(frozen=True)
class Mean:
    """The precision of the mean of ``metric`` where nothing is compared: sufficient or not, from ``runs`` runs."""

    metric: str
    known: bool
    runs: int


@dataclass(frozen=True)
class Stop:
    """The end of a run: ``why`` in one word, ``words`` for people."""

    why: Why
    words: str


def stop(
    findings: Sequence[Finding], blocks: int, minutes: float, limits: StoppingLimits, averages: Sequence[Mean] = ()
) -> Stop | None:
    """Return whether to stop after ``blocks`` measured blocks and ``minutes``; ``None`` means: go on.

    The deciding ones of ``findings`` count: each must be decided, and precise if that was asked for. ``averages`` are
    given where there is one configuration only, and so nothing to find out by comparing. Looking after every block is
    what the intervals are made for (see ``ajuste_stats.confidence_sequences``): they hold at all numbers of blocks
    together, so also at the one at which they are narrow enough.
    """
    deciding = [v for v in findings if v.deciding]
    open_ones = [v for v in deciding if v.is_open]
    unknown = [mean for mean in averages if not mean.known]
    if blocks >= limits.min_blocks:
        if not open_ones and not unknown and 60 * minutes >= limits.min_seconds:
            if not averages:
                return Stop("decided", _decided(deciding, count_of(blocks, limits.unit)))
            subject = "the mean is" if len(averages) == 1 else "all means are"
            return Stop("decided", f"{subject} known precisely enough after {count_of(blocks, 'run')}")
        nothing = [v.blocks == 0 for v in open_ones] + [mean.runs == 0 for mean in unknown]
        if nothing and all(nothing):
            pairs, missing = "trial", ", ".join(mean.metric for mean in unknown)
            if open_ones:
                pairs, missing = "pair of trials", ", ".join(f"{v.metric} under {v.subject}" for v in open_ones[:3])
                missing += " …" if len(open_ones) > 3 else ""
            return Stop("failed", f"found no clean {pairs} for {missing} after {count_of(blocks, limits.unit)}")
    still = _still(open_ones) if not averages else _still_unknown(unknown)
    if blocks >= limits.max_blocks:
        return Stop("budget", f"reached the limit of {count_of(limits.max_blocks, limits.unit)}; {still}")
    if minutes >= limits.max_minutes:
        return Stop(
            "time",
            f"reached the limit of {time_words(limits.max_minutes)} after {count_of(blocks, limits.unit)}; {still}",
        )
    return None


def stop_irrelevant(findings: Sequence[Finding], blocks: int, min_blocks: int) -> Stop | None:
    """Return whether to stop because nothing that varies has a chance to matter. As many blocks as were asked for are
    measured in any case; where something is certain all the same, the rest is measured, too.
    """
    certain = any(finding.deciding and finding.verdict not in ("equivalent", "undecided") for finding in findings)
    if certain or blocks < min_blocks:
        return None
    return Stop("irrelevant", f"what varies had no chance to matter in {count_of(blocks, 'block')}")


def stop_at_best(
    contenders: int, configurations: int, blocks: int, minutes: float, limits: StoppingLimits
) -> Stop | None:
    """Return whether to stop a study that looks for the best: when few enough may be, or the budget is spent."""
    may = f"{contenders} of {configurations} configurations may be the best after {count_of(blocks, 'block')}"
    few = contenders <= max(1, configurations // BEST_PART)
    if few and blocks >= limits.min_blocks and 60 * minutes >= limits.min_seconds:
        return Stop("decided", may)
    if blocks >= limits.max_blocks:
        return Stop("budget", f"reached the limit of blocks; {may}")
    if minutes >= limits.max_minutes:
        return Stop("time", f"reached the limit of {time_words(limits.max_minutes)}; {may}")
    return None


def is_look(blocks: int, looked: int, limits: StoppingLimits) -> bool:
    """Return whether to analyse after ``blocks`` measured blocks, if it was done last after ``looked``: when one of the
    looks (see ``design.stopping``) lies in between, and at the end of the budget.
    """
    return blocks >= limits.max_blocks or look_from(looked + 1) <= blocks


def hopeless(trials: Sequence[Trial], is_broken: Callable[[Trial], bool]) -> Trial | None:
    """Return a trial of the first block whose configuration broke in every attempt: going on is pointless."""
    first: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.slot.block == 0:
            first.setdefault(trial.slot.configuration, []).append(trial)
    return next((attempts[-1] for attempts in first.values() if all(map(is_broken, attempts))), None)


def wants_repeat(attempts: Sequence[Trial], clock: Clock) -> bool:
    """Return whether one slot of the design should be run again after these attempts.

    Under the virtual clock the same seed gives the same trial, so there only one that could not be measured at all
    (the host may be to blame) is worth another attempt.
    """
    if not attempts or len(attempts) >= MOST_ATTEMPTS:
        return False
    status = attempts[-1].status
    return status == "failed" or (status == "flagged" and clock == "wall")


def _decided(findings: Sequence[Finding], counted: str) -> str:
    if not findings:
        return f"measured {counted}; there is nothing to compare"
    if any(finding.is_undecided for finding in findings):
        return f"more blocks would decide nothing after {counted}"
    message = "all verdicts decided" if len(findings) > 1 else "the verdict is decided"
    precise = " with the requested precision" if any(finding.precise for finding in findings) else ""
    fewest, most = min(finding.blocks for finding in findings), max(finding.blocks for finding in findings)
    of_each = f", with {fewest} to {most} of them each" if fewest < most else ""
    return f"{message}{precise} after {counted}{of_each}"


def _still_unknown(unknown: Sequence[Mean]) -> str:
    if not unknown:
        return "all means are known precisely enough, but from fewer than the minimum of runs"
    return f"not known precisely enough: {', '.join(mean.metric for mean in unknown)}"


def time_words(minutes: float) -> str:
    """Return a time in minutes, or in seconds: ``20 minutes``."""
    number, noun = (round(minutes, 1), "minute") if minutes >= 1 else (round(60 * minutes, 1), "second")
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def _still(open_ones: list[Finding]) -> str:
    if not open_ones:
        return "all verdicts decided, but with fewer than the minimum of blocks"
    undecided = sum(finding.is_undecided for finding in open_ones)
    wide = len(open_ones) - undecided
    parts = []
    if undecided:
        parts.append("one verdict is undecided" if undecided == 1 else f"{undecided} verdicts are undecided")
    if wide:
        parts.append(f"{'one interval is' if wide == 1 else f'{wide} intervals are'} less precise than requested")
    return ", ".join(parts)


def in_a_moment(pace: Pace, limits: StoppingLimits) -> int:
    """Return the number of blocks to measure before looking again, if each takes as long as the last one.
    Not beyond the least that must be measured, nor beyond the budget.
    """
    wanted = int(MOMENT_SECONDS / pace.seconds) - 1
    return max(0, min(wanted, _end(pace, limits) - pace.measured - 1))


def on_each(machines: int, pace: Pace, limits: StoppingLimits) -> int:
    """Return the same as ``in_a_moment`` where every machine has a block, and more of those that take but a moment.
    What is under way when it could have been decided is measured to its end, and counts.
    """
    each = max(1, int(MOMENT_SECONDS / pace.seconds))
    return max(0, min(machines * each - 1, _end(pace, limits) - pace.measured - 1))


def _end(pace: Pace, limits: StoppingLimits) -> int:
    return limits.min_blocks if pace.measured < limits.min_blocks else limits.max_blocks


def up_to_a_look(wanted: int, measured: int, limits: StoppingLimits) -> int:
    """Return the number of blocks ``wanted``, but not beyond the next look at which it may be time to stop;
    ``measured`` are before this one.
    """
    end = limits.min_blocks if measured < limits.min_blocks else min(look_from(measured + 1), limits.max_blocks)
    return max(0, min(wanted, end - measured - 1))


# When the trials are looked at: a schedule of numbers of blocks that nothing measured has any influence on.
#
# Any choice of looks that does not depend on the figures leaves the intervals valid (see
# ``confidence_sequences``). That it does not depend on where a run was interrupted either makes an interrupted
# run end as an undisturbed one.


def looks() -> Iterator[int]:
    """Yield the numbers of measured blocks after which there is a look, without end."""
    yield from range(1, LOOKS_EACH)
    number = LOOKS_EACH
    while True:
        yield number
        number = math.ceil(RARER * number)


def look_from(blocks: int) -> int:
    """Return the first look at ``blocks`` measured blocks or later."""
    if blocks <= LOOKS_EACH:
        return max(1, blocks)
    return next(number for number in looks() if number >= blocks)


def reviews(min_blocks: int) -> Iterator[int]:
    """Return the looks that settle what goes on being measured; the first at ``min_blocks`` or soon after."""
    number = look_from(min_blocks)
    for _ in count():
        yield number
        number = look_from(max(number + 1, math.ceil(REVIEW * number)))


def review_from(blocks: int, min_blocks: int) -> int:
    """Return the first review at ``blocks`` measured blocks or later."""
    return next(number for number in reviews(min_blocks) if number >= blocks)


# Estimates of how long a run will take.


@dataclass(frozen=True)
class Remaining:
    """The ``blocks`` that all have (the baseline at least) until the end.

    ``blocks_left`` are those of configurations that are left out of some. ``at_most``: the budget ends it, or the end
    is unknown.
    """

    blocks: int
    blocks_left: Mapping[str, int]
    at_most: bool

    def seconds(self, mean_seconds: Mapping[str, float]) -> float:
        """Return how long all of it takes, from the mean time of a trial of every configuration."""
        return sum(self.blocks_left.get(name, self.blocks) * each for name, each in mean_seconds.items())


def remaining(
    done: int, findings: Sequence[Finding], *, min_blocks: int, max_blocks: int, allocation: Allocation = "all"
) -> Remaining:
    """Return what is still to be measured after ``done`` measured blocks, if the deciding ``findings`` need as many
    more blocks as they say.

    A configuration that is undecided goes on until the review after it is decided; the run, until the look after
    everything is.
    """
    budget = max(0, max_blocks - done)
    deciding = [finding for finding in findings if finding.deciding]
    wanted: dict[str, int | None] = {finding.subject: 0 for finding in deciding}
    for finding in deciding:
        if finding.is_undecided or finding.precise is False:
            known = wanted[finding.subject]
            more = _likely(finding)
            wanted[finding.subject] = None if more is None or known is None else max(known, more)
    if not wanted or allocation == "best":
        return Remaining(budget, {}, at_most=True)
    ends = {name: None if more is None else max(done + more, min_blocks) for name, more in wanted.items()}
    known_ends = [budget + done if end is None else look_from(end) for end in ends.values()]
    blocks = max(0, min(max(known_ends), max_blocks) - done)
    at_most = any(end is None or end > max_blocks for end in ends.values())
    if allocation == "all":
        return Remaining(blocks, {}, at_most)
    trials_missing = {
        name: min(blocks, review_from(end, min_blocks) - done if wanted[name] or done < min_blocks else 0)
        for name, end in ends.items()
        if end is not None
    }
    return Remaining(blocks, trials_missing, at_most)


def _likely(finding: Finding) -> int | None:
    # Return the number of blocks that decide it, or None if that is not known.
    #
    # `more_blocks` takes the effect to be exactly as estimated. It is off by its standard error to either side, which
    # makes it less likely to lie close to a limit, where deciding takes longest: the squares of both distances add up.
    if finding.more_blocks is None or not finding.blocks:
        return finding.more_blocks
    return max(1, round(1 / (1 / finding.more_blocks + 1 / (_FARTHEST * finding.blocks)))) if finding.more_blocks else 0
