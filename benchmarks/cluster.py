"""A study by one worker and by two; and 1,000 workers that sleep: how busy the coordinator keeps them, in what memory.

In the second everything is as in a real run (runner, target, scheduler, store, trials that are measured twice), but
that a worker sleeps instead of running a guest, and then says what a guest would have said. The scheduler and the
workers (threads of some Dask workers) are on this machine, too, and take their part of its CPUs.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import Home, ajuste_version
from ajuste.model.cluster import Cluster, cluster_at
from ajuste.model.event import Accepted, Counter, End, Exited, Hello, Output, Started, Written
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan
from ajuste.model.verdict import Finding
from ajuste.run.runner import Executors, Runner
from ajuste.store.store import Store
from ajuste.study.read import parse_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste_fleet.cluster.connection import Connection
from ajuste_fleet.cluster.coordinator import ClusterExecutor
from ajuste_fleet.cluster.keys import make_key
from ajuste_fleet.cluster.keys import security as security_of
from ajuste_fleet.cluster.messages import PLANS, Answer, Ask, GuestJob, PackedGuest, Transcript, answer
from benchmarks.comparison import Comparison, by_turns
from benchmarks.surface import one_block

WORKERS: Final = int(os.environ.get("AJUSTE_BENCH_WORKERS", "1000"))
PROCESSES: Final = 4
TRIALS: Final = int(os.environ.get("AJUSTE_BENCH_TRIALS", "100")) * WORKERS
CONFIGURATIONS: Final = 100
SLEEP_S: Final = float(os.environ.get("AJUSTE_BENCH_SLEEP", "5"))
STUDY: Final = "hackbench-granularity"
ROUNDS: Final = 3
GOAL_S: Final = 45.0
GOAL_EFFICIENCY: Final = 0.9
GOAL_BUSY: Final = 90.0
GOAL_MB: Final = 1000.0
_LINES: Final = "2 kB"


def measure() -> Iterator[Comparison]:
    """A real study by one worker and by two, and the cluster that is simulated."""
    yield from _real()
    yield from _simulated()


def _real() -> tuple[Comparison, ...]:
    """Measure each point of the study once, by turns: by one worker and by two, each time as a whole command."""
    digests: set[str] = set()

    def once(count: int) -> float:
        taken, digest = one_block("--workers", str(count))
        digests.add(digest)
        return taken

    once(2)  # The machine boots, which neither has to do again.
    figures = by_turns({f"--workers {count}": partial(once, count) for count in (1, 2)}, ROUNDS)
    one_worker_s, two_workers_s = (median(times_s) for times_s in figures.values())
    efficiency = one_worker_s / (2 * two_workers_s)
    return (
        Comparison(
            name="cluster-study",
            what=f"each of the 30 points of {STUDY} once, efficiency {efficiency:.2f} from one worker to two",
            unit="s",
            figures=figures,
            goal=f"one digest, {GOAL_EFFICIENCY} at least, under {GOAL_S:g} s with two",
            reached=len(digests) == 1 and efficiency >= GOAL_EFFICIENCY and two_workers_s < GOAL_S,
        ),
    )


def _simulated() -> tuple[Comparison, ...]:
    """Measure one run of all trials."""
    with tempfile.TemporaryDirectory(prefix="ajuste-cluster-") as directory, _sleepers(Path(directory)) as cluster:
        place = Home(Path(directory) / "data", Path(directory) / "cache", Path(directory) / "state")
        began = psutil.Process().memory_info().rss
        took_s, checked = _carry_out(cluster, place)
        grown_mb = (psutil.Process().memory_info().rss - began) / 1e6
    busy = 100 * (TRIALS + checked) * SLEEP_S / (WORKERS * took_s)
    what = f"{TRIALS:,} trials of {SLEEP_S:g} s, {checked:,} of them twice, on {WORKERS:,} workers that sleep"
    return (
        Comparison(
            name="cluster-busy",
            what=what,
            unit="%",
            figures={"time in which workers were at work": [busy]},
            goal=f"at least {GOAL_BUSY:g} %",
            reached=busy >= GOAL_BUSY,
        ),
        Comparison(
            name="cluster-memory",
            what=f"{what}, each saying {_LINES}",
            unit="MB",
            figures={"what the coordinator grew by": [grown_mb]},
            goal=f"under {GOAL_MB:g} MB",
            reached=grown_mb < GOAL_MB,
        ),
    )


def _carry_out(cluster: Cluster, place: Home) -> tuple[float, int]:
    """Carry out the study; seconds from the first trial to the last one, and how many were measured twice."""
    study = _study(TRIALS // CONFIGURATIONS)
    watcher = _Watcher()
    with Store(place.store_url) as store, Connection(cluster, lambda _: None) as connection:
        run = store.new_run(
            study="cluster",
            fingerprint="0" * 64,
            seed=1,
            ajuste=ajuste_version(),
            named="cluster",
            resolved=study.model_dump_json(),
            environment={},
        )
        target = ClusterExecutor(connection, _pack, _nobody)
        with Executors(lambda _: target, lambda *_: None) as executors:
            Runner(study, run, store, executors, watcher).carry_out()
        return watcher.last - watcher.first, target.repeated


def _nobody() -> Any:
    raise AssertionError("workers that say the same need no judge")


class _Watcher:
    """Notes when the first trial began and the last one ended."""

    first = 0.0
    last = 0.0

    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def study_begins(self, study: object) -> None: ...

    def trial_started(self, configuration: str, block: int) -> None:
        self.first = self.first or time.monotonic()

    def trial_done(self, configuration: str, block: int, status: str, seconds: float) -> None:
        assert status == "ok"
        self.last = time.monotonic()

    def block_done(self, block: int, findings: Sequence[Finding] | None) -> None: ...


def _study(blocks: int) -> ResolvedStudy:
    granularities = [100_000 * (1 + place) for place in range(CONFIGURATIONS)]
    study = parse_study(
        {
            "name": "cluster",
            "factor": [{"name": "sched_min_granularity_ns", "levels": granularities}],
            "workload": {"command": ["true"]},
            "target": {"kind": "vm", "kernel": "debian:5.10"},
            "analysis": {"metrics": ["involuntary-switches"]},
            "design": {"allocation": "all"},
            "budget": {"min_blocks": blocks, "max_blocks": blocks, "max_minutes": 600},
        }
    )
    return resolve(study, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")


def _pack(_: Path) -> PackedGuest:
    job = GuestJob(
        ajuste="0",
        qemu="0",
        spec="debian:5.10",
        release="5.10",
        package="",
        kernel="0" * 64,
        initramfs="1" * 64,
        clock="virtual",
        cpus=1,
        memory_mib=256,
        seed=1,
        instruction_ns=2,
    )
    return PackedGuest(job, {})


class Sleeper:
    """Worker that does what one of guests does, but sleeps."""

    def __init__(self, address: str) -> None:
        self._address = address

    def do(self, ask: Ask, job: str, body: bytes) -> bytes:
        answered = self._answer(ask, body).model_copy(update={"worker": self._address})
        return answered.model_dump_json().encode()

    def _answer(self, ask: Ask, body: bytes) -> Answer:
        if ask == "open":
            hello = Hello(
                at_ns=0, version=1, agent="0", kernel="5.10", build="", machine="", cpus=1, memory_bytes=1, guest=True
            )
            return answer(hello=hello)
        if ask == "carry-out":
            plans = PLANS.validate_json(body)
            time.sleep(SLEEP_S * len(plans))
            return answer(done=[_transcript(plan) for plan in plans])
        return answer()


def _transcript(plan: Plan) -> Transcript:
    switches = 1000 + plan.perturbation.start_delay_ns % 7
    common: dict[str, Any] = {"user_ns": 1, "system_ns": 1, "voluntary_switches": 1, "minor_faults": 1, "index": 0}
    common |= {"major_faults": 0, "peak_rss_bytes": 1, "wall_ns": 10**9, "at_ns": 4}
    events = (
        Accepted(at_ns=1, id=plan.id),
        *(Written(at_ns=2, tunable=w.tunable, asked=w.value, before="750000", after=w.value) for w in plan.writes),
        Started(at_ns=3, role="workload", index=0, pid=3),
        *(Counter(at_ns=4, name=name, value=1000, enabled_ns=1, running_ns=1) for name in plan.counters),
        Exited(role="workload", exit_code=0, involuntary_switches=switches, **common),
        Output(at_ns=4, role="workload", index=0, stream="stdout", text="x" * 400),
    )
    end = End(at_ns=5, id=plan.id, ok=True, events=len(events))
    lines = "".join(f"{event.model_dump_json()}\n" for event in (*events, end))
    return Transcript(lines=lines, host_seconds=SLEEP_S)


@contextmanager
def _sleepers(directory: Path) -> Iterator[Cluster]:
    """A scheduler and its workers, in processes of their own."""
    keys = directory / "keys"
    make_key(keys)
    cluster = _cluster(keys)
    ajuste = Path(sys.executable).parent / "ajuste"
    with ExitStack() as stack:
        listening = [str(ajuste), "cluster", "scheduler", "--listen", cluster.address, "--cluster-keys", str(keys)]
        scheduling = stack.enter_context(subprocess.Popen(listening, stderr=subprocess.PIPE, text=True))
        stack.callback(scheduling.terminate)
        assert scheduling.stderr is not None
        scheduling.stderr.readline()
        working = f"from benchmarks.cluster import serve; serve({str(keys)!r})"
        workers = [
            stack.enter_context(subprocess.Popen([sys.executable, "-c", working], stdout=subprocess.PIPE, text=True))
            for _ in range(PROCESSES)
        ]
        for worker in workers:
            stack.callback(worker.terminate)
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        yield cluster


def _cluster(keys: Path) -> Cluster:
    return cluster_at("--cluster", "tls://127.0.0.1:8786", keys, insecure=False, root=True)


def serve(keys: str) -> None:
    """Be one of the processes with workers until the scheduler ends."""
    import distributed

    from ajuste_fleet.cluster.worker import NAME, quiet_dask

    quiet_dask()
    cluster = _cluster(Path(keys))

    async def work() -> None:
        worker = await distributed.Worker(
            cluster.address,
            nthreads=WORKERS // PROCESSES,
            security=security_of(cluster),
            dashboard_address="127.0.0.1:0",
        )
        worker.plugins[NAME] = Sleeper(worker.address)
        print("working", flush=True)
        await worker.finished()

    asyncio.run(work())
