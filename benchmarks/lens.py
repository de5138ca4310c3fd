"""Cost of counting instructions on this machine: a trial without the lens, with counts by task, by function, and with
a modelled machine.

The guest does not notice: what its agent says is the same to the byte, which is checked here too. A trial is the
restored snapshot of ``granularity``, its job and its background load.
"""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from statistics import median
from typing import Self

import psutil

from ajuste.catalogue.loader import catalogue
from ajuste.executor.executor import Depth
from ajuste.machine.home import WORKLOADS, home
from ajuste.model.plan import Command, Plan
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel
from benchmarks.comparison import Comparison, by_turns

SPEC = "debian:5.10"
ROUNDS = 9
MOST = {"counts": 1.25, "functions": 2.0, "model": 3.0}
MACHINE = "zen4-8c"
MOST_MORE_MIB = 200

_ALONE = "without the lens"
_LOOK_S = 0.02
_JOB = (f"/ajuste/bin/{WORKLOADS}", "matrix", "--size", "200", "--repetitions", "3")
_LOAD = (f"/ajuste/bin/{WORKLOADS}", "spin")


def measure() -> tuple[Comparison, ...]:
    """Wall time of a trial, and the memory of its QEMU."""
    place = home()
    image = fetch_kernel(SPEC, place)
    memory: dict[str, list[float]] = {}
    used: dict[str, list[float]] = {}
    streams: set[str] = set()
    with GuestExecutor(image, clock="virtual", files=GuestFiles(), home=place, instruction_ns=8) as guest:
        ways = {way: _way(guest, way, memory, used, streams) for way in (_ALONE, *MOST)}
        for trial in ways.values():  # The first one reads the kernel's symbols.
            trial()
        figures = by_turns(ways, ROUNDS)
    times = {way: median(figures[way]) / median(figures[_ALONE]) for way in MOST}
    cpu = {way: median(used[way]) / median(used[_ALONE]) for way in MOST}
    more = {way: median(memory[way]) - median(memory[_ALONE]) for way in MOST}
    same = "the same events in all" if len(streams) == 1 else f"{len(streams)} DIFFERENT STREAMS OF EVENTS"
    return (
        Comparison(
            name="lens-time",
            what=f"wall time of a trial of granularity in a guest ({SPEC}, QEMU {guest.environment['QEMU']})",
            unit="s",
            figures=figures,
            goal=f"{_words(times)}, {same}; goal: at most {_words(MOST)}, the same events",
            reached=len(streams) == 1 and all(times[way] <= most for way, most in MOST.items()),
        ),
        Comparison(
            name="lens-cpu-time",
            what="CPU time of QEMU for such a trial, which a busy machine does not change as much",
            unit="s",
            figures=used,
            goal=f"{_words(cpu)}; goal: as above",
            reached=all(cpu[way] <= most for way, most in MOST.items()),
        ),
        Comparison(
            name="lens-memory",
            what="the most memory of QEMU in such a trial",
            unit="MiB",
            figures=memory,
            goal=f"{', '.join(f'{mib:.0f} MiB more for {way}' for way, mib in more.items())}; goal: at most "
            f"{MOST_MORE_MIB} MiB",
            reached=max(more.values()) <= MOST_MORE_MIB,
        ),
    )


def _words(times: dict[str, float]) -> str:
    return ", ".join(f"{way} x{time:.3g}" for way, time in times.items())


def _way(
    guest: GuestExecutor,
    way: str,
    memory: dict[str, list[float]],
    used: dict[str, list[float]],
    streams: set[str],
) -> Callable[[], float]:
    plan = Plan(id="lens", workload=Command(argv=_JOB), background=(Command(argv=_LOAD),))
    depths: dict[str, Depth | None] = {_ALONE: None, "counts": "counts", "functions": "functions", "model": "counts"}
    depth = depths[way]
    machine = catalogue().machines[MACHINE] if way == "model" else None

    def trial() -> float:
        with _Watch() as watch:
            began, before_s = time.monotonic(), _cpu_seconds()
            observation = guest.run(plan) if depth is None else guest.count(plan, depth, machine)
            took_s = time.monotonic() - began
        if observation.problem:
            raise SystemExit(f"{way}: {observation.problem}")
        streams.add(observation.lines)
        used.setdefault(way, []).append(_cpu_seconds() - before_s)
        memory.setdefault(way, []).append(watch.most_bytes / (1 << 20))
        return took_s

    return trial


def _cpu_seconds() -> float:
    """Return the CPU time of all processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class _Watch:
    """The most memory that any child of this process has, looked at now and then."""

    def __init__(self) -> None:
        self.most_bytes = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        process = psutil.Process()
        while not self._is_over.wait(_LOOK_S):
            for child in process.children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    self.most_bytes = max(self.most_bytes, child.memory_info().rss)
