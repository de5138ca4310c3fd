"""Studies whose results reports are made of, and the browser that these are looked at in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.report.simulated import (
    CPUS,
    CYCLES,
    ELAPSED,
    FAULTS,
    HOSTILE,
    INVOLUNTARY,
    MIGRATIONS,
    MIN_GRANULARITY,
    RSS,
    TASK_CLOCK,
    TIME,
    VOLUNTARY,
    WAKEUP_GRANULARITY,
    Simulated,
    simulate,
)

from ajuste.model.explained import EXPLAINED, Explained
from ajuste.model.results import Results
from ajuste.model.timeline import TIMELINES, SampledFigure, SampledLine, TimelineMark
from ajuste.model.trial import Factor
from headless import chromium

EXPLAINED_MIN = Explained(
    name=MIN_GRANULARITY,
    title="Shortest time on the CPU",
    what="How long a task may run before the fair scheduler takes the CPU away for another one that waits. Larger "
    "values mean fewer switches and longer waits.",
    unit="ns",
    default="0.75 ms × (1 + log2(CPUs)), CPUs counted up to 8",
    where="/proc/sys/kernel/sched_min_granularity_ns",
    initial_value="750000",
    note="Gone from 6.6 on, where base_slice_ns is a related but different knob.",
)
EXPLAINED_WAKEUP = Explained(
    name=WAKEUP_GRANULARITY,
    title="Advantage a woken task needs",
    what="By how much less a waking task must have run before it may take the CPU from the running one.",
    unit="ns",
    default="1 ms × (1 + log2(CPUs)), CPUs counted up to 8",
    where="/proc/sys/kernel/sched_wakeup_granularity_ns",
    initial_value="1000000",
)
ENVIRONMENT = {
    "kernel": {"release": "5.10.0-46-cloud-amd64", "package": "linux-image-5.10.0-46-cloud-amd64 5.10.262-1"},
    "machine": {"QEMU": "7.2.22", "accelerator": "tcg", "CPUs": "1", "memory": "256 MiB"},
    "workload": {
        "command": "/ajuste/bin/ajuste-workloads matrix --size 200 --repetitions 40",
        "background": "/ajuste/bin/ajuste-workloads spin",
        "kernel command line": "console=ttyS0 quiet panic=-1 nokaslr tsc=reliable ajuste.gate=1 random.trust_cpu=off",
    },
    "ajuste": "0.1.0",
}


def _granularity_truth(levels: dict[str, str], random: np.random.Generator) -> dict[str, float]:
    level = int(levels[MIN_GRANULARITY])
    switches = {750000: 135, 7500000: 68, 75000000: 7, 750000000: 1}[level]
    elapsed = 2.52 * (1 - 0.004 * math.log10(level / 750000)) * math.exp(random.normal(0, 0.004))
    return {
        "involuntary-switches": float(max(0, switches + round(random.normal(0, 0.012 * switches)))),
        "voluntary-switches": float(random.integers(1, 4)),
        "elapsed": elapsed,
        "task-clock": 1260.4 * math.exp(random.normal(0, 0.0006)),
        "cpus-utilized": 1.2604 / elapsed,
        "cpu-migrations": 0.0,
        "page-faults": float(122 + random.integers(0, 3)),
        "peak-rss": 2_162_688.0 + 4096 * int(random.integers(0, 2)),
    }


GRANULARITY_METRICS = (INVOLUNTARY, VOLUNTARY, ELAPSED, TASK_CLOCK, CPUS, MIGRATIONS, FAULTS, RSS, CYCLES)
GRANULARITY_FACTOR = Factor(
    name=MIN_GRANULARITY, levels=("750000", "7500000", "75000000", "750000000"), baseline="750000"
)
REPRODUCE = ("ajuste kernel fetch debian:5.10", "ajuste run granularity --kernel debian:5.10 --seed 1")


@pytest.fixture(scope="session")
def granularity() -> Results:
    """Four levels of one factor, a clear effect on switches, next to none on time."""
    study = Simulated(
        factors=(GRANULARITY_FACTOR,),
        metrics=GRANULARITY_METRICS,
        deciding=(INVOLUNTARY, ELAPSED),
        truth=_granularity_truth,
        blocks=8,
    )
    return simulate(
        study,
        study="granularity",
        title="Scheduler granularity and context switches",
        question="Does a larger minimum granularity reduce the involuntary context switches of a busy task?",
        answer="Yes: involuntary context switches fall from level to level, from 135 at 750 µs to 1 at 750 ms. "
        "Elapsed time stays within ±5 % at every level.",
        explained=(EXPLAINED_MIN,),
        environment=ENVIRONMENT,
        reproduce=REPRODUCE,
        notes=("Replicates under the virtual clock are seeds: they change the memory layout and the start time.",),
    )


def _hackbench_truth(levels: dict[str, str], random: np.random.Generator) -> dict[str, float]:
    m, w = int(levels[MIN_GRANULARITY]) / 1e6, int(levels[WAKEUP_GRANULARITY]) / 1e6
    time = 2.34 + 1.1 / m**1.2 + 0.05 * math.log(w / 8) ** 2 + 0.004 * (m - 16) ** 2 / 16
    return {
        "hackbench.time": time * math.exp(random.normal(0, 0.012)),
        "voluntary-switches": float(round(9000 + 120_000 / (m * w) * math.exp(random.normal(0, 0.05)))),
        "involuntary-switches": float(round(300 + 108_000 / (m * w) ** 1.1 * math.exp(random.normal(0, 0.05)))),
    }


@pytest.fixture(scope="session")
def grid() -> Results:
    """Hackbench over a grid of two factors, 6 × 5 levels, three metrics."""
    ms = ("1000000", "4000000", "8000000", "16000000", "20000000", "30000000")
    ws = ("1000000", "4000000", "8000000", "16000000", "30000000")
    study = Simulated(
        factors=(
            Factor(name=MIN_GRANULARITY, levels=ms, baseline=ms[0]),
            Factor(name=WAKEUP_GRANULARITY, levels=ws, baseline=ws[0]),
        ),
        metrics=(TIME, VOLUNTARY, INVOLUNTARY),
        deciding=(TIME,),
        truth=_hackbench_truth,
        blocks=5,
    )
    return simulate(
        study,
        study="hackbench-grid",
        title="Hackbench over two granularities",
        question="Which minimum and wake-up granularity make hackbench fastest?",
        answer="Hackbench is fastest at 16 ms and 8 ms; every combination with a minimum granularity of 4 ms or more "
        "improves on the baseline.",
        explained=(EXPLAINED_MIN, EXPLAINED_WAKEUP),
        environment=ENVIRONMENT,
        reproduce=("ajuste run hackbench-grid --seed 7",),
    )


def _noisy_truth(levels: dict[str, str], random: np.random.Generator) -> dict[str, float]:
    return {"elapsed": 0.21 * math.exp(random.normal(0, 0.18)), "peak-rss": 44_040_192.0}


@pytest.fixture(scope="session")
def undecided() -> Results:
    """Noise on a wall clock: nothing is decided, some trials were flagged or failed, the first block warms up."""
    study = Simulated(
        factors=(Factor(name="vm.swappiness", levels=("60", "10", "100"), baseline="60"),),
        metrics=(ELAPSED, RSS),
        deciding=(ELAPSED,),
        truth=_noisy_truth,
        blocks=5,
        warm_up=1,
        spoilt={
            (2, 1): ("flagged", "another process used 31 % of the CPU"),
            (3, 0): ("failed", "the guest panicked: Kernel panic - not syncing: sysrq triggered crash"),
            (4, 2): ("failed", "the workload ran into its time limit of 60 s"),
        },
    )
    return simulate(
        study,
        clock="wall",
        study="swappiness",
        title="Swappiness and a job that fits into memory",
        question="Does vm.swappiness change how long the job takes?",
        answer="Not known yet: neither 10 nor 100 can be told from 60 after 5 blocks.",
        stopped="budget",
        stopped_because="the budget of 5 blocks is spent",
        environment=ENVIRONMENT,
        notes=("2 of 21 trials failed and 1 was flagged; each was repeated.",),
        reproduce=("ajuste run swappiness.toml --seed 7",),
    )


def _rising_truth(levels: dict[str, str], random: np.random.Generator) -> dict[str, float]:
    return {"hackbench.time": 10 * (1 + int(levels["knob"]) / 1000) * float(np.exp(random.normal(0, 1e-5)))}


@pytest.fixture(scope="session")
def crowded() -> Results:
    """A hundred configurations, each a little slower than the one before."""
    factor = Factor(name="knob", levels=tuple(str(level) for level in range(1, 101)), baseline="1")
    return simulate(Simulated((factor,), (TIME,), (TIME,), _rising_truth, blocks=3, smallest_effect=1e-4))


def sampled(results: Results, source: str = "vmstat", key: str = "nr_written") -> tuple[SampledFigure, ...]:
    """A delay that is shorter from configuration to configuration, and a level that is the same in all."""
    names = [configuration.name for configuration in results.configurations]
    steps = {name: 30.0 - 7 * place for place, name in enumerate(names)}
    delay = tuple(
        SampledLine(
            configuration=name,
            block=block,
            end_s=2.0,
            at_s=(0.0, at_s - 0.1 + block / 10, at_s + block / 10, 40.0),
            values=(0.0, 0.0, 1280.0, 1280.0),
            representative=block == 0,
        )
        for name, at_s in steps.items()
        for block in range(3)
    )
    marks = tuple(TimelineMark(metric="elapsed", configuration=name, at_s=at_s - 0.05) for name, at_s in steps.items())
    flat = tuple(
        SampledLine(configuration=name, block=0, end_s=2.0, at_s=(0.0, 40.0), values=(5e6, 5e6), representative=True)
        for name in names
    )
    return (
        SampledFigure(source=source, key=key, shown="growth", unit="pages", lines=delay, marks=marks),
        SampledFigure(source="meminfo", key="Dirty", shown="value", unit="B", lines=flat),
        SampledFigure(source="stat", key="ctxt", shown="rate", unit="/s", lines=flat),
    )


@pytest.fixture(scope="session")
def timed(granularity: Results) -> Results:
    """A study with samplers."""
    return granularity.model_copy(update={"timelines": sampled(granularity)})


@pytest.fixture(scope="session")
def hostile(granularity: Results) -> Results:
    """Results in which every free text would be a script if it were taken for HTML."""
    renamed = {c.name: f"{c.name} {HOSTILE}" for c in granularity.configurations}
    factor = f"{MIN_GRANULARITY}{HOSTILE}"
    configurations = tuple(
        c.model_copy(update={"name": renamed[c.name], "levels": {factor: f"{place}{HOSTILE}"}})
        for place, c in enumerate(granularity.configurations, 1)
    )
    changed = granularity.model_copy(update={"configurations": configurations})
    explained = EXPLAINED_MIN.model_copy(update={"name": factor, "what": HOSTILE, "note": HOSTILE})
    return changed.model_copy(
        update={
            **TIMELINES.document(sampled(changed, source=HOSTILE, key=f"%{{x}} {HOSTILE}")),
            "title": f"Title {HOSTILE}",
            "question": f"Question {HOSTILE} \u2028 \u202e",
            "answer": f"Answer {HOSTILE} \x1b[31m",
            "notes": (f"Note {HOSTILE}", "{{ 7 * 7 }} ${7*7} %{x}"),
            "reproduce": [f"ajuste run '{HOSTILE}'"],
            "environment": {f"key {HOSTILE}": {HOSTILE: f"value {HOSTILE}"}},
            **EXPLAINED.document((explained,)),
            "factors": (Factor(name=factor, levels=tuple(f"{x}{HOSTILE}" for x in "1234"), baseline=f"1{HOSTILE}"),),
            "metrics": tuple(
                m.model_copy(update={"title": f"{m.title} {HOSTILE}", "unit": m.unit and f"{m.unit}{HOSTILE}"})
                for m in granularity.metrics
            ),
            "verdicts": tuple(
                v.model_copy(update={"configuration": renamed[v.configuration], "reason": HOSTILE})
                for v in granularity.verdicts
            ),
            "trials": tuple(
                t.model_copy(update={"configuration": renamed[t.configuration], "reason": HOSTILE})
                for t in granularity.trials
            ),
        }
    )


@pytest.fixture(scope="module")  # while it is open no other event loop can run in this process
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started
