"""The choice of settings: which of the catalogue's can matter for what takes time here, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ajuste.analysis.relevance import factors_without_chance
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import Current, HostMachine, current_values, instances_here, why_not_writable
from ajuste.executor.host.host import HostExecutor, PreparedHost
from ajuste.executor.host.rights import require_possible, risks
from ajuste.model.cause import CAUSES, Cause
from ajuste.model.error import RequestError
from ajuste.model.tunable import SERVER_KINDS, Marker, Tunable, Where, same_value
from ajuste.model.wording import in_sentence
from ajuste.run.experiment import prepare
from ajuste.run.relevance import standing_activity
from ajuste.run.testbed import testbed_for
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste_advise.look import Seen
from ajuste_advise.model import Candidate, Untried
from ajuste_advise.model import Where as Part
from ajuste_advise.question import Question, setting_factor

STAGE: Final = "screen"
_LOOPBACK: Final = "lo"
_MOST_DEVICES: Final = 2
_PATIENCE_NS: Final = 10_000_000_000
# Where the time of a cause is seen: how much of it there is orders the candidates.
_SEEN_AS: Final[Mapping[Cause, tuple[Part, ...]]] = {
    "user": ("user",),
    "kernel": ("kernel",),
    "cpu-wait": ("cpu-wait",),
    "wakeup": ("idle", "cpu-wait"),
    "migration": ("cpu-wait",),
    "faults": ("kernel",),
    "reclaim": ("memory-wait",),
    "swap": ("memory-wait",),
    "writeback": ("disk-wait",),
    "sync": ("disk-wait",),
    "disk-read": ("disk-wait",),
    "disk-write": ("disk-wait",),
    "files": ("kernel",),
    "network": ("interrupts", "idle"),
    "locks": ("cpu-wait",),
}


@dataclass(frozen=True)
class Choice:
    """The settings to try, those that act on what takes most time first, and all others with the reason."""

    candidates: tuple[Candidate, ...]
    untried: tuple[Untried, ...]


def choose(question: Question, seen: Seen, *, dry: bool = False) -> Choice:
    """Choose the settings that act on the causes that were seen, can be changed there, and have a chance to matter.

    Each level is set once on this machine, to see whether its kernel accepts it, and taken back; not if it is ``dry``.
    """
    question.say("2/4 choose: which settings can matter")
    chooser = _Chooser(question, seen, dry=dry)
    candidates: list[Candidate] = []
    untried: list[Untried] = []
    for tunable in question.catalogue.tunables.values():
        if not tunable.acts_on:
            continue
        for entry in chooser.judge(tunable):
            (candidates if isinstance(entry, Candidate) else untried).append(entry)  # type: ignore[arg-type]
    candidates, missing = chooser.there(candidates)
    untried += missing
    candidates.sort(key=lambda candidate: (not candidate.first, -_time_in(candidate.causes, seen)))
    return Choice(tuple(candidates), tuple(untried))


def _time_in(causes: Sequence[Cause], seen: Seen) -> float:
    shares = {part.where: part.share for part in seen.look.shares}
    return max(shares.get(where, 0.0) for cause in causes for where in _SEEN_AS[cause])


class _Chooser:
    def __init__(self, question: Question, seen: Seen, *, dry: bool) -> None:
        self._question, self._seen, self._dry = question, seen, dry
        study = question.study(STAGE, [])
        self._study = study
        self._surroundings = testbed_for(study, question.options).surroundings(study, question.catalogue)[1:]
        self._catalogue = self._surroundings[0]
        self._version = next(iter(self._surroundings[1].values()))
        self._machine = None if question.in_guest else HostMachine()

    def judge(self, tunable: Tunable) -> Iterator[Candidate | Untried]:
        causes = tuple(cause for cause in tunable.acts_on if cause in self._seen.look.causes)
        where = tunable.place_in(self._version)
        if where is None:
            yield Untried(setting=tunable.name, why="absent", words=f"Linux {self._version} does not have it")
        elif where.kind in SERVER_KINDS or not tunable.tries:
            return
        elif why := self._elsewhere(where):
            yield Untried(setting=tunable.name, why="absent", words=why)
        # The first is the most direct: without it the others hardly matter.
        elif tunable.acts_on[0] not in causes:
            words = f"acts on {in_sentence(CAUSES[tunable.acts_on[0]].title)}, of which there is hardly any here"
            yield Untried(setting=tunable.name, why="cause", words=words)
        elif tunable.risk == "data" and not self._question.accept_risk:
            words = f"{tunable.risk_note.rstrip('.')}; --accept-risk tries it"
            yield Untried(setting=tunable.name, why="risk", words=words)
        else:
            instances = self._instances(tunable)
            if not instances:
                yield Untried(setting=tunable.name, why="absent", words="there is no such device")
            for instance in instances:
                yield self._instance(instance, causes)

    def _elsewhere(self, where: Where) -> str:
        if where.kind == "scratch" and self._question.request.scratch is None:
            return "the workload has no file system of its trial; --scratch makes one"
        return "only guests can use another scheduler" if where.kind == "scheduler" else ""

    def _instances(self, tunable: Tunable) -> tuple[Tunable, ...]:
        if not tunable.parts:
            return (tunable,)
        if tunable.parts not in (("disk",), ("interface",)):
            return ()
        if self._machine is not None:
            there = [name for name in instances_here(self._catalogue, tunable, self._version) if self._moved(name)]
        elif tunable.parts == ("interface",):
            there = [_LOOPBACK]
        else:
            scratch = self._study.scratch
            there = [Path(scratch.device).name] if scratch is not None and scratch.device else []
        return tuple(self._catalogue.instance(tunable, name) for name in there[:_MOST_DEVICES])

    def _moved(self, device: str) -> bool:
        # A disk on which nothing was read or written, and the loop devices, are left alone.
        figures = self._seen.activity.figures
        transfers = [figures.get(f"diskstats:{device}.{kind}_completed") for kind in ("reads", "writes")]
        return not device.startswith(("loop", "ram", "zram")) and (transfers[0] is None or any(transfers))

    def _instance(self, tunable: Tunable, causes: tuple[Cause, ...]) -> Candidate | Untried:
        name = tunable.name
        if self._machine is not None and (locked := why_not_writable(self._catalogue, tunable, self._machine)):
            return Untried(setting=name, why="locked", words=locked)
        levels: list[str] = []
        why = Untried(setting=name, why="absent", words="")
        resolved: ResolvedStudy | None = None
        for level in tunable.tries:
            try:
                tried = resolve(self._question.study(STAGE, [setting_factor(name, [level])]), *self._surroundings)
            except RequestError as failure:
                why = Untried(setting=name, why="absent", words=failure.message)
                continue
            if risk := self._risk(tried):
                why = Untried(setting=name, why="risk", words=f"{risk}; --accept-risk tries it")
                continue
            if refused := self._refused(tried):
                why = Untried(setting=name, why="locked", words=refused)
                continue
            resolved = tried
            levels.append(level)
        if resolved is None:
            return why
        activity = standing_activity(resolved, self._catalogue)
        activity = replace(self._seen.activity, facts=activity.facts, files=activity.files)
        for finding in factors_without_chance(resolved, self._catalogue, activity):
            if not finding.hardly or not tunable.try_first:
                return Untried(setting=name, why="idle", words=finding.saw)
        return Candidate(
            setting=name,
            title=tunable.title,
            causes=causes,
            levels=tuple(levels),
            first=tunable.try_first,
            note=tunable.risk_note,
        )

    def there(self, candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Untried]]:
        """Return the candidates that the machine has, without the levels that they are at; and those that it lacks."""
        tunables = [self._catalogue.find_tunable(candidate.setting) for candidate in candidates]
        places = [tunable for tunable in tunables if not isinstance(self._location(tunable), Marker)]
        with self._executor() as executor:
            values = current_values(executor, places)
        there: list[Candidate] = []
        missing: list[Untried] = []
        for candidate, tunable in zip(candidates, tunables, strict=True):
            current = values.get(tunable.name)
            if current is not None and current.value is None:
                missing.append(Untried(setting=tunable.name, why="absent", words=current.problem))
                continue
            levels = tuple(level for level in candidate.levels if not self._is_at(tunable, level, current))
            if levels:
                there.append(candidate.model_copy(update={"levels": levels}))
            else:
                missing.append(Untried(setting=tunable.name, why="idle", words="it has that level already"))
        return there, missing

    def _location(self, tunable: Tunable) -> object:
        return self._catalogue.locate(tunable, self._version)

    def _is_at(self, tunable: Tunable, level: str, current: Current | None) -> bool:
        if current is None or current.value is None:
            return False
        return same_value(self._catalogue.check_level(tunable, level, self._version), current.value)

    def _executor(self) -> Executor:
        if self._machine is not None:
            return HostExecutor()
        question = self._question
        experiment = prepare(self._study, question.catalogue, question.options)
        machine = experiment.resolved.find(experiment.resolved.baseline).machine
        return testbed_for(self._study, question.options).executor(experiment, machine, lambda _: None)

    def _refused(self, resolved: ResolvedStudy) -> str:
        # Why this machine lacks what the level takes, or its kernel refuses it, tried once and taken back; empty if
        # neither.
        if self._machine is None:
            return ""
        changes = [configuration.writes for configuration in resolved.configurations]
        try:
            require_possible(resolved, self._catalogue, accept_risk=True, dry=self._dry)
            if self._dry:
                return ""
            with PreparedHost(self._question.options.home, changes=changes, timeout_ns=_PATIENCE_NS):
                return ""
        except RequestError as failure:
            return failure.message

    def _risk(self, resolved: ResolvedStudy) -> str:
        if self._machine is None or self._question.accept_risk:
            return ""
        return next((risk.what for risk in risks(resolved, self._catalogue)), "")


def within(choice: Choice, most_levels: float) -> Choice:
    """Return the choice with at most so many levels to try: the first of every setting, then the second ones."""
    places = sorted(
        (place, number) for number, candidate in enumerate(choice.candidates) for place in range(len(candidate.levels))
    )
    chosen = {entry for number, entry in enumerate(places) if number < most_levels}
    candidates, untried = [], list(choice.untried)
    for number, candidate in enumerate(choice.candidates):
        levels = tuple(level for place, level in enumerate(candidate.levels) if (place, number) in chosen)
        if levels:
            candidates.append(candidate.model_copy(update={"levels": levels}))
        else:
            words = "not within what is allowed; allow more with --max-time or --max-trials"
            untried.append(Untried(setting=candidate.setting, why="time", words=words))
    return Choice(tuple(candidates), tuple(untried))
