"""A search over a surface that the test makes up: a target whose elapsed time is what a function says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ajuste.catalogue.loader import catalogue
from ajuste.design.stopping import Stop
from ajuste.kernel.spec import parse_spec
from ajuste.model.event import Accepted, End, Event, Exited, Output, Started, Written
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.model.results import Results
from ajuste.model.search import Search
from ajuste.model.trial import Observation
from ajuste.run.outcome import results_of
from ajuste.run.runner import Executors, Runner
from ajuste.store.store import Run, Store
from ajuste.study.read import read_study
from ajuste.study.resolve import Resolver, resolver
from ajuste.study.resolved import ResolvedStudy
from ajuste_search.tuning.model import Standing
from ajuste_search.tuning.study import first_study, searched_study
from played import PlayedExecutor

STUDY = """\
schema = 1
name = "surface"
question = "Which granularities are best?"

[[factor]]
name = "sched_min_granularity_ns"
levels = [1000000, 2000000, 4000000, 8000000, 16000000, 32000000, 64000000, 128000000]

[[factor]]
name = "sched_wakeup_granularity_ns"
levels = [1000000, 2000000, 4000000, 8000000, 16000000, 32000000, 64000000, 128000000]

[workload]
kind = "matrix"
parameters = { size = 100, repetitions = 2 }

[target]
kernel = "debian:5.10"

[analysis]
metrics = ["elapsed"]
smallest_effect = 0.03
"""

Figures = Callable[[dict[str, int], int], tuple[float, int]]
"""Function from the values of the two granularities and a seed to seconds and involuntary switches."""


class Surface(PlayedExecutor):
    """Executor whose trials take as long as ``figures`` says for what the kernel made of values: ``clamp`` at most."""

    parallel = 1

    def __init__(self, figures: Figures, clamp: int = 10**12, end_after: int | None = None) -> None:
        super().__init__()
        self._figures = figures
        self._clamp = clamp
        self._end_after = end_after
        self._lock = threading.Lock()

    def run(self, plan: Plan) -> Observation:
        with self._lock:
            if self._end_after is not None and len(self.plans) >= self._end_after:
                raise KeyboardInterrupt
            self.plans.append(plan)
        values = {write.tunable: min(int(write.value), self._clamp) for write in plan.writes}
        seconds, switches = self._figures(
            values, plan.perturbation.start_delay_ns + plan.perturbation.environment_bytes
        )
        events = tuple(_events(plan, values, seconds, switches))
        return Observation(lines="\n".join(e.model_dump_json() for e in events), events=events, host_seconds=1.0)


def _events(plan: Plan, values: dict[str, int], seconds: float, switches: int) -> Iterator[Event]:
    yield Accepted(at_ns=1, id=plan.id)
    for write in plan.writes:
        after = str(values[write.tunable])
        yield Written(at_ns=2, tunable=write.tunable, asked=write.value, before="750000", after=after)
    yield Started(at_ns=3, role="workload", index=0, pid=3)
    common: dict[str, Any] = {"user_ns": 1, "system_ns": 1, "voluntary_switches": 1, "minor_faults": 1}
    common |= {"major_faults": 0, "peak_rss_bytes": 1, "wall_ns": round(seconds * 1e9), "index": 0, "at_ns": 4}
    yield Exited(role="workload", exit_code=0, involuntary_switches=switches, **common)
    text = "matrix size=100 repetitions=2 checksum=1\n"
    yield Output(at_ns=4, role="workload", index=0, stream="stdout", text=text)
    yield End(at_ns=5, id=plan.id, ok=True, events=6)


class Watching:
    """A watcher that remembers how the search stood."""

    def __init__(self) -> None:
        self.standings: list[Standing] = []

    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def study_begins(self, study: object) -> None: ...

    def trial_started(self, configuration: str, block: int) -> None: ...

    def trial_done(self, configuration: str, block: int, status: str, seconds: float) -> None: ...

    def block_done(self, block: int, findings: object) -> None: ...

    def search_stands(self, standing: Standing) -> None:
        self.standings.append(standing)


def prepared(folder: Path, search: Search, text: str = STUDY) -> tuple[ResolvedStudy, Resolver]:
    """The study as a search begins with it."""
    path = folder / "surface.toml"
    path.write_text(text)
    known = catalogue()
    study = searched_study(read_study(path, known, parse_kernel=parse_spec), search, known)
    kernels = {"debian:5.10": KernelVersion(major=5, minor=10)}
    made = resolver(study, known, kernels, lambda name: f"/bin/{name}")
    return first_study(made, search), made


def begin(study: ResolvedStudy, store: Store) -> Run:
    document = study.model_dump_json()
    return store.new_run(
        study="surface", fingerprint="f", seed=1, ajuste="0", named="ajuste tune x", resolved=document, environment={}
    )


def carry_out(study: ResolvedStudy, made: Resolver, run: Run, store: Store, target: Surface) -> tuple[Stop, Watching]:
    """Carry out one search, or the rest of it."""
    watching = Watching()
    with Executors(lambda _: target, lambda *_: None) as executors:
        return Runner(study, run, store, executors, watching, made).carry_out(), watching


def searched(folder: Path, search: Search, figures: Figures, text: str = STUDY, **more: Any) -> Results:
    """The results of a whole search."""
    study, made = prepared(folder, search, text)
    with Store(f"sqlite:///{folder / 'store.sqlite'}") as store:
        run = begin(study, store)
        stop, _ = carry_out(study, made, run, store, Surface(figures, **more))
        store.stop_run(run, stop.why, stop.words)
        return results_of(store.find_run(run.id), store)
