"""Explanation of a difference from the baseline: the recordings of two schedulers in words, greatest change first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ajuste.analysis.pairs import Trials, clean_trials
from ajuste.model.decision import Divergence
from ajuste.model.explanation import Explanation, Recorded
from ajuste.model.results import Results
from ajuste.model.scheduling import Preemption, Recording, Spread
from ajuste.model.verdict import Verdict
from ajuste.model.wording import amount, in_sentence, listed, number, percent, sentence_start, signed
from ajuste_guest.analysis.costs import compare_costs
from ajuste_guest.analysis.divergence import divergence

LEAST_RATIO: Final = 1.1
"""Smaller changes count as none: there is one trial of each."""

LEAST_COUNT: Final = 5
"""Smaller differences in switches, wake-ups or migrations are not mentioned."""

# Quantiles of a spread in words, and the number of values from which on each says something.
_QUANTILES: Final = (("p95_ns", "95th percentile", 20), ("p99_ns", "99th percentile", 100), ("p50_ns", "median", 20))
_LEAST_PREEMPTIONS: Final = 20

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

# The metrics of a run's trials that count the same as a recording: of all switches, and of each cause of one.
_SWITCHES: Final = ("voluntary-switches", "involuntary-switches")
_METRIC_OF_CAUSE: Final = {
    "by_wakeup": "involuntary-switches",
    "by_turn": "involuntary-switches",
    "slept": "voluntary-switches",
    "blocked": "voluntary-switches",
}
_MIGRATIONS: Final = ("cpu-migrations",)
_UNPROVED: Final = ("undecided", "equivalent")

NOT_TIMED: Final[Mapping[str, float]] = {}


@dataclass(frozen=True)
class _Change:
    # Trials count the same as `metrics`, if any do.
    ratio: float
    words: str
    metrics: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        return abs(math.log(self.ratio))


@dataclass(frozen=True)
class Evidence:
    """Findings of all trials of a run on a configuration: its ``verdicts`` by metric, and by what ratio counts
    typically differ from the baseline's in the same block, by the metrics that are added up. ``titles`` are of metrics.
    """

    verdicts: Mapping[str, Verdict]
    ratios: Mapping[tuple[str, ...], float]
    titles: Mapping[str, str]

    def refutes(self, change: _Change) -> bool:
        """Return whether the run's trials do not show what two recorded ones do."""
        if any(metric in self.verdicts and self.verdicts[metric].verdict in _UNPROVED for metric in change.metrics):
            return True
        ratio = self.ratios.get(change.metrics)
        return ratio is not None and (ratio if change.ratio > 1 else 1 / ratio) < LEAST_RATIO

    @property
    def unproved(self) -> Verdict | None:
        """Return the first deciding verdict if it proves no effect."""
        first = next((verdict for verdict in self.verdicts.values() if verdict.deciding), None)
        return first if first is not None and first.verdict in _UNPROVED else None


NO_EVIDENCE: Final = Evidence({}, {}, {})


def evidence(results: Results, trials: Trials, configuration: str) -> Evidence:
    """Return what the run shows of ``configuration`` against the baseline."""
    verdicts = {verdict.metric: verdict for verdict in results.verdicts if verdict.configuration == configuration}
    clean = clean_trials(trials)
    both = np.stack([clean.places(name) for name in (_baseline(results), configuration)])
    before, now = both[:, (both >= 0).all(axis=0)]
    ratios = {}
    for metrics in (_SWITCHES, *((metric,) for metric in _SWITCHES), _MIGRATIONS):
        columns = [column for metric in metrics if (column := clean.measured.metrics.get(metric)) is not None]
        if len(columns) == len(metrics) and len(now):
            counts = np.sum(columns, axis=0)
            ratio = float(np.median(np.maximum(counts[now], 0.5) / np.maximum(counts[before], 0.5)))
            if not math.isnan(ratio):
                ratios[metrics] = ratio
    return Evidence(verdicts, ratios, {metric.name: metric.title for metric in results.metrics})


def typical_block(results: Results, trials: Trials, configuration: str) -> int | None:
    """Return the block whose pair of trials is nearest to the estimated effect of ``configuration`` on the first
    deciding metric; None where nothing is estimated.
    """
    estimated = (
        verdict
        for verdict in results.verdicts
        if verdict.configuration == configuration and verdict.deciding and verdict.estimate is not None
    )
    verdict = next(estimated, None)
    metric = next((metric for metric in results.metrics if verdict is not None and metric.name == verdict.metric), None)
    clean = clean_trials(trials)
    column = clean.measured.metrics.get(metric.column) if metric is not None else None
    if verdict is None or verdict.estimate is None or column is None:
        return None
    before, now = (clean.places(name) for name in (_baseline(results), configuration))
    both = (before >= 0) & (now >= 0)
    blocks, old, new = clean.blocks[both], column[before[both]], column[now[both]]
    if verdict.scale == "ratio":
        possible = (old > 0) & (new > 0)
        blocks, distances = blocks[possible], np.abs(np.log(new[possible] / old[possible] / verdict.estimate))
    else:
        distances = np.abs(new - old - verdict.estimate)
    distances = np.where(np.isnan(distances), np.inf, distances)
    return int(blocks[np.argmin(distances)]) if np.isfinite(distances).any() else None


def _baseline(results: Results) -> str:
    return next(measured.name for measured in results.configurations if measured.baseline)


def explanations(results: Results, recorded: Mapping[str, Recorded], trials: Trials = ()) -> tuple[Explanation, ...]:
    """Return an explanation of each configuration that was recorded with the baseline, in their order. ``trials`` are
    those of the run: what they do not bear out is left out.
    """
    baseline = _baseline(results)
    timed_ns = {
        measured.name: 1e9 * measured.metrics["elapsed"].mean
        for measured in results.configurations
        if "elapsed" in measured.metrics
    }
    clean = clean_trials(trials)
    return tuple(
        explanation(recorded[measured.name], recorded[baseline], timed_ns, evidence(results, clean, measured.name))
        for measured in results.configurations
        if measured.name in recorded
        and measured.name != baseline
        and recorded[measured.name].block == recorded[baseline].block
    )


def explanation(
    other: Recorded,
    baseline: Recorded,
    timed_ns: Mapping[str, float] = NOT_TIMED,
    proof: Evidence = NO_EVIDENCE,
) -> Explanation:
    """Explain ``other`` against the ``baseline``; ``timed_ns`` is the mean time of the run's trials by name, and
    ``proof`` what they show.
    """
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
    changes = sorted(_changes(other.recording, baseline.recording), key=lambda change: -change.weight)
    refuted = [change for change in changes if proof.refutes(change)]
    proved = [change for change in changes if change not in refuted][:MOST_CHANGES]
    return Explanation(
        sentences=(
            *_unproved(proof),
            *_sentences(other, other.recording, baseline.recording, proved, bool(refuted)),
        ),
        notes=(*_notes(other, baseline, timed_ns), *_left_out(refuted), *uncounted),
        own=other,
        baseline=baseline,
        costs=costs,
        divergence=parting,
    )


def _unproved(proof: Evidence) -> Iterator[str]:
    if (verdict := proof.unproved) is not None:
        what = in_sentence(proof.titles.get(verdict.metric, verdict.metric))
        yield f"The verdict on the {what} is *{verdict.verdict}*: what follows is how two trials differ, not why."


def _left_out(refuted: Sequence[_Change]) -> Iterator[str]:
    if refuted:
        metrics = listed(list(dict.fromkeys(metric for change in refuted for metric in change.metrics)))
        yield f"Left out, because the run's blocks do not show what these two trials do: {metrics}."


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
    changes = [*_switches(other, baseline, rate), *_spreads(other, baseline)]
    now, before = _queue(other), _queue(baseline)
    if now > 0 and before > 0:
        words = f"on average {number(now)} tasks compete for a CPU instead of {number(before)}"
        changes += _noteworthy(_Change(now / before, words))
    changes += _counts("there are {} wake-ups instead of {}", other, baseline, "wakeups", rate)
    changes += _counts("there are {} migrations to another CPU instead of {}", other, baseline, "migrations", rate)
    changes += _shares(other, baseline)
    yield from changes or _longest(other, baseline)


def _spreads(other: Recording, baseline: Recording) -> Iterator[_Change]:
    # Of each spread the figure that differs most: in one trial a tail may change where the middle does not.
    now, before = other.workload.runs, baseline.workload.runs
    yield from _greatest(
        [
            *_times("a run lasts {} instead of {} on average", now.mean_ns, before.mean_ns),
            *_quantiles("a run lasts up to {} instead of {}", now, before),
        ]
    )
    now, before = other.workload.latency, baseline.workload.latency
    yield from _greatest([*_quantiles("a woken task waits up to {} instead of {}", now, before)])


def _quantiles(words: str, now: Spread, before: Spread) -> Iterator[_Change]:
    for name, title, least in _QUANTILES:
        if min(now.count, before.count) >= least:
            yield from _times(f"{words} ({title})", getattr(now, name), getattr(before, name))


def _greatest(changes: Sequence[_Change]) -> Sequence[_Change]:
    return [max(changes, key=lambda change: change.weight)] if changes else []


def _longest(other: Recording, baseline: Recording) -> Iterator[_Change]:
    # A single event each: listed only where nothing else differs.
    now, before = other.workload, baseline.workload
    yield from _times("the longest run lasts {} instead of {}", now.runs.max_ns, before.runs.max_ns)
    words = "the longest wait of a woken task is {} instead of {}"
    yield from _times(words, now.latency.max_ns, before.latency.max_ns)


def _switches(other: Recording, baseline: Recording, rate: bool) -> Iterator[_Change]:
    now, before = (_count(recording, recording.workload.switches.total, rate) for recording in (other, baseline))
    if not _differs(now, before):
        yield from _single_causes(other, baseline, rate)
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
    yield _Change(_ratio(now, before), words, _SWITCHES)


def _single_causes(other: Recording, baseline: Recording, rate: bool) -> Iterator[_Change]:
    # As many switches in all may have other causes.
    for name, cause in _CAUSES.items():
        now, before = (
            _count(recording, getattr(recording.workload.switches, name), rate) for recording in (other, baseline)
        )
        if _differs(now, before):
            unit = " per second" if rate else ""
            words = f"there are {number(now)} {cause} instead of {number(before)}{unit}"
            metric = _METRIC_OF_CAUSE.get(name)
            yield _Change(_ratio(now, before), words, (metric,) if metric else ())


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
        metrics = _MIGRATIONS if name == "migrations" else ()
        yield _Change(_ratio(now, before), words.format(number(now), number(before)) + unit, metrics)


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


def _sentences(
    other: Recorded, now: Recording, before: Recording, changes: Sequence[_Change], is_refuted: bool
) -> Iterator[str]:
    if not changes and is_refuted:
        yield f"Under {other.configuration} only what the run's other trials do not show differs from the baseline."
        return
    if not changes:
        yield (
            f"Under {other.configuration} the scheduler behaves as under the baseline: no figure of the workload's "
            f"scheduling differs by {percent(LEAST_RATIO - 1)} or more. The difference has another cause."
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
    if whole < _LEAST_PREEMPTIONS or not counts:
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
