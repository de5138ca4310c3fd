"""The bench: carries out trials with a chance in guests, and keeps how each ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from ajuste.catalogue.loader import Catalogue
from ajuste.design.blocks import block, perturbation
from ajuste.machine.files import make_directory
from ajuste.model.cost import Costs
from ajuste.model.decision import KINDS, Decisions, NamedDecisions
from ajuste.model.error import RequestError
from ajuste.model.event import EventsByKind, Exited
from ajuste.model.plan import CpuPause, Perturbation, Plan
from ajuste.model.trial import Observation, Slot
from ajuste.outputs.trial_status import trial
from ajuste.run.experiment import prepare
from ajuste.run.testbed import Experiment, RunOptions, testbed_for
from ajuste.study.commands import plan_for, trial_reading
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_hunt.chance import Chance
from ajuste_hunt.goal import STALL, Ending

# A pause at a place begins at the end of its block.
_JUST_NS: Final = 100
_SWITCHES: Final = ("voluntary-switches", "involuntary-switches", "cpu-migrations", "minor-faults")


@dataclass
class Bench:
    """Guests of one study with one configuration. ``tells_stalls``: also how long tasks waited for a CPU."""

    experiment: Experiment
    guest: GuestExecutor
    log: Path
    tells_stalls: bool
    trials: int = 0
    host_seconds: float = 0.0
    _known: dict[str, Ending] = field(default_factory=dict)
    _made: dict[str, tuple[CpuPause, ...]] = field(default_factory=dict)

    @property
    def resolved(self) -> ResolvedStudy:
        return self.experiment.resolved

    def slot(self, seed: int) -> Slot:
        """Return the trial of block ``seed``."""
        return block(seed, self.resolved.names, self.resolved.study.design.seed)[0]

    def perturbation(self, seed: int) -> Perturbation:
        """Return the perturbation of the trials of block ``seed``."""
        return perturbation(self.slot(seed).seed)

    def plan(self, seed: int) -> Plan:
        """Return the plan of every trial with that seed: the one of block 0, as a reproducer has it."""
        plan = plan_for(self.resolved, self.slot(0), 0)
        return plan.model_copy(update={"perturbation": self.perturbation(seed)})

    def endings(self, chances: Sequence[Chance]) -> list[Ending]:
        """Carry out trials with these chances side by side, but for those whose endings are kept."""
        missing = list({_key(chance): chance for chance in chances if _key(chance) not in self._known}.items())
        with ThreadPoolExecutor(self.guest.parallel) as pool:
            for (key, _), (ending, seconds) in zip(
                missing, pool.map(self._ending, (chance for _, chance in missing)), strict=True
            ):
                self._keep(key, ending)
                self.host_seconds += seconds
        self.trials += len(chances)
        return [self._known[_key(chance)] for chance in chances]

    def ending(self, chance: Chance) -> Ending:
        """Carry out one trial with that chance."""
        return self.endings([chance])[0]

    def again(self, chance: Chance) -> str:
        """Carry out a trial anew, and return a digest of all that it told."""
        self.trials += 1
        observation = self.guest.run_paused(self.plan(chance.seed), chance.pauses)
        return hashlib.sha256(f"{observation.lines}{observation.console}".encode()).hexdigest()

    def followed(self, chance: Chance) -> tuple[NamedDecisions, Costs] | None:
        """Return what the scheduler decides in such a trial, and its costs; None where it cannot be followed."""
        observation = self.guest.run_paused(self.plan(chance.seed), chance.pauses, "decisions")
        if observation.decisions is None or observation.costs is None:
            return None
        return self.guest.named_decisions(observation.costs, observation.decisions), observation.costs

    def functions_before(self, chance: Chance, costs: Costs) -> dict[CpuPause, str]:
        """Return which function had just accessed memory that tasks share, for each pause of such a trial with these
        ``costs``.
        """
        accesses = self.shared_accesses(chance)
        functions: dict[CpuPause, str] = {}
        for pause in chance.pauses:
            just = [
                (at_ns, place)
                for cpu, at_ns, place in accesses
                if cpu == pause.cpu and pause.at_ns - _JUST_NS <= at_ns <= pause.at_ns
            ]
            if just:
                functions[pause] = self.guest.function_at(costs, max(just)[1])
        return functions

    def shared_accesses(self, chance: Chance) -> tuple[tuple[int, int, int], ...]:
        """Return when tasks access memory that they share, in such a trial: CPU, time and instruction."""
        return self.guest.shared_accesses(self.plan(chance.seed), chance.pauses)

    def with_pauses(self, chance: Chance) -> Chance:
        """Return the chance with the pauses that it came to at its places, once it was tried."""
        if chance.places is None:
            return chance
        return Chance(chance.seed, self._made[_key(chance)], chance.way)

    def _ending(self, chance: Chance) -> tuple[Ending, float]:
        plan = self.plan(chance.seed)
        if chance.places is not None:
            observation, made = self.guest.run_at_places(plan, chance.places)
            self._made[_key(chance)] = made
            return self._read(plan, observation), observation.host_seconds
        observation = self.guest.run_paused(plan, chance.pauses, "decisions" if self.tells_stalls else None)
        return self._read(plan, observation), observation.host_seconds

    def _read(self, plan: Plan, observation: Observation) -> Ending:
        name = self.resolved.names[0]
        read = trial(self.slot(0), 0, plan, observation, trial_reading(self.resolved, name))
        kinds = EventsByKind(observation.events)
        exits = [event for event in kinds.of(Exited) if event.role == "workload"]
        exited = exits[0] if exits else None
        metrics = dict(read.metrics)
        if observation.decisions is not None:
            metrics[STALL] = longest_wait_ns(observation.decisions) / 1e9
        return Ending(
            exit_code=exited.exit_code if exited else None,
            signal=exited.signal if exited else None,
            timed_out=bool(exited and exited.timed_out),
            problem=observation.problem or ("" if exited else read.reason),
            console=observation.console,
            seconds=exited.wall_ns / 1e9 if exited else 0.0,
            metrics=metrics,
        )

    def _keep(self, key: str, ending: Ending) -> None:
        self._known[key] = ending
        made = [pause.model_dump() for pause in self._made.get(key, ())]
        with self.log.open("a") as file:
            file.write(json.dumps({"key": key, "made": made, **asdict(ending)}) + "\n")

    def recall(self) -> None:
        """Read the endings that an interrupted hunt has kept."""
        if not self.log.exists():
            return
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                stored: dict[str, Any] = json.loads(line)
                key, made = stored.pop("key"), stored.pop("made")
                self._made[key] = tuple(map(CpuPause.model_validate, made))
                self._known[key] = Ending(**stored)
            except (ValueError, TypeError, KeyError, AttributeError):  # the line that was being written
                continue


def signature(ending: Ending) -> tuple[int, ...]:
    """Return how a trial ran, roughly: its end, the length of its time and how often tasks switched."""
    counts = (round(ending.metrics.get(name, 0.0)) for name in _SWITCHES)
    end = (ending.exit_code or 0, ending.signal or 0, int(ending.timed_out), int(bool(ending.problem)))
    return (*end, int(1000 * ending.seconds).bit_length(), *counts)


def longest_wait_ns(decisions: Decisions | NamedDecisions) -> int:
    """Return the longest time for which a task of the workload could run and had no CPU."""
    of_workload = {task.number for task in decisions.tasks if task.role == "workload"}
    since: dict[int, int] = {}
    longest = 0
    for place, kind in enumerate(decisions.kinds):
        now_ns = decisions.at_ns[place]
        running, other = decisions.running[place], decisions.others[place]
        match KINDS[kind]:
            case "switch":
                longest = max(longest, now_ns - since.pop(other, now_ns))
                if running in of_workload and decisions.stays[place]:
                    since[running] = now_ns
            case "wakeup" | "new" if other in of_workload:
                since.setdefault(other, now_ns)
            case _:
                pass
    ended_ns = decisions.ended_ns or 0
    return max(longest, *(ended_ns - began_ns for began_ns in since.values()), 0)


@contextmanager
def opened(
    study: Study, catalogue: Catalogue, options: RunOptions, *, tells_stalls: bool, fresh: bool
) -> Iterator[Bench]:
    """Make guests for ``study`` ready, and leave nothing of them. Raises RequestError for a study that a hunt cannot
    have, or what it lacks.
    """
    experiment = prepare(study, catalogue, options)
    resolved = experiment.resolved
    if len(resolved.configurations) > 1:
        raise RequestError(
            f"the study has {len(resolved.configurations)} configurations; expected one",
            hint="choose one level of each factor: --set FACTOR=LEVEL",
        )
    directory = options.home.state / "hunts"
    make_directory(directory)
    kind = "stalls" if tells_stalls else "ends"
    log = directory / f"{experiment.fingerprint[:32]}-{resolved.study.design.seed}-{kind}.jsonl"
    if fresh:
        log.unlink(missing_ok=True)
    bed = testbed_for(study, options)
    with bed.executor(experiment, resolved.configurations[0].machine, lambda _: None) as guest:
        assert isinstance(guest, GuestExecutor)
        bench = Bench(experiment, guest, log, tells_stalls)
        bench.recall()
        yield bench


def _key(chance: Chance) -> str:
    text = " ".join(f"{pause.cpu}:{pause.at_ns}:{pause.for_ns}" for pause in chance.pauses)
    places = "" if chance.places is None else chance.places.text
    return hashlib.sha256(f"{chance.seed} {text} {places}".encode()).hexdigest()[:32]


def with_timeout(study: Study, seconds: float) -> Study:
    """Return ``study`` with another time limit of its workload."""
    return study.model_copy(update={"workload": study.workload.model_copy(update={"timeout_s": seconds})})
