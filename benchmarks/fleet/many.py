"""Ten thousand machines: how long analysis and report take of what they have measured, and how much memory and disk."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from pydantic_core import to_jsonable_python

from ajuste.analysis.machines import across_machines
from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.record import sort_trials
from ajuste.analysis.results import assemble, configurations
from ajuste.catalogue.loader import catalogue
from ajuste.machine.inventory.inventory import take_inventory
from ajuste.model.kernel import KernelVersion
from ajuste.model.results import Results
from ajuste.model.trial import Slot, Trial
from ajuste.model.verdict import MACHINES
from ajuste.report.html import write_report
from ajuste.report.results import results_report
from ajuste.study.read import parse_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste_fleet.facets.fleet import effects_of, group_machines

EFFECTS: Final = {1: 0.09, 2: -0.08, 4: -0.06}
"""Effects on the logarithm of the elapsed time, by the number of NUMA nodes."""
NOISE: Final = 0.02
SPREAD: Final = 0.02
Made = TypeVar("Made")


@dataclass(frozen=True)
class Scale:
    """Cost of ``machines`` with ``blocks`` each: seconds for one look, for the results and for the report; megabytes
    of results and report, and of memory at most.
    """

    machines: int
    blocks: int
    look_s: float
    results_s: float
    report_s: float
    results_mb: float
    report_mb: float
    memory_mb: float


def study() -> ResolvedStudy:
    """Return a study of one setting with two values, on machines as they are."""
    tables = {
        "workload": {"command": ["true"]},
        "target": {"kind": "host"},
        "analysis": {"metrics": ["elapsed"]},
        "factor": [{"name": "vm.swappiness", "levels": ["60", "10"]}],
    }
    here = {HOST_KERNEL: KernelVersion(major=6, minor=1)}
    return resolve(parse_study({"name": "fleet", **tables}), catalogue(), here, lambda name: f"/bin/{name}")


def assembled(
    resolved: ResolvedStudy,
    trials: Sequence[Trial],
    owners: Mapping[int, str],
    environment: Mapping[str, Any],
    because: str,
) -> Results:
    """Return the results of machines, ``owners`` of the blocks, with what holds of machines like them."""
    results = assemble(
        resolved,
        trials,
        run="fleet",
        stopped="budget",
        stopped_because=because,
        environment=environment,
        machines=owners,
        group_machines=group_machines,
    )
    clean = clean_trials(sort_trials(trials).measurements)
    fleet = effects_of(resolved, clean, owners, MACHINES.of(results), environment)
    return results.model_copy(update={"fleet": to_jsonable_python(fleet)} if fleet else {})


def played(resolved: ResolvedStudy, machines: int, blocks: int) -> tuple[list[Trial], dict[int, str], dict[str, Any]]:
    """Trials with a known truth, the machine of each block, and what the machines are."""
    random = np.random.default_rng(1)
    base = take_inventory().model_dump(mode="json")
    trials, owners, about = [], {}, {}
    for place in range(machines):
        name = f"node{place:05}"
        nodes = 1 if place % 10 == 0 else 4 if place % 3 == 0 else 2
        cpu = {**base["cpu"], "sockets": min(2, nodes), "cpus": int(random.choice([16, 32, 64, 96]))}
        numa = {str(node): {"cpus": "", "memory_bytes": 2**36, "distances": []} for node in range(nodes)}
        release = {**base["kernel"], "release": f"6.1.{random.integers(3)}"}
        about[name] = {"inventory": {**base, "cpu": cpu, "numa": numa, "kernel": release}}
        effect = EFFECTS[nodes] + random.normal(0, SPREAD)
        for number in range(blocks):
            block = number * machines + place
            owners[block] = name
            for position, tried in enumerate(random.permutation(2)):
                value = float(np.exp(effect * tried + random.normal(0, NOISE)))
                slot = Slot(block=block, position=position, configuration=resolved.names[tried], seed=1)
                trials.append(Trial(slot=slot, status="ok", metrics={"elapsed": value}, host_seconds=1.0))
    trials.sort(key=lambda trial: (trial.slot.block, trial.slot.position))
    return trials, owners, about


def measured(machines: int, blocks: int) -> Scale:
    """Measure what so many machines take in this process."""
    resolved = study()
    trials, owners, about = played(resolved, machines, blocks)
    clean = clean_trials(trials)
    analysis = resolved.study.analysis

    look_s, _ = _timed(
        lambda: across_machines(
            configurations(resolved),
            clean,
            resolved.deciding,
            [],
            owners,
            confidence=analysis.confidence,
            smallest_effect=analysis.smallest_effect,
        )
    )
    results_s, results = _timed(
        lambda: assembled(
            resolved, trials, owners, {"machines": about}, f"{machines:,} machines measured {blocks} blocks each"
        )
    )
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "report.html"
        report_s, _ = _timed(lambda: write_report(results_report(results), path))
        report_mb = path.stat().st_size / 1e6
    return Scale(
        machines=machines,
        blocks=blocks,
        look_s=look_s,
        results_s=results_s,
        report_s=report_s,
        results_mb=len(results.model_dump_json()) / 1e6,
        report_mb=report_mb,
        memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    )


def _timed(work: Callable[[], Made]) -> tuple[float, Made]:
    began = time.monotonic()
    made = work()
    return time.monotonic() - began, made


if __name__ == "__main__":
    print(json.dumps(measured(int(sys.argv[1]), int(sys.argv[2])).__dict__))
