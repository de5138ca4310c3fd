"""A fleet: the order in which a cluster's machines begin, the blocks of each, and the reasons to stop all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ajuste.analysis.results import compared_machines, configurations
from ajuste.analysis.verdict import family
from ajuste.design.guards import beyond_limit, worse_than_usual
from ajuste.design.stopping import MOST_ATTEMPTS, Stop, StoppingLimits
from ajuste.model.fleet import FleetPlan
from ajuste.model.live import Guard
from ajuste.model.trial import Trial
from ajuste.model.verdict import Finding
from ajuste.model.wording import Say, count_of
from ajuste.run.machine_order import MachineOrder, StopAll
from ajuste.run.schedule import TrialHistory
from ajuste.study.resolved import ResolvedStudy
from ajuste_fleet.model import CanaryRecord
from ajuste_stats.sign_intervals import fewest_blocks


@dataclass
class Fleet(MachineOrder):
    """Assigns blocks to the machines that are ``present``, by ``plan``; ``keep`` stores the progress.

    Blocks are assigned in waves: one to each machine of the stage that still needs one, with a look after each wave.
    """

    plan: FleetPlan
    study: ResolvedStudy
    present: Callable[[], Sequence[str]]
    keep: Callable[[CanaryRecord], None]
    say: Say = lambda _: None
    assigned: Mapping[int, str] = field(default_factory=dict, init=False)
    """Machines by the blocks of the current wave."""
    _record: CanaryRecord = field(init=False)

    def __post_init__(self) -> None:
        guards = tuple(guard.text for guard in self.plan.guards)
        self._record = CanaryRecord(stages=self.plan.stages, each=self.plan.each or 0, guards=guards)

    def assign(self, first: int, history: TrialHistory, limits: StoppingLimits) -> tuple[int, StoppingLimits]:
        """Assign the next wave, from block ``first`` on. Return its last block, and ``limits`` that end the run when
        every machine has measured its blocks.
        """
        warm_up = self.study.study.design.warm_up
        done = Counter(name for block, name in history.machines.items() if block >= warm_up)
        # In the order in which they began, so that a resumed run has the same stages.
        started = dict.fromkeys(history.machines[block] for block in sorted(history.machines))
        present = self.present()
        machines = [*(name for name in started if name in present), *sorted(set(present) - started.keys())]
        each = self.plan.each or self._for_a_verdict_of_each(len(machines))
        members = self._stage(machines, done, each)
        wave = [name for name in members if done[name] < each]
        if first in history.machines:
            # A block stays on the machine that began it.
            wave = [history.machines[first]]
        elif not history.machines:  # The first block is judged before anything else is measured.
            wave = wave[:1]
        self.assigned = dict(enumerate(wave, first))
        last = max(first, first + len(wave) - 1)
        measured = last + 1 - warm_up
        if first >= warm_up and first not in history.machines:
            done.update(wave)
        left = sum(max(0, each - done[name]) for name in machines[: self.plan.stages[-1]])
        return last, replace(limits, min_blocks=max(1, measured + left), max_blocks=max(1, measured + left))

    def _for_a_verdict_of_each(self, machines: int) -> int:
        study = self.study
        alpha = family(configurations(study), study.deciding, study.study.analysis.confidence).alpha
        # The error rate holds for all machines together (Bonferroni).
        return fewest_blocks(alpha / max(1, machines))

    def _stage(self, machines: Sequence[str], done: Counter[str], each: int) -> Sequence[str]:
        # The machines of the first stage in which one has not measured its blocks.
        stages = [machines[:size] for size in self.plan.stages]
        unfinished = (place for place, members in enumerate(stages) if any(done[name] < each for name in members))
        place = next(unfinished, len(stages) - 1)
        # Machines that were lost have measured, too.
        size = max(self._record.machines, len(stages[place]))
        now = self._record.model_copy(update={"reached": place + 1, "each": each, "machines": size})
        if now != self._record:
            self._note(now)
            if len(stages) > 1:
                self.say(f"stage {place + 1} of {len(stages)}: {count_of(len(stages[place]), 'machine')}")
        return stages[place]

    def _note(self, record: CanaryRecord) -> None:
        self._record = record
        self.keep(record)

    # Reasons to stop all machines.

    def harm(self, findings: Sequence[Finding], trials: Sequence[Trial], history: TrialHistory) -> Stop | None:
        """Return the stop if a deciding metric worsens significantly, on all machines together or on one of them."""
        if not self.plan.cautious:
            return None
        for finding in findings:
            if finding.deciding and finding.verdict == "worsens":
                return self._stopped("decided", f"{finding.subject} worsens {finding.metric} ({finding.effect})")
        deciding = {metric.name for metric in self.study.deciding}
        for across in compared_machines(self.study, trials, history.machines):
            worse = [result.machine for result in across.machines if result.verdict == "worsens"]
            if worse and across.metric in deciding:
                return self._stopped("decided", f"{across.configuration} worsens {across.metric} on {worse[0]}")
        return None

    def require_guards(self, trial: Trial, machine: str, history: TrialHistory) -> None:
        """Raise StopAll if ``trial`` breaks a guard."""
        is_baseline = trial.slot.configuration == self.study.baseline
        for guard in self.plan.guards:
            if broken := self._broken(guard, trial, machine, history, is_baseline=is_baseline):
                words = f"guard {guard.text} is broken on {machine} under {trial.slot.configuration}: {broken}"
                raise StopAll(self._stopped("failed" if is_baseline else "decided", words))

    def _broken(self, guard: Guard, trial: Trial, machine: str, history: TrialHistory, *, is_baseline: bool) -> str:
        known = (*self.study.deciding, *self.study.described)
        metric = next(metric for metric in known if metric.name == guard.metric)
        value = trial.metrics.get(guard.metric)
        if value is None:
            again = trial.attempt + 1 < MOST_ATTEMPTS and trial.status != "ok"
            return "" if again else f"{guard.metric} has no value{f': {trial.reason}' if trial.reason else ''}"
        if guard.sign:
            return beyond_limit(guard, metric, value)
        if is_baseline:
            return ""
        usual = [
            earlier.metrics[guard.metric]
            for block, name in history.machines.items()
            if name == machine
            for slot in history.slots(block)
            if slot.configuration == self.study.baseline
            for earlier in history.attempts(slot)
            if earlier.status == "ok" and guard.metric in earlier.metrics
        ]
        return worse_than_usual(guard, metric, value, usual)

    def _stopped(self, why: str, words: str) -> Stop:
        self._note(self._record.model_copy(update={"stopped": words}))
        stage = f" in stage {self._record.reached} of {len(self.plan.stages)}" if len(self.plan.stages) > 1 else ""
        return Stop("failed" if why == "failed" else "decided", f"all machines stopped{stage}: {words}")
