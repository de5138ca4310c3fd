"""100,000 stored trials: how long a report of them takes, how much memory, and how large it is.

The store is filled with invented trials, each with the agent's lines as a real one has them (about 2 kB), and ended as
a run ends: its digest is computed and kept, which is timed by itself, as is reading its figures. Then the whole command
``ajuste report RUN --json --html FILE`` is timed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import Home, ajuste_version
from ajuste.model.event import Written
from ajuste.model.kernel import KernelVersion
from ajuste.model.trial import Slot, Trial
from ajuste.store.record import KeptRecord
from ajuste.store.store import Run, Store
from ajuste.study.read import parse_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from benchmarks.comparison import Comparison, seconds

ROUNDS: Final = 3
GOAL_S: Final = 5.0
GOAL_MB: Final = 1000.0
GOAL_HTML_MB: Final = 15.0
_GRANULARITIES: Final = 40
_AT_ONCE: Final = 10_000


@dataclass(frozen=True)
class Cost:
    """Cost of one command: seconds by the clock and of the processor, the most memory it had (MB), and the size of the
    HTML report (MB).
    """

    seconds: float
    processor_s: float
    peak_mb: float
    html_mb: float


def measure() -> tuple[Comparison, ...]:
    """A study of 1,000 configurations × 100 blocks, and one of 100 × 100."""
    return tuple(
        comparison
        for configurations, blocks in ((100, 100), (1000, 100))
        for comparison in _measure(configurations, blocks)
    )


def _measure(configurations: int, blocks: int) -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory(prefix="ajuste-scale-") as directory:
        root = Path(directory)
        with Store(_home(root).store_url) as store:
            run = fill(store, _study(configurations), blocks)
            record = KeptRecord(run, store)
            end_s = {"figures": [seconds(lambda: record.measurements)], "digest": [seconds(lambda: record.digest)]}
        costs = [_report(run, root) for _ in range(ROUNDS)]
    count = f"{configurations * blocks:,} trials"
    for name, unit, goal, figures, others in (
        ("scale-time", "s", GOAL_S, [cost.seconds for cost in costs], [cost.processor_s for cost in costs]),
        ("scale-memory", "MB", GOAL_MB, [cost.peak_mb for cost in costs], []),
        ("scale-html", "MB", GOAL_HTML_MB, [cost.html_mb for cost in costs], []),
    ):
        yield Comparison(
            name=f"{name}-{configurations * blocks}",
            what=f"ajuste report of {count} ({configurations:,} configurations), JSON and HTML",
            unit=unit,
            figures={"ajuste report": figures} | ({"of it processor time": others} if others else {}),
            goal=f"under {goal:g} {unit}",
            reached=max(figures) < goal,
        )
    yield Comparison(
        name=f"scale-end-{configurations * blocks}",
        what=f"what is computed once when a run of {count} ends",
        unit="s",
        figures=end_s,
        goal="as quick as it may be",
        reached=True,
    )


def fill(store: Store, resolved: ResolvedStudy, blocks: int) -> Run:
    """A run of ``blocks`` blocks, ended. Some configurations are quicker, the machine drifts, 1 % is flagged."""
    run = store.new_run(
        study=resolved.study.name,
        fingerprint="0" * 64,
        seed=1,
        ajuste=ajuste_version(),
        named=resolved.study.name,
        resolved=resolved.model_dump_json(),
        environment={},
    )
    trials: list[Trial] = []
    for block in range(blocks):
        trials += _block(resolved.names, block)
        if len(trials) >= _AT_ONCE or block == blocks - 1:
            store.add_trials(run, trials)
            trials.clear()
    store.stop_run(run, "budget", f"the budget of {blocks} blocks is spent")
    return store.find_run(run.id)


def _study(configurations: int) -> ResolvedStudy:
    granularities = [100_000 * (1 + place) for place in range(min(_GRANULARITIES, configurations // 4))]
    wakeups = [100_000 * (1 + place) for place in range(configurations // len(granularities))]
    study = parse_study(
        {
            "name": "scale",
            "question": "Which granularities let hackbench end soonest?",
            "factor": [
                {"name": "sched_min_granularity_ns", "levels": granularities},
                {"name": "sched_wakeup_granularity_ns", "levels": wakeups},
            ],
            "workload": {"command": ["true"]},
            "target": {"kind": "vm", "kernel": "debian:5.10", "clock": "wall"},
            "analysis": {"metrics": ["elapsed", "involuntary-switches"]},
        }
    )
    return resolve(study, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, shutil.which)


def _block(names: tuple[str, ...], block: int) -> Iterator[Trial]:
    noise = np.random.default_rng(block)
    order = noise.permutation(len(names))
    level = 1 + 0.02 * np.sin(block / 40)
    places = order / len(names)
    elapsed = 0.0125 * level * (1 - 0.04 * places) * np.exp(noise.normal(0, 0.01, len(names)))
    switches = noise.poisson(40 + 60 * places)
    flagged = noise.random(len(names)) < 0.01
    for position, configuration in enumerate(order):
        metrics = {"elapsed": round(float(elapsed[position]), 9), "involuntary-switches": float(switches[position])}
        granularity, wakeup = (part.partition("=")[2] for part in names[configuration].split(" "))
        writes = [
            Written(at_ns=8_000_000 + block, tunable=name, asked=value, before="1", after=value)
            for name, value in (("sched_min_granularity_ns", granularity), ("sched_wakeup_granularity_ns", wakeup))
        ]
        yield Trial(
            slot=Slot(
                block=block, position=position, configuration=names[configuration], seed=4610079356560476 + block
            ),
            status="flagged" if flagged[position] else "ok",
            reason=f"other work took {noise.random():.2f} CPUs, usually 0.02" if flagged[position] else "",
            metrics=metrics,
            written=tuple(writes),
            events=_events(block, position, metrics),
            started="2026-01-01T00:00:00.000+00:00",
            host_seconds=metrics["elapsed"],
        )


def _events(block: int, position: int, metrics: dict[str, float]) -> str:
    """Return as many lines, as long as those of a real trial without samplers."""
    at_ns = 8_366_081_580 + 1_000_003 * block + position
    wall_ns = round(metrics["elapsed"] * 1e9)
    counters = "".join(
        f'{{"event":"counter","at_ns":{at_ns + 900 * place},"name":"{name}","value":{wall_ns // 7},'
        f'"enabled_ns":{wall_ns},"running_ns":{wall_ns},"not_supported":null}}\n'
        for place, name in enumerate(_COUNTERS)
    )
    return (
        f'{{"event":"accepted","at_ns":{at_ns},"id":"b{block}p{position}a0"}}\n'
        f'{{"event":"started","at_ns":{at_ns + 39_062_650},"role":"workload","index":0,"pid":138}}\n'
        f'{{"event":"exited","at_ns":{at_ns + 39_062_650 + wall_ns},"role":"workload","index":0,"exit_code":0,'
        f'"signal":null,"timed_out":false,"wall_ns":{wall_ns},"user_ns":285000,"system_ns":2913000,'
        f'"voluntary_switches":2,"involuntary_switches":{metrics["involuntary-switches"]:.0f},"minor_faults":60,'
        f'"major_faults":0,"peak_rss_bytes":1449984}}\n'
        f'{{"event":"output","at_ns":{at_ns + 50_000_000},"role":"workload","index":0,"stream":"stdout","text":"",'
        f'"dropped_bytes":0}}\n{counters}{{"event":"end","at_ns":{at_ns + 60_000_000},"id":"b{block}p{position}a0",'
        f'"ok":true,"events":15}}\n'
    )


_COUNTERS: Final = (
    "task-clock",
    "context-switches",
    "cpu-migrations",
    "page-faults",
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
)


def _home(root: Path) -> Home:
    return Home(data=root / "data", cache=root / "cache", state=root / "state")


def _report(run: Run, root: Path) -> Cost:
    """Measure one command in a process of its own."""
    html = root / "report.html"
    command = [str(Path(sys.executable).parent / "ajuste"), "report", run.id, "--json", "--html", str(html)]
    environment = {**os.environ, "AJUSTE_HOME": str(root)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # Else every start compiles the whole program again.
    began = time.monotonic()
    with (root / "results.json").open("wb") as document:
        process = subprocess.Popen(command, stdout=document, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000, html.stat().st_size / 1e6)
