"""A fleet of guests: each stands for a machine with a topology of its own, behind a worker of a Dask cluster.

The coordinator is the real one. A worker resolves the study that it is sent for its own guest, and carries out blocks
there under the virtual clock. The command does by its very words less under the tried value on machines with several
NUMA nodes, and more on those with one: so the right answer is known.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import distributed
from distributed.diagnostics.plugin import WorkerPlugin

from ajuste.catalogue.loader import catalogue
from ajuste.executor.executor import Executor
from ajuste.machine.home import Home
from ajuste.machine.inventory.inventory import Inventory
from ajuste.machine.inventory.processor import Cpu, Memory, NumaNode
from ajuste.machine.inventory.software import Kernel
from ajuste.model.cluster import Cluster
from ajuste.model.error import AjusteError
from ajuste.model.event import End, Restored, Written, parse_event
from ajuste.model.fleet import FleetPlan
from ajuste.model.plan import MemoryNode, Plan
from ajuste.model.results import Results
from ajuste.model.topology import Topology
from ajuste.run.experiment import conduct, prepare, progress_of
from ajuste.run.outcome import results_of
from ajuste.run.testbed import Experiment, RunOptions, testbed_for
from ajuste.store.store import Store
from ajuste.study.command_line.request import Request
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.schema import Study
from ajuste.study.target import TargetTable
from ajuste_fleet.cluster.messages import PLANS, Answer, Ask, HostJob, Transcript, failure, run_plan
from ajuste_fleet.cluster.worker import NAME, quiet_dask

KERNEL: Final = "debian:6.1"
TRIED: Final = "vm.swappiness=10"
LOOPS: Final = 3000
PLANTED: Final = {"several nodes": 0.85, "one node": 1.2}
# Of a setting a shell reads the first digit only: it reads one byte at a time, and the kernel gives such a value once.
SCRIPT: Final = (
    f"n={LOOPS}; read nodes < /sys/devices/system/node/online; read value < /proc/sys/vm/swappiness; "
    f"case $value,$nodes in 1*,0) n={round(LOOPS * PLANTED['one node'])};; "
    f"1*) n={round(LOOPS * PLANTED['several nodes'])};; esac; "
    "while [ $n -gt 0 ]; do n=$((n-1)); done"
)


@dataclass(frozen=True)
class Shape:
    """Shape of a machine: ``nodes`` of memory, with ``cpus`` and ``memory_mib`` in all."""

    nodes: int
    cpus: int
    threads: int
    memory_mib: int

    @property
    def target(self) -> TargetTable:
        """The guest that stands for it."""
        topology = Topology(sockets=self.nodes, cores=self.cpus // self.nodes // self.threads, threads=self.threads)
        share = MemoryNode(cpus=self.cpus // self.nodes, memory_mib=self.memory_mib // self.nodes)
        nodes = (share,) * self.nodes if self.nodes > 1 else ()
        table = {"kernel": KERNEL, "cpus": self.cpus, "memory_mib": self.memory_mib, "topology": topology}
        return TargetTable.model_validate({**table, "node": nodes})

    def inventory(self, release: str) -> Inventory:
        """Return what the machine says of itself."""
        cores = self.cpus // self.threads
        return Inventory(
            cpu=Cpu(model="emulated", cpus=self.cpus, sockets=self.nodes, cores=cores, threads_per_core=self.threads),
            numa={
                str(node): NumaNode(memory_bytes=(self.memory_mib << 20) // self.nodes) for node in range(self.nodes)
            },
            memory=Memory(total_bytes=self.memory_mib << 20),
            kernel=Kernel(release=release),
        )


def shapes(count: int, few: int | None = None) -> tuple[Shape, ...]:
    """Return so many different machines, of which the first ``few`` have one NUMA node: a fifth."""
    memory = (256, 288, 320, 352)
    several = [Shape(*topology, size) for size in memory for topology in ((2, 2, 1), (2, 4, 1), (2, 4, 2), (4, 4, 1))]
    single = [Shape(1, *topology, size) for size in memory for topology in ((1, 1), (2, 1), (2, 2), (4, 1))]
    few = count // 5 if few is None else few
    return (*single[:few], *several[: count - few])


@dataclass
class Machine:
    """A worker's part, whose guest boots at its first block."""

    name: str
    shape: Shape
    home: Home
    turns: threading.Semaphore
    """Limit of guests that run at once: as many as this machine has CPUs."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stack: ExitStack = field(default_factory=ExitStack)
    _experiment: Experiment | None = None
    _executor: Executor | None = None

    def answer(self, ask: Ask, job: str, body: bytes) -> Answer:
        """Do what a coordinator asks of a machine."""
        try:
            match ask:
                case "bench-survey":
                    experiment = self._prepared(job)
                    release = next(iter(experiment.images.values())).release
                    return Answer(
                        where=self.name,
                        identity=self.name,
                        resolved=experiment.resolved.model_dump_json(),
                        inventory=self.shape.inventory(release).model_dump_json(),
                    )
                case "bench-carry-out":
                    experiment, plans = self._prepared(job), PLANS.validate_json(body)
                    with self.turns:
                        executor = self._entered(experiment)
                        return Answer(where=self.name, done=tuple(map(partial(_run, executor), plans)))
                case "bench-close":
                    self.close()
        except AjusteError as error:
            return failure(error).model_copy(update={"where": self.name})
        return Answer(where=self.name)

    def close(self) -> None:
        self._stack.close()
        self._executor = None

    def _prepared(self, job: str) -> Experiment:
        with self._lock:
            if self._experiment is None:
                sent = Study.model_validate_json(HostJob.model_validate_json(job).study)
                study = sent.model_copy(update={"target": self.shape.target})
                self._experiment = prepare(study, catalogue(), RunOptions(self.home))
            return self._experiment

    def _entered(self, experiment: Experiment) -> Executor:
        if self._executor is None:
            study = experiment.resolved
            bed = testbed_for(study.study, RunOptions(self.home))
            machine = study.find(study.baseline).machine
            self._executor = self._stack.enter_context(bed.executor(experiment, machine, lambda _: None))
        return self._executor


def _run(executor: Executor, plan: Plan) -> Transcript:
    """Run a plan as on a machine that restores its values: a guest forgets them with its memory."""
    transcript = run_plan(executor, plan)
    events = [parse_event(line) for line in transcript.lines.splitlines()]
    if not events or not isinstance(end := events.pop(), End):
        return transcript
    restored = [
        Restored(at_ns=end.at_ns, tunable=event.tunable, found=event.after, value=event.before)
        for event in events
        if isinstance(event, Written)
    ]
    whole = [*events, *restored, end.model_copy(update={"events": end.events + len(restored)})]
    return transcript.model_copy(update={"lines": "".join(f"{event.model_dump_json()}\n" for event in whole)})


class _Station(WorkerPlugin):
    def __init__(self, machine: Machine, address: str) -> None:
        self._machine = machine
        self._address = address

    def do(self, ask: Ask, job: str, body: bytes) -> bytes:
        answered = self._machine.answer(ask, job, body).model_copy(update={"worker": self._address})
        return answered.model_dump_json().encode()


@contextmanager
def cluster_of(machines: Sequence[Machine]) -> Iterator[Cluster]:
    """A scheduler with a worker for each machine, in a thread of this process."""
    quiet_dask()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def done(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(120)

    async def scheduler() -> distributed.Scheduler:
        started: distributed.Scheduler = await distributed.Scheduler(
            host="127.0.0.1", port=0, protocol="tcp", dashboard_address="127.0.0.1:0"
        )
        return started

    async def worker(machine: Machine, address: str) -> distributed.Worker:
        started: distributed.Worker = await distributed.Worker(
            address, nthreads=1, dashboard_address="127.0.0.1:0", name=machine.name
        )
        started.plugins[NAME] = _Station(machine, started.address)
        return started

    async def end() -> None:
        await asyncio.gather(*(dask_worker.close(executor_wait=False) for dask_worker in workers))
        await scheduling.close()

    scheduling = done(scheduler())
    workers = [done(worker(machine, scheduling.address)) for machine in machines]
    try:
        yield Cluster(scheduling.address, "127.0.0.1", int(scheduling.address.rpartition(":")[2]), None)
    finally:
        done(end())
        for machine in machines:
            machine.close()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def measured(count: int, plan: FleetPlan, place: Path, home: Home, *, single: int | None = None) -> Results:
    """The answer of so many emulated machines; what is kept of it is in ``place``."""
    request = Request(
        commands=(("sh", "-c", SCRIPT),), set=("vm.swappiness=60,10",), warm_up=0, max_time="2h", name="fleet"
    )
    study = adhoc_study(request, catalogue())
    turns = threading.Semaphore(len(os.sched_getaffinity(0)))
    machines = [Machine(f"node{n:02}", shape, home, turns) for n, shape in enumerate(shapes(count, single))]
    with (
        cluster_of(machines) as cluster,
        Store(f"sqlite:///{place}/store.sqlite") as store,
        progress_of(study, catalogue(), quiet=True) as progress,
    ):
        options = RunOptions(home, cluster=cluster, fleet=plan)
        experiment = prepare(study, catalogue(), options)
        return results_of(conduct(experiment, store, progress, options, named="fleet", fresh=True), store)
