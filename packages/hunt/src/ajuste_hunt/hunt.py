"""The hunt: trials with ever other chances until one shows the goal, then the fewest pauses that do."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.model.decision import NamedDecisions
from ajuste.model.error import AjusteError, Place, RequestError
from ajuste.model.wording import count_of, number, quantity
from ajuste.report.format import duration
from ajuste.run.testbed import RunOptions
from ajuste.study.metrics import find_metric
from ajuste.study.schema import Study
from ajuste.study.target import PerturbationTable
from ajuste_hunt.bench import Bench, opened, signature, with_timeout
from ajuste_hunt.chance import Chance, Ground
from ajuste_hunt.goal import STALL, Ending, Goal
from ajuste_hunt.minimise import minimal
from ajuste_hunt.model import Found, Hunt, Outcome, Story
from ajuste_hunt.reproducer import reproducer
from ajuste_hunt.search import BATCH, Search, Tried
from ajuste_hunt.story import story

PLAIN: Final = BATCH
"""Trials without pauses with which a hunt begins."""
REPLAYS: Final = 5
MINIMISING: Final = 200
"""Trials with which pauses are left out and shortened, at most."""
# A job that takes so many times its usual time hangs.
_HANGING: Final = 20
_SHORTEST_LIMIT_S: Final = 0.5
_MOST_MOMENTS: Final = 20_000


@dataclass(frozen=True)
class Question:
    """The question: does a trial of ``study`` ever show ``goal``? At most ``max_trials``, for at most ``max_seconds``.

    A CPU stands still for at most ``longest_ns``; ``plain_only`` draws seeds alone. With ``own_limit`` the study has a
    time limit of its own.
    """

    study: Study
    goal: Goal
    catalogue: Catalogue
    options: RunOptions
    named: str
    max_trials: int
    max_seconds: float
    longest_ns: int
    plain_only: bool = False
    own_limit: bool = False
    fresh: bool = False


@dataclass(frozen=True)
class Hunted:
    """A hunt with what is written to files: the ``reproducer``'s study, and the decisions of the trial that shows it
    and of one without pauses.
    """

    hunt: Hunt
    reproducer: Study | None = None
    decisions: tuple[NamedDecisions, NamedDecisions] | None = None
    kernel: str = ""


@dataclass
class _Progress:
    question: Question
    bench: Bench
    ends_at: float
    trials_of_search: int = 0
    shown_plain: int = 0
    plain: int = 0
    nearest: float = -math.inf
    typical: float | None = None
    kinds: set[tuple[int, ...]] = field(default_factory=set)
    search: Search | None = None

    def try_all(self, chances: Sequence[Chance]) -> list[Tried]:
        endings = self.bench.endings(chances)
        goal = self.question.goal
        tried = []
        for chance, ending in zip(chances, endings, strict=True):
            near = goal.nearness(ending)
            self.nearest = max(self.nearest, near)
            ran = signature(ending)
            self.kinds.add(ran)
            tried.append(
                Tried(self.bench.with_pauses(chance), goal.is_met(ending, self.typical), near, ran, ending.in_words)
            )
        self.trials_of_search += len(chances)
        return tried

    @property
    def is_over(self) -> bool:
        return self.trials_of_search >= self.question.max_trials or time.monotonic() >= self.ends_at

    def say(self) -> None:
        question = self.question
        left = max(0.0, self.ends_at - time.monotonic())
        near = f"; nearest {self.near_words}" if self.near_words else ""
        question.options.say(
            f"trial {self.trials_of_search} of {question.max_trials}: not yet; {count_of(len(self.kinds), 'kind')} of "
            f"trials{near}; at most {duration(left)} left"
        )

    @property
    def near_words(self) -> str:
        goal = self.question.goal
        if goal.kind != "metric" or not math.isfinite(self.nearest):
            return ""
        return quantity(number(self.nearest if goal.above else -self.nearest), unit_of(question=self.question))


def unit_of(question: Question) -> str:
    """Return the unit of the goal's metric."""
    goal = question.goal
    return "s" if goal.metric == STALL else find_metric(goal.metric, question.study, question.catalogue).unit


def hunt(question: Question) -> Hunted:
    """Carry out the hunt. Raises RequestError for a study that it cannot have, RunError where guests fail."""
    ends_at = time.monotonic() + question.max_seconds
    question = replace(question, study=_hunted(question.study))
    tells_stalls = question.goal.metric == STALL
    if not question.own_limit:
        question = replace(question, study=_limited(question, tells_stalls=tells_stalls))
    with opened(
        question.study, question.catalogue, question.options, tells_stalls=tells_stalls, fresh=question.fresh
    ) as bench:
        return _carried_out(question, bench, ends_at)


def _hunted(study: Study) -> Study:
    target = study.target
    if target.on_host:
        raise RequestError("a hunt is in guests; the study measures this machine", hint="add --vm, or --kernel SPEC")
    if target.clock != "virtual":
        raise RequestError(
            "a hunt requires the virtual clock, which repeats a trial to the bit", hint="remove --clock wall"
        )
    if target.parallel is False:
        raise RequestError("a hunt requires CPUs that run at once", hint="remove parallel = false from [target]")
    perturbation = target.perturbation or PerturbationTable()
    return study.model_copy(update={"target": target.model_copy(update={"perturbation": perturbation}), "expect": None})


def _limited(question: Question, *, tells_stalls: bool) -> Study:
    # A trial that hangs costs as much as its time limit; what is usual follows from two trials.
    question.options.say("how long the job takes")
    study = question.study
    with opened(study, question.catalogue, question.options, tells_stalls=tells_stalls, fresh=False) as bench:
        endings = bench.endings([Chance(0), Chance(1)])
    usual = max((ending.seconds for ending in endings), default=0.0)
    limit = max(_SHORTEST_LIMIT_S, math.ceil(10 * _HANGING * usual) / 10)
    return (
        study if any(ending.hangs for ending in endings) else with_timeout(study, min(limit, study.workload.timeout_s))
    )


def _carried_out(question: Question, bench: Bench, ends_at: float) -> Hunted:
    progress = _Progress(question, bench, ends_at)
    question.options.say("trials without pauses")
    plain = [Chance(seed) for seed in range(min(PLAIN, question.max_trials))]
    endings = bench.endings(plain)
    _require_measured(question.goal, endings)
    progress.typical = _typical(question.goal, endings)
    first = progress.try_all(plain)
    progress.plain, progress.shown_plain = len(first), sum(tried.met for tried in first)
    if progress.shown_plain:
        showing = next(tried for tried in first if tried.met)
        outcome: Outcome = "at-once" if 2 * progress.shown_plain > progress.plain else "found"
        return _handed_over(progress, showing, 1 + first.index(showing), outcome)
    search = Search(_ground(question, bench, endings), question.study.design.seed, plain_only=question.plain_only)
    progress.search = search
    search.learn(first)
    while not progress.is_over:
        progress.say()
        batch = search.batch()
        if question.plain_only:
            batch = [Chance(PLAIN - 1 + chance.seed) for chance in batch]
        tried = progress.try_all(batch)
        if hit := next((attempt for attempt in tried if attempt.met), None):
            return _handed_over(progress, hit, progress.trials_of_search - len(tried) + 1 + tried.index(hit), "found")
        search.learn(tried)
    return Hunted(_document(progress, "never"))


def _require_measured(goal: Goal, endings: Sequence[Ending]) -> None:
    place = Place(f"--until {goal.text}")
    broken = next((ending for ending in endings if ending.problem and not ending.hangs), None)
    if broken is not None and goal.kind != "dmesg":
        raise RequestError(
            f"the job cannot be carried out: {broken.problem}", hint="run it first: ajuste run, or compare"
        )
    if goal.kind == "metric" and not any(goal.metric in ending.metrics for ending in endings):
        raise RequestError(f"no trial has the metric {goal.metric}", place=place, hint="name a metric that the job has")


def _typical(goal: Goal, endings: Sequence[Ending]) -> float | None:
    values = [ending.metrics[goal.metric] for ending in endings if goal.metric in ending.metrics]
    return statistics.median(values) if values else None


def _ground(question: Question, bench: Bench, endings: Sequence[Ending]) -> Ground:
    seconds = [ending.seconds for ending in endings if ending.seconds > 0]
    length_ns = max(1000, round(1e9 * statistics.median(seconds))) if seconds else 10**9
    moments: tuple[tuple[int, int], ...] = ()
    shared: tuple[tuple[int, int, int], ...] = ()
    if not question.plain_only:
        question.options.say("where tasks switch and wake each other")
        try:
            followed = bench.followed(Chance(0))
        except AjusteError as failure:  # such as a kernel without symbols
            question.options.warn(f"pauses are not drawn near switches: {failure.message}")
            followed = None
        if followed is not None:
            decisions, _ = followed
            showing = [(cpu, decisions.time_ns(place)) for place, cpu in enumerate(decisions.cpus)]
            step = -(-len(showing) // _MOST_MOMENTS) or 1
            moments = tuple(showing[::step])
            shared = bench.shared_accesses(Chance(0))
    return Ground(question.study.target.cpus, length_ns, question.longest_ns, moments, shared)


def _handed_over(progress: _Progress, hit: Tried, at: int, outcome: Outcome) -> Hunted:
    question, bench, goal = progress.question, progress.bench, progress.question.goal
    until_there_s = bench.host_seconds
    question.options.say(f"found in trial {at}: {hit.words}; leaving pauses out")
    left = MINIMISING
    best, is_minimal = hit.chance, True

    def shows(chance: Chance) -> bool:
        nonlocal left, is_minimal
        left -= 1
        if left < 0:
            is_minimal = False
            return False
        return goal.is_met(bench.ending(chance), progress.typical)

    best = minimal(hit.chance, shows)
    question.options.say("repeating it")
    digests = [bench.again(best) for _ in range(REPLAYS)]
    ending = bench.ending(best)
    finding = Found(
        trial=at,
        way=hit.chance.way,
        seed=best.seed,
        pauses_then=len(hit.chance.pauses),
        pauses=best.pauses,
        ending=_how(goal, ending, question),
        replays=sum(digest == digests[0] for digest in digests),
        attempts=len(digests),
        minimal=is_minimal,
        digest=digests[0],
        host_seconds=round(until_there_s, 2),
    )
    account, pair, notes = _followed(question, bench, best)
    study, note = reproducer(bench, best, goal, progress.typical, question.named)
    document = _document(progress, outcome).model_copy(
        update={"finding": finding, "story": account, "notes": (*notes, *([note] if note else []))}
    )
    return Hunted(document, study, pair, bench.guest.hello.kernel)


def _how(goal: Goal, ending: Ending, question: Question) -> str:
    if goal.kind == "metric":
        return f"{goal.metric} {quantity(number(ending.metrics.get(goal.metric, math.nan)), unit_of(question))}"
    if goal.kind == "dmesg":
        lines = (
            line for line in ending.console.splitlines() if goal.is_met(replace(ending, console=line, problem=""), None)
        )
        return next(lines, ending.in_words).strip()
    return ending.in_words


def _followed(
    question: Question, bench: Bench, best: Chance
) -> tuple[Story | None, tuple[NamedDecisions, NamedDecisions] | None, tuple[str, ...]]:
    question.options.say("following what the scheduler decides")
    try:
        showing = bench.followed(best)
        plain = bench.followed(Chance(best.seed)) if best.pauses else None
        functions = bench.functions_before(best, showing[1]) if best.pauses and showing else {}
    except AjusteError as failure:
        return None, None, (f"The scheduler's decisions could not be followed: {failure.message}.",)
    if showing is None:
        return None, None, ("The scheduler's decisions could not be followed.",)
    finding, before = showing[0], plain[0] if plain else None
    limit_ns = round(1e9 * question.study.workload.timeout_s)
    account = story(finding, before, best.pauses, functions, limit_ns)
    return account, None if before is None else (before, finding), ()


def _document(progress: _Progress, outcome: Outcome) -> Hunt:
    question, bench = progress.question, progress.bench
    study = question.study
    lengths = [ending.seconds for ending in bench.endings([Chance(0)])]
    return Hunt(
        study=study.name,
        goal=question.goal.in_words(progress.typical, unit_of(question) if question.goal.kind == "metric" else ""),
        kernel=bench.resolved.configurations[0].kernel,
        cpus=study.target.cpus,
        outcome=outcome,
        trials=bench.trials,
        plain=progress.plain,
        shown_plain=progress.shown_plain,
        kinds=len(progress.kinds),
        sites=len(progress.search.ground.sites) if progress.search else 0,
        tries_of_site=progress.search.tries_of_site if progress.search else 0,
        run_ms=1000 * lengths[0],
        longest_pause_us=question.longest_ns / 1000,
        nearest=progress.near_words,
        host_seconds=bench.host_seconds,
    )
