"""Explanation of a difference from the baseline: the recordings of two schedulers in words, greatest change first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ajuste.analysis.costs import compare_costs
from ajuste.analysis.divergence import divergence
from ajuste.model.decision import Divergence
from ajuste.model.explanation import Explanation, Recorded
from ajuste.model.results import Results
from ajuste.model.scheduling import Preemption, Recording
from ajuste.model.verdict import Verdict
from ajuste.model.wording import amount, listed, number, percent, sentence_start, signed

LEAST_RATIO: Final = 1.1
"""Smaller changes count as none: there is one trial of each."""

LEAST_COUNT: Final = 5
"""Smaller differences in switches, wake-ups or migrations are not mentioned."""

LEAST_QUANTILE: Final = 20
"""A 95 % quantile of fewer values says nothing."""

MOST_CHANGES: Final = 5

_CAUSES: Final = {
    "by_wakeup": "wake-up preemptions",
    "by_turn": "expired time slices",
    "slept": "waits",
    "blocked": "waits for I/O",
    "stopped": "stops",
    "exited": "exits",
}
# One cause with this share of a difference is named alone, otherwise the two greatest are.
_MAIN_CAUSE: Final = 0.8

_MOSTLY: Final = 0.5

NOT_TIMED: Final[Mapping[str, float]] = {}


@dataclass(frozen=True)
class _Change:
    ratio: float
    words: str

    @property
    def weight(self) -> float:
        return abs(math.log(self.ratio))


def explanations(results: Results, recorded: Mapping[str, Recorded]) -> tuple[Explanation, ...]:
    """Return an explanation of each configuration that was recorded, in their order; the baseline was, too."""
    baseline = next(measured.name for measured in results.configurations if measured.baseline)
    timed_ns = {
        measured.name: 1e9 * measured.metrics["elapsed"].mean
        for measured in results.configurations
        if "elapsed" in measured.metrics
    }
    return tuple(
        explanation(recorded[measured.name], recorded[baseline], timed_ns)
        for measured in results.configurations
        if measured.name in recorded and measured.name != baseline
    )


def explanation(other: Recorded, baseline: Recorded, timed_ns: Mapping[str, float] = NOT_TIMED) -> Explanation:
    """Explain ``other`` against the ``baseline``; ``timed_ns`` is the mean time of the run's trials by name."""
    costs = (
        compare_costs(baseline.costs, other.costs) if baseline.costs is not None and other.costs is not None else None
    )
    parting, unfollowed = _divergence(other, baseline)
    other, baseline = (recorded.model_copy(update={"costs": None, "decisions": None}) for recorded in (other, baseline))
    uncounted = tuple(
        f"{recorded.configuration}: its costs could not be counted: {recorded.costs_problem}"
        for recorded in (baseline, other)
        if recorded.costs_problem
    )
    uncounted += unfollowed
    if other.recording is None or baseline.recording is None:
        missing = [
            f"{recorded.configuration} could not be recorded: {recorded.problem}"
            for recorded in (baseline, other)
            if recorded.problem
        ]
        if other.problem and other.problem == baseline.problem:
            missing = [f"neither trial could be recorded: {other.problem}"]
        return Explanation(
            sentences=(), notes=(*missing, *uncounted), own=other, baseline=baseline, costs=costs, divergence=parting
        )
    changes = sorted(_changes(other.recording, baseline.recording), key=lambda change: -change.weight)[:MOST_CHANGES]
    return Explanation(
        sentences=tuple(_sentences(other, other.recording, baseline.recording, changes)),
        notes=(*_notes(other, baseline, timed_ns), *uncounted),
        own=other,
        baseline=baseline,
        costs=costs,
        divergence=parting,
    )


def _divergence(other: Recorded, baseline: Recorded) -> tuple[Divergence | None, tuple[str, ...]]:
    problems = tuple(
        f"{recorded.configuration}: its decisions could not be followed: {recorded.decisions_problem}"
        for recorded in (baseline, other)
        if recorded.decisions_problem
    )
    if other.decisions is None or baseline.decisions is None:
        return None, problems
    if other.seed != baseline.seed:
        return None, ("The two were followed with different seeds; follow them again with --fresh.",)
    return divergence(baseline.decisions, other.decisions), ()


def deciding_configuration(results: Results) -> str | None:
    """Return the configuration that is worth explaining; ``None`` where nothing is compared.

    Of those that improve the first deciding metric the best, else the one that differs most from the baseline.
    """
    deciding = [verdict for verdict in results.verdicts if verdict.deciding]
    first = [verdict for verdict in deciding if verdict.metric == deciding[0].metric and verdict.estimate is not None]
    better = [verdict for verdict in first if verdict.verdict == "improves"]
    chosen = max(better or first, key=_distance, default=None)
    return chosen.configuration if chosen else None


def _distance(verdict: Verdict) -> float:
    estimate = verdict.estimate or 0.0
    if verdict.scale == "difference":
        return abs(estimate)
    return abs(math.log(estimate)) if estimate > 0 else math.inf


def _changes(other: Recording, baseline: Recording) -> Iterator[_Change]:
    # Yield all that changed enough. Counts of incomplete recordings are compared per second.
    rate = _incomplete(other) or _incomplete(baseline)
    yield from _switches(other, baseline, rate)
    yield from _times(
        "a run lasts {} instead of {} on average", other.workload.runs.mean_ns, baseline.workload.runs.mean_ns
    )
    if min(other.workload.latency.count, baseline.workload.latency.count) >= LEAST_QUANTILE:
        yield from _times(
            "a woken task waits up to {} instead of {} (95th percentile)",
            other.workload.latency.p95_ns,
            baseline.workload.latency.p95_ns,
        )
    now, before = _queue(other), _queue(baseline)
    if now > 0 and before > 0:
        words = f"on average {number(now)} tasks compete for a CPU instead of {number(before)}"
        yield from _noteworthy(_Change(now / before, words))
    yield from _counts("there are {} wake-ups instead of {}", other, baseline, "wakeups", rate)
    yield from _counts("there are {} migrations to another CPU instead of {}", other, baseline, "migrations", rate)
    yield from _shares(other, baseline)


def _switches(other: Recording, baseline: Recording, rate: bool) -> Iterator[_Change]:
    now, before = (_count(recording, recording.workload.switches.total, rate) for recording in (other, baseline))
    if not _differs(now, before):
        return
    times = "far"
    if min(now, before) > 0:
        ratio = max(now, before) / min(now, before)
        times = f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times"
    unit = " per second" if rate else ""
    words = (
        f"the workload leaves the CPU {times} {'less' if now < before else 'more'} often "
        f"({number(now)} instead of {number(before)} switches{unit}{_causes(other, baseline, rate)})"
    )
    yield _Change(_ratio(now, before), words)


def _causes(other: Recording, baseline: Recording, rate: bool) -> str:
    counts, baseline_counts = other.workload.switches.model_dump(), baseline.workload.switches.model_dump()
    differences = {
        name: _count(other, counts[name], rate) - _count(baseline, baseline_counts[name], rate) for name in _CAUSES
    }
    sign = math.copysign(1.0, sum(differences.values()))
    parts = {name: change * sign for name, change in differences.items() if change * sign > 0}
    whole = sum(parts.values())
    ranked = sorted(parts, key=lambda name: -parts[name])
    named = ranked[: 1 if parts[ranked[0]] >= _MAIN_CAUSE * whole else 2]
    texts = [f"{_percent(parts[named[0]] / whole)} of the difference comes from {_CAUSES[named[0]]}"]
    texts += [f"{_percent(parts[name] / whole)} from {_CAUSES[name]}" for name in named[1:]]
    return ", " + listed(texts)


def _percent(share: float) -> str:
    return "all" if round(share, 2) == 1 else percent(round(share, 2))


def _counts(words: str, other: Recording, baseline: Recording, name: str, rate: bool) -> Iterator[_Change]:
    now, before = (_count(recording, getattr(recording.workload, name), rate) for recording in (other, baseline))
    if _differs(now, before):
        unit = " per second" if rate else ""
        yield _Change(_ratio(now, before), words.format(number(now), number(before)) + unit)


def _times(words: str, now_ns: float, before_ns: float) -> Iterator[_Change]:
    if now_ns > 0 and before_ns > 0 and _ratio(now_ns, before_ns) != 1:
        yield from _noteworthy(_Change(now_ns / before_ns, words.format(_time(now_ns), _time(before_ns))))


def _shares(other: Recording, baseline: Recording) -> Iterator[_Change]:
    now, before = (
        recording.workload.run_ns / max(1, recording.covered_ns * recording.cpus) for recording in (other, baseline)
    )
    if now > 0 and before > 0:
        words = f"the workload gets {percent(round(now, 3))} of the CPU instead of {percent(round(before, 3))}"
        yield from _noteworthy(_Change(now / before, words))


def _noteworthy(change: _Change) -> Iterator[_Change]:
    if change.weight >= math.log(LEAST_RATIO):
        yield change


def _differs(now: float, before: float) -> bool:
    # Not by logarithms, which round: 297 is exactly 1.1 times 270.
    return abs(now - before) >= LEAST_COUNT and max(now, before) >= LEAST_RATIO * min(now, before)


def _ratio(now: float, before: float) -> float:
    return max(now, 0.5) / max(before, 0.5)


def _time(duration_ns: float) -> str:
    return amount(duration_ns / 1e9, "s")


def _count(recording: Recording, count: int, rate: bool) -> float:
    return count * 1e9 / recording.covered_ns if rate and recording.covered_ns else float(count)


def _queue(recording: Recording) -> float:
    whole = sum(lasted for _, lasted in recording.queue)
    return sum(length * lasted for length, lasted in recording.queue) / whole if whole else 0.0


def _incomplete(recording: Recording) -> bool:
    return recording.lost > 0


def _sentences(other: Recorded, now: Recording, before: Recording, changes: Sequence[_Change]) -> Iterator[str]:
    if not changes:
        yield (
            f"Under {other.configuration} the scheduler behaves as under the baseline: no figure of the workload "
            f"differs by {percent(LEAST_RATIO - 1)} or more. The difference has another cause."
        )
        return
    yield f"Under {other.configuration}, {changes[0].words}."
    if len(changes) > 1:
        rest = "; ".join(change.words for change in changes[1:])
        yield f"{sentence_start(rest)}."
    yield from _who(now, before)


def _who(now: Recording, before: Recording) -> Iterator[str]:
    is_now = now.workload.switches.preempted > before.workload.switches.preempted
    more, where = (now, "under this configuration") if is_now else (before, "under the baseline")
    counts: Counter[str] = Counter()
    for preemption in more.preemptions:
        counts[_by(preemption)] += preemption.count
    whole = more.workload.switches.preempted
    if whole < LEAST_QUANTILE or not counts:
        return
    ((by, count),) = counts.most_common(1)
    if count < _MOSTLY * whole:
        return
    # Of very many pairs of tasks only the most frequent are known.
    share = f"{'At least ' if counts.total() < whole else ''}{percent(round(count / whole, 2))}"
    yield f"{share} of the {number(whole)} preemptions {where} were by {by}."


def _by(preemption: Preemption) -> str:
    if preemption.part == "background":
        return "the background load"
    if preemption.part == "other":
        return f"{preemption.by}, which is not part of the workload"
    return f"another {preemption.by} task" if preemption.by == preemption.preempted else preemption.by


def _notes(other: Recorded, baseline: Recorded, timed_ns: Mapping[str, float]) -> Iterator[str]:
    yield (
        f"One recorded trial of each, with the seed {other.seed}"
        + (" for both" if other.seed == baseline.seed else f" and {baseline.seed}")
        + ": single trials have no interval."
    )
    slower = [
        f"{signed(100 * (recorded.wall_ns / timed_ns[recorded.configuration] - 1))} % ({recorded.configuration})"
        for recorded in (baseline, other)
        if recorded.wall_ns and timed_ns.get(recorded.configuration)
    ]
    if slower:
        yield f"Time of the workload while recorded, compared with the run's trials: {listed(slower)}."
    for recorded in (baseline, other):
        recording = recorded.recording
        if recording is not None and _incomplete(recording):
            seen, whole = _time(recording.covered_ns), _time(recording.span_ns)
            yield (
                f"{recorded.configuration}: only the first {seen} of {whole} were recorded; the buffer had no room for "
                f"{number(recording.lost)} later events. Counts are compared per second."
            )
    if other.kernel != baseline.kernel:
        yield f"The kernels differ: {other.kernel}, and {baseline.kernel} for the baseline."
