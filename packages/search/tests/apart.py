"""A profile that was taken apart, with what was measured, for tests of what follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from ajuste.analysis.record import sort_trials
from ajuste.catalogue.loader import catalogue
from ajuste.model.kernel import KernelVersion
from ajuste.model.results import Results
from ajuste.model.trial import Slot, Trial
from ajuste.study.command_line.request import Request
from ajuste.study.command_line.study import adhoc_document
from ajuste.study.profile import Placed, PlacedSetting, Profile, ProfileLine, Unmapped
from ajuste.study.read import checked_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste_search.ablation.results import assemble_ablation
from ajuste_search.ablation.schedule import ablation_names
from ajuste_search.ablation.study import ablation_document
from ajuste_stats.subsets import of_block, subsets

SETS = {
    "vm.swappiness": "10",
    "vm.dirty_ratio": "40",
    "vm.dirty_expire_centisecs": "500",
    "sched_min_granularity_ns": "10000000",
    "net.core.somaxconn": "8192",
    "vm.max_map_count": "262144",
    "vm.stat_interval": "10",
}


def placed(sets: Mapping[str, str] = SETS) -> Placed:
    """A profile that sets these, with a line that is so already and one that is left out."""
    lines = [
        ProfileLine("sysctl", name, level, Path("p.conf"), place) for place, (name, level) in enumerate(sets.items(), 1)
    ]
    same, left = (
        ProfileLine("sysctl", "vm.laptop_mode", "0", Path("p.conf")),
        ProfileLine("script", "script", "x", Path("p.conf")),
    )
    return Placed(
        Profile("quick", "sysctl:p.conf", "p.conf", (*lines, same, left)),
        tuple(PlacedSetting(line, {line.option: line.value}, {line.option: "0"}) for line in lines),
        (PlacedSetting(same, {"vm.laptop_mode": "0"}, {"vm.laptop_mode": "0"}),),
        (Unmapped(left, "is a program"),),
    )


def resolved(placing: Placed, **options: str) -> ResolvedStudy:
    """The ablation of ``placing`` for hackbench on 5.10."""
    request = Request((("hackbench",),), profile="sysctl:p.conf", kernel="debian:5.10", name="ablate", **options)  # type: ignore[arg-type]
    document, origin = adhoc_document(request, catalogue(), (placing,))
    study = checked_study(ablation_document(document, placing), origin, catalogue())
    kernels = {"debian:5.10": KernelVersion(major=5, minor=10)}
    return resolve(study, catalogue(), kernels, lambda name: f"/bin/{name}")


def results(effects: Mapping[str, float], blocks: int = 9, sets: Mapping[str, str] = SETS) -> Results:
    """Return the results where each line changes the time by its factor ``exp(effect)``, and runs scatter by 0.2 %."""
    study = resolved(placed(sets))
    lines, random = list(sets), np.random.default_rng(1)

    def time(subset: frozenset[int]) -> float:
        return sum(effects.get(lines[line], 0.0) for line in subset)

    trials = _trials(study, len(lines), blocks, time, random)
    return assemble_ablation(
        study, sort_trials(trials), run="r1", stopped="decided", stopped_because="every verdict is in"
    )


def _trials(
    study: ResolvedStudy, lines: int, blocks: int, time: Callable[[frozenset[int]], float], random: np.random.Generator
) -> list[Trial]:
    of_name = dict(zip(study.names, subsets(lines), strict=True))
    trials = []
    for block in range(blocks):
        assert {of_name[name] for name in ablation_names(study, block)} == set(of_block(lines, block))
        for place, name in enumerate(ablation_names(study, block)):
            value = math.exp(time(of_name[name]) + 0.002 * random.standard_normal())
            trials.append(
                Trial(
                    slot=Slot(block=block, position=place, configuration=name, seed=block),
                    status="ok",
                    started="2026-01-01T00:00:00+00:00",
                    host_seconds=0.1,
                    metrics={"hackbench.time": value, "elapsed": value},
                )
            )
    return trials
