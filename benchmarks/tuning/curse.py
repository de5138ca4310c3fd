"""The winner's curse: whether the gain that is reported is the true one, beside the best trial's figure."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from ajuste.analysis.record import sort_trials
from ajuste.catalogue.loader import catalogue
from ajuste.design.stopping import Stop
from ajuste.model.kernel import KernelVersion
from ajuste.model.results import Results
from ajuste.model.search import SamplerName, Search
from ajuste.model.trial import Trial
from ajuste.run.schedule import TrialHistory
from ajuste.study.read import read_study
from ajuste.study.resolve import resolver
from ajuste_search.tuning.model import tuning_of
from ajuste_search.tuning.results import assemble_search
from ajuste_search.tuning.schedule import SearchSchedule
from ajuste_search.tuning.study import first_study, searched_study
from benchmarks.comparison import Comparison

NOISE: Final = 0.05
"""Standard deviation of a single trial, as a share of its value."""
REPEATS: Final = 40
TRIALS: Final = 60
STARTED: Final = "2026-01-01T00:00:00+00:00"
STUDY: Final = """\
schema = 1
name = "noisy"
[[factor]]
name = "sched_min_granularity_ns"
levels = "1ms..30ms"
points = 20
scale = "log"
[[factor]]
name = "sched_wakeup_granularity_ns"
levels = "1ms..30ms"
points = 20
scale = "log"
[workload]
kind = "matrix"
[target]
kernel = "debian:5.10"
[analysis]
metrics = ["elapsed"]
"""


def curse(repeats: int = REPEATS, sampler: SamplerName = "gp") -> tuple[Comparison, ...]:
    """Searches of a bowl with noise: how far what is reported is from the truth, and how often the interval has it."""
    reported, naive, covered = [], [], 0
    for seed in range(1, repeats + 1):
        results, truth = noisy_search(seed, sampler)
        tuning = tuning_of(results)
        verdict = next(verdict for verdict in results.verdicts if verdict.deciding)
        if tuning is None or verdict.estimate is None or tuning.best_trial is None:
            continue
        reported.append(100 * (truth / verdict.estimate - 1))
        naive.append(100 * (truth / tuning.best_trial - 1))
        covered += (verdict.low or 0) <= truth <= (verdict.high or math.inf)
    return (
        Comparison(
            name="tuning-curse",
            what=f"how much better than it is the winner is said to be, {100 * NOISE:g} % noise, {TRIALS} trials",
            unit="%",
            figures={"ajuste: the check": reported, "best of the trials": naive},
            goal="the true gain within the reported interval in 95 % of the searches "
            f"({covered} of {len(reported)} here)",
            reached=covered >= 0.95 * repeats,
        ),
    )


def noisy_search(seed: int, sampler: SamplerName = "gp", trials: int = TRIALS) -> tuple[Results, float]:
    """The results of one search, and the true ratio of what it checked to the baseline."""
    search = Search(objectives=("elapsed",), trials=trials, sampler=sampler)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "noisy.toml"
        path.write_text(STUDY)
        study = searched_study(read_study(path, catalogue()), search, catalogue()).with_choices(seed=seed)
    made = resolver(study, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: name)
    history = TrialHistory()
    schedule = SearchSchedule(first_study(made, search), history, made)
    noise = np.random.default_rng(seed)
    number = 0
    while not isinstance(stop := schedule.leg(number), Stop):
        for slot in schedule.block(number):
            seconds = true_value(schedule.study.find(slot.configuration).configuration.levels) * math.exp(
                noise.normal(0, NOISE)
            )
            history.add(Trial(slot=slot, status="ok", metrics={"elapsed": seconds}, started=STARTED))
        number += 1
    record = sort_trials(history.trials(number))
    results = assemble_search(schedule.study, record, run="", stopped=stop.why, stopped_because=stop.words)
    tuning = tuning_of(results)
    chosen = tuning.chosen[0] if tuning else ""
    levels = (schedule.study.find(name).configuration.levels for name in (chosen, schedule.study.baseline))
    chosen_value, baseline_value = map(true_value, levels)
    return results, chosen_value / baseline_value


def true_value(levels: dict[str, str]) -> float:
    """A shallow bowl over the logarithms of both."""
    x, y = (math.log(int(level) / 1e6) / math.log(30) for level in levels.values())
    return 1 + 0.3 * (x - 0.7) ** 2 + 0.2 * (y - 0.5) ** 2
