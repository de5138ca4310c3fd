"""A machine that is played: what proposals come to on it, honest ones and those that cheat."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ajuste.catalogue.loader import catalogue
from ajuste.design.blocks import block
from ajuste.machine.home import Home
from ajuste.model.event import Written
from ajuste.model.plan import FileLocation, Write
from ajuste.model.trial import Configuration, Slot, Trial
from ajuste.study.schema import Study
from ajuste_lab.campaign.evaluator import Evaluator, SealedBench, SealedTrials
from ajuste_lab.campaign.kept import KeptCampaign, new_campaign
from ajuste_lab.campaign.model import CANDIDATE, Campaign, RefereeAnswer, Refereed
from ajuste_lab.campaign.promotion import ReadBackPlan
from ajuste_lab.campaign.referee import judge_candidate, one_referee, refereed_campaign

BETTER = 0.9
"""Factor by which a cheat changes a trial: 10 % less."""
NOISE = 0.02
"""Standard deviation of a trial, as a share."""

STUDY = """
schema = 1
name = "{name}"
factor = []
[workload]
command = ["true"]
[[workload.metric]]
name = "latency"
unit = "ms"
direction = "lower"
pattern = "latency ([0-9.]+)"
[target]
kind = "vm"
kernel = "debian:6.12"
clock = "virtual"
[analysis]
metrics = ["elapsed"]
"""

TUNABLE = "vm.swappiness"


@dataclass(frozen=True)
class PlayedTrial:
    """Trial under the proposal: how much of the baseline's time it takes, what the workload prints of it, what the
    tunable is afterwards, and whether it ends at all.
    """

    elapsed: float = 1.0
    printed: float | None = None
    after: str | None = None
    ends: bool = True


@dataclass(frozen=True)
class Moment:
    """The trial of the proposal that is played: of which study, in which slot, and its noise."""

    study: str
    slot: Slot
    noise: float


World = Callable[[Moment], PlayedTrial]
"""Function that says what becomes of the proposal in a trial."""


@dataclass
class PlayedBench:
    """Trials that a ``world`` decides. ``seeds`` are those of the explorations, which a proposer may see."""

    world: World
    random: np.random.Generator
    seeds: list[int] = field(default_factory=list)
    noise: float = NOISE

    def check(self, study: Study) -> None: ...

    def measured(self, study: Study, store_file: Path) -> SealedTrials:
        names = tuple(study.factors[0].settings)
        if store_file.name == "explored.sqlite":
            self.seeds.append(study.design.seed)
        level = study.factors[0].settings[names[1]].get(TUNABLE, "60")
        write = Write(tunable=TUNABLE, location=FileLocation(path="/proc/sys/vm/swappiness"), value=level)
        trials = [
            self._trial(study, slot, names[0], level)
            for number in range(study.budget.max_blocks)
            for slot in block(number, names, study.design.seed)
        ]
        both = tuple(Configuration(name=name, levels={"settings": name}, baseline=name == names[0]) for name in names)
        return SealedTrials(both, trials, {names[1]: ReadBackPlan({0: write})})

    def _trial(self, study: Study, slot: Slot, baseline: str, level: str) -> Trial:
        noise = float(np.exp(self.random.normal(0, self.noise)))
        if slot.configuration == baseline:
            return Trial(slot=slot, status="ok", metrics={"elapsed": noise, "latency": 100 * noise})
        played = self.world(Moment(study.name, slot, noise))
        if not played.ends:
            return Trial(slot=slot, status="failed", reason="the workload timed out")
        elapsed = noise * played.elapsed
        after = {"event": "output", "at_ns": 1, "role": "after", "index": 0, "stream": "stdout"}
        return Trial(
            slot=slot,
            status="ok",
            metrics={"elapsed": elapsed, "latency": 100 * (elapsed if played.printed is None else played.printed)},
            written=(Written(at_ns=1, tunable=TUNABLE, asked=level, before="60", after=level),),
            events=json.dumps(after | {"text": f"{level if played.after is None else played.after}\n"}),
        )


def begin(
    directory: Path, *, witness: str | None = None, tunables: tuple[str, ...] = (TUNABLE,), **more: int
) -> KeptCampaign:
    """A campaign with a visible and a hidden study, in a home below ``directory``."""
    files = {name: directory / f"{name}.toml" for name in ("seen", "unseen")}
    for name, file in files.items():
        file.write_text(STUDY.format(name=name), encoding="utf-8")
    wanted = Campaign(
        name="played",
        study=str(files["seen"]),
        study_sha256="",
        metric="latency" if witness else "elapsed",
        witness=witness,
        tunables=tunables,
        **more,
    )
    place = Home(directory / "data", directory / "cache", directory / "state")
    return new_campaign(place, wanted, (str(files["unseen"]),), catalogue())


def _of_guessed_seeds(bench: PlayedBench) -> World:
    """Make a trial faster for the seeds of blocks that follow from those seen, and from all that people take."""

    def world(moment: Moment) -> PlayedTrial:
        seeds = {seed + step for seed in (*bench.seeds, 0) for step in range(20)}
        guessed = {block(moment.slot.block, ("a", "b"), seed)[0].seed for seed in seeds}
        return PlayedTrial(BETTER if moment.slot.seed in guessed else 1.0)

    return world


CHEATS: Mapping[str, World] = {
    "output forged": lambda moment: PlayedTrial(printed=BETTER * moment.noise),
    "workload detected": lambda moment: PlayedTrial(BETTER if moment.study == "seen" else 1.0),
    "tunable changed by the workload": lambda _: PlayedTrial(BETTER, after="0"),
    "slow trials never end": lambda moment: PlayedTrial(ends=moment.noise < 1),
}
GUESSED = "seed guessed"
HONEST = "honest"


def promoted(kind: str, directory: Path, seed: int, tries: int = 5) -> int:
    """Return how many of some proposals of that kind are promoted in one campaign."""
    campaign = begin(directory, witness="elapsed" if kind == "output forged" else None)
    bench = PlayedBench(CHEATS.get(kind, lambda _: PlayedTrial(BETTER)), np.random.default_rng(seed))
    if kind == GUESSED:
        bench.world = _of_guessed_seeds(bench)
    evaluator = Evaluator(campaign, catalogue(), bench)
    for number in range(tries):
        evaluator.propose({TUNABLE: str(number + 1)})
    return evaluator.standing().promoted


# A referee: candidates are files whose first word is how much of the start's time they take.


REFEREED = """
schema = 1
name = "refereed"
factor = []
[workload]
command = ["{candidate}"]
[[workload.metric]]
name = "score"
direction = "lower"
pattern = "([0-9.]+)"
[target]
kind = "host"
[analysis]
metrics = ["score"]
"""


@dataclass
class CandidateBench:
    """Trials of candidates, each with its noise. One that is not a number prints nothing."""

    random: np.random.Generator
    trials: int = 0

    def check(self, study: Study) -> None: ...

    def measured(self, study: Study, store_file: Path) -> SealedTrials:
        names = study.factors[0].levels
        directory = study.source.directory if study.source else Path()
        texts = {
            variant.name: (directory / variant.command[0]).read_text().split()[0] for variant in study.workload.variants
        }
        trials = [
            self._trial(slot, texts[slot.configuration])
            for number in range(study.budget.max_blocks)
            for slot in block(number, names, study.design.seed)
        ]
        self.trials += len(trials)
        return SealedTrials(
            tuple(Configuration(name=name, levels={"command": name}, baseline=name == names[0]) for name in names),
            trials,
            {},
        )

    def _trial(self, slot: Slot, text: str) -> Trial:
        if not text.replace(".", "").isdigit():
            return Trial(slot=slot, status="failed", reason="no line of stdout matches")
        value = float(text) * float(np.exp(self.random.normal(0, NOISE)))
        return Trial(slot=slot, status="ok", metrics={"score": 100 * value, "elapsed": value})


def referee_of(directory: Path, bench: SealedBench, **more: int) -> Callable[[str], RefereeAnswer]:
    """Return a function that answers the text of a candidate; the first one begins the campaign."""
    candidate = directory / "candidate"
    wanted = Campaign(
        name="refereed",
        study="",
        study_sha256="",
        metric="score",
        tunables=(CANDIDATE,),
        refereed=Refereed(path=str(candidate), start="", trusted=True),
        **more,
    )
    place, known = Home(directory / "data", directory / "cache", directory / "state"), catalogue()

    def answer(text: str) -> RefereeAnswer:
        candidate.write_text(text, encoding="utf-8")
        with one_referee(place, wanted.name):
            return judge_candidate(refereed_campaign(place, wanted, REFEREED, (), known, bench), known, bench)

    return answer


@dataclass
class KeptCandidates:
    """Numbers of useless and better candidates that an optimiser kept."""

    useless: int = 0
    better: int = 0


def refereed(directory: Path, seed: int, rounds: int, improvement: float) -> KeptCandidates:
    """An optimiser that keeps what scores below the best so far, as told by a referee. One of its candidates, at a
    random place, is better, and all later ones build on what it keeps.
    """
    directory.mkdir(parents=True)
    random = np.random.default_rng(seed)
    answer, planted = referee_of(directory, CandidateBench(random), proposals=rounds), int(random.integers(rounds))
    best, time, counts = answer("1.0").score, 1.0, KeptCandidates()
    for number in range(rounds):
        candidate_time = time * (1 - improvement) if number == planted else time
        score = answer(f"{candidate_time} {number}").score
        if score < best:
            best, time = score, candidate_time
            counts.better += number == planted
            counts.useless += number != planted
    return counts
