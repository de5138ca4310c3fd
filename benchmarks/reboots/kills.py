"""Kill an experiment across reboots of a played machine at every step, by kill -9 or a power cut, and look at the end.

It must always come up in a working kernel, end by itself, leave the boot loader's files and the units as they were,
and have exactly the trials that it was to have.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from ajuste.model.boot import BOOTS
from ajuste.run.runner import schedule_of
from ajuste.run.schedule import TrialHistory
from ajuste.store.store import Store
from ajuste.study.resolved import ResolvedStudy
from ajuste_boots.model import KeptBoots
from benchmarks.comparison import Comparison
from benchmarks.reboots.experiment import go_on, in_a_child, played_study
from benchmarks.reboots.played import LoaderName, PlayedMachine, Rebooted, always

KILLS = 60
_MOST_STARTS = 200


class Draw(Protocol):
    """Draws whether the power is cut after a kill."""

    def random(self) -> float: ...


@dataclass
class RebootTally:
    """Outcomes of the kills. All but the first two and ``boots`` must be 0."""

    kills: int = 0
    studies: int = 0
    boots: int = 0
    files_changed: int = 0
    experiments_left: int = 0
    trials_lost: int = 0
    trials_doubled: int = 0
    in_experiment_at_end: int = 0
    never_ended: int = 0
    steps: Counter[str] = field(default_factory=Counter)

    @property
    def wrong(self) -> int:
        """Number of outcomes that must not be."""
        return sum(
            (
                self.files_changed,
                self.experiments_left,
                self.trials_lost,
                self.trials_doubled,
                self.in_experiment_at_end,
                self.never_ended,
            )
        )


def measure(kills: int = KILLS) -> Iterator[Comparison]:
    """Studies with a kill at a random step of each process, until there were so many kills."""
    tally, draw = RebootTally(), random.Random(1)
    while tally.kills < kills:
        with tempfile.TemporaryDirectory() as directory:
            study = played_study(blocks=2, rounds=2)
            at = [draw.randrange(1, 40) if draw.random() < 0.7 else 0 for _ in range(_MOST_STARTS)]
            one_study(Path(directory), study, at, draw, tally)
    yield Comparison(
        name="reboots-kills",
        what=f"{tally.kills} kills (kill -9, power cuts) of {tally.studies} studies over {tally.boots} played boots",
        unit="",
        figures={name: [float(count)] for name, count in asdict(tally).items() if isinstance(count, int)},
        goal="nothing lost, doubled, changed or left",
        reached=tally.wrong == 0,
    )


def one_study(
    place: Path, study: ResolvedStudy, at: list[int], draw: Draw, tally: RebootTally, loader: LoaderName = "grub"
) -> None:
    """Carry out one study to its end. The process number n is killed before its step ``at[n]``; at 0 it is not."""
    machine, home = PlayedMachine(place / "machine", always, loader), place / "home"
    home.mkdir()
    before = machine.files
    tally.studies += 1
    for number in range(_MOST_STARTS):
        code = in_a_child(partial(_process, machine, study, home, at[number] if number < len(at) else 0))
        killed = code == -signal.SIGKILL
        tally.kills += killed
        if code == 1:
            raise RuntimeError("a process of the study failed")
        is_over = not (home / "reboots/state.json").exists() and not machine.resumes
        if is_over and not killed and _has_ended(home):
            break
        if not killed or draw.random() < 0.6:  # It reboots, or the power was cut.
            (machine.cut if killed else machine.power_on)()
            tally.boots += 1
    else:
        tally.never_ended += 1
    machine.power_on()
    tally.files_changed += machine.files != before
    tally.experiments_left += (home / "reboots/state.json").exists()
    tally.in_experiment_at_end += bool(machine.rebootable.mark)
    _count(home, study, tally)


def _process(machine: PlayedMachine, study: ResolvedStudy, home: Path, limit: int) -> None:
    steps = iter(range(1, 1 << 30))

    def step(_name: str) -> None:
        if next(steps) == limit:
            os.kill(os.getpid(), signal.SIGKILL)

    if _has_ended(home) and not (home / "reboots/state.json").exists():
        from ajuste_boots.session import remove_units

        remove_units(machine.rebootable)
        return
    try:
        go_on(machine, study, home, step)
    except Rebooted:
        return


def _has_ended(home: Path) -> bool:
    if not (home / "store.sqlite").exists():
        return False
    with Store(f"sqlite:///{home / 'store.sqlite'}") as store:
        return any(run.stopped for run in store.runs())


def _count(home: Path, study: ResolvedStudy, tally: RebootTally) -> None:
    """The trials that are there against those of the design; each was begun in a boot that came up."""
    with Store(f"sqlite:///{home / 'store.sqlite'}") as store:
        run = store.find_run(next(run.id for run in store.runs() if run.stopped))
        stored = Counter(
            (trial.slot.block, trial.slot.position, trial.slot.configuration) for trial in store.trials(run)
        )
        boots = KeptBoots.model_validate(run.environment[BOOTS])
        up = {boot.number for boot in boots.boots if boot.outcome in ("up", "cut")}
        placed = {place[:2] for place, boot in boots.boot_by_trial().items() if boot in up}
    schedule = schedule_of(study, TrialHistory())
    design = study.study.design
    last = schedule.limits.max_blocks * (design.warm_up + study.study.blocks_per_boot)
    wanted = {(s.block, s.position, s.configuration) for number in range(last) for s in schedule.block(number)}
    tally.trials_lost += len(wanted - set(stored)) + sum((block, place) not in placed for block, place, _ in stored)
    tally.trials_doubled += sum(count - 1 for count in stored.values()) + len(set(stored) - wanted)
