"""CPUs of a guest that run at once: what one takes from another, how they scale, what the quantum changes, whether
every repeat is the same beside a busy host, what it costs this machine against CPUs that share one clock, and what
accesses cost where a modelled machine keeps the time.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from statistics import mean, median
from typing import Final

from rich.console import Console

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import WORKLOADS, home
from ajuste.model.event import Exited, Output
from ajuste.model.plan import Attributes, Command, Perturbation, Plan
from ajuste.model.results import DEFAULT_QUANTUM_US
from ajuste.model.topology import Topology
from ajuste.model.trial import Observation
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel
from benchmarks.comparison import Comparison, by_turns, show
from benchmarks.repeats import busy_host

SPEC: Final = "debian:6.12"
CPUS: Final = 4
MACHINE: Final = "zen4-8c"
REPEATS: Final = 100
ROUNDS: Final = 2
SEEDS: Final = 12
QUANTA_US: Final = (1, 2, 5, 10, 20)
MOST_APART: Final = 0.005
MOST_TIMES: Final = 1.3
_PROGRAM: Final = f"/ajuste/bin/{WORKLOADS}"
_HACKBENCH: Final = "-l 100 -s 100 -T"


def built(directory: Path, name: str = "across") -> Path:
    """The program of ``across.c``, or of another source here."""
    program, source = directory / name, Path(__file__).with_name(f"{name}.c")
    subprocess.run(["gcc", "-O1", "-static", "-pthread", "-o", program, source], check=True)
    return program


def measure(repeats: int = REPEATS) -> Iterator[Comparison]:
    """Measure all figures; all but the host's time are the same on every machine."""
    with ExitStack() as stack:
        program = built(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        guests = _Guests(stack, program)
        yield _apart(guests)
        yield _jobs(guests)
        yield _hackbench(guests)
        yield from _quanta(guests)
        yield _times(guests, "jobs", _across("jobs", "4", "40"))
        yield _times(guests, "hackbench", _hackbench_plan())
        yield _repeats(guests, repeats)
        yield _modelled(stack, program.parent)


class _Guests:
    """Guests that have booted."""

    def __init__(self, stack: ExitStack, program: Path) -> None:
        hackbench = shutil.which("hackbench")
        self._image = fetch_kernel(SPEC, home())
        self._files = GuestFiles(programs=(Path(hackbench),) if hackbench else (), study_files={"across": program})
        self._stack = stack
        self.of = cache(self._of)

    def _of(self, cpus: int = CPUS, parallel: bool | None = None, turn_us: int | None = None) -> GuestExecutor:
        guest = GuestExecutor(
            self._image,
            clock="virtual",
            cpus=cpus,
            parallel=parallel,
            turn_us=turn_us,
            files=self._files,
            home=home(),
        )
        return self._stack.enter_context(guest)


def _on(cpu: int, *words: str) -> Command:
    return Command(argv=(_PROGRAM, *words), attributes=Attributes(affinity=(cpu,)))


def _linpack(busy: Sequence[int]) -> Plan:
    """LINPACK on the last of the CPUs, beside others that compute."""
    background = tuple(_on(cpu, "matrix", "--size", "60", "--repetitions", "99999") for cpu in busy)
    return Plan(id="linpack", workload=_on(CPUS - 1, "linpack", "--repetitions", "40"), background=background)


def _across(*words: str) -> Plan:
    return Plan(id="across", workload=Command(argv=("/study/across", *words)))


def _seeded(*words: str) -> Iterator[Plan]:
    seeds = random.Random(1)
    for _ in range(SEEDS):
        perturbation = Perturbation(
            entropy=seeds.randrange(2**64),
            environment_bytes=seeds.randrange(4096),
            start_delay_ns=seeds.randrange(4_000_000),
        )
        yield _across(*words).model_copy(update={"perturbation": perturbation})


def _hackbench_plan(groups: int = 4) -> Plan:
    words = (shutil.which("hackbench") or "", "-g", str(groups), *_HACKBENCH.split())
    return Plan(id="hackbench", workload=Command(argv=words))


def _seen(guest: GuestExecutor, plan: Plan) -> Observation:
    observation = guest.run(plan)
    if observation.problem:
        raise SystemExit(f"{plan.id}: {observation.problem}")
    return observation


def _wall_ms(observation: Observation) -> float:
    return next(e.wall_ns / 1e6 for e in observation.events if isinstance(e, Exited) and e.role == "workload")


def _printed(guest: GuestExecutor, plan: Plan) -> list[int]:
    texts = (e.text for e in _seen(guest, plan).events if isinstance(e, Output) and e.stream == "stdout")
    return [int(figure) for figure in re.findall(r"-?\d+", next(texts))]


def _apart(guests: _Guests) -> Comparison:
    guest = guests.of()
    busy = {"alone": (), "beside one": (0,), "beside three": (0, 1, 2)}
    figures = {name: [_wall_ms(_seen(guest, _linpack(cpus)))] for name, cpus in busy.items()}
    (alone,) = figures["alone"]
    apart = {name: values[0] / alone - 1 for name, values in figures.items() if name != "alone"}
    return Comparison(
        name="parallel-apart",
        what=f"LINPACK on a CPU of its own, the others idle or computing ({SPEC}, {CPUS} CPUs)",
        unit="ms",
        figures=figures,
        goal=f"{_percent(apart)}; goal: at most {MOST_APART:.1%}",
        reached=all(abs(difference) <= MOST_APART for difference in apart.values()),
    )


def _jobs(guests: _Guests) -> Comparison:
    guest = guests.of()
    numbers = {f"{jobs} jobs, {cpus} CPU{'s' * (cpus > 1)}": (jobs, cpus) for jobs in (4, 8) for cpus in (1, 2, 4)}
    figures = {
        name: [_printed(guest, _across("jobs", str(cpus), str(jobs)))[0] / 1e6]
        for name, (jobs, cpus) in numbers.items()
    }
    job = figures["4 jobs, 1 CPU"][0] / 4
    apart = {name: figures[name][0] / (job * jobs / cpus) - 1 for name, (jobs, cpus) in numbers.items()}
    return Comparison(
        name="parallel-jobs",
        what="time until the last of so many equal jobs ends",
        unit="ms",
        figures=figures,
        goal=f"against jobs / CPUs: {_percent(apart)}; goal: at most 2 %",
        reached=all(abs(difference) <= 0.02 for difference in apart.values()),
    )


def _hackbench(guests: _Guests) -> Comparison:
    figures = {
        f"{cpus} CPU{'s' * (cpus > 1)}": [_wall_ms(_seen(guests.of(cpus), _hackbench_plan()))] for cpus in (1, 2, 4)
    }
    one_cpu, two_cpus, four_cpus = (values[0] for values in figures.values())
    return Comparison(
        name="parallel-hackbench",
        what=f"hackbench -g 4 {_HACKBENCH}",
        unit="ms",
        figures=figures,
        goal=f"{one_cpu / two_cpus:.2f} times as fast on 2 CPUs, {one_cpu / four_cpus:.2f} times on 4; goal: each "
        "more is faster",
        reached=one_cpu > two_cpus > four_cpus,
    )


def _quanta(guests: _Guests) -> Iterator[Comparison]:
    """Check that what is exact with the default quantum is as with a shorter one."""
    kinds = {
        "futex": ("round trip of two tasks that wake each other on two CPUs (futex)", ("futex", "2", "1000"), 1),
        "lock": ("a lock's turn on 2 CPUs that work as long without it", ("lock", "2", "1000"), 1),
        "hand-off": ("round trip of two tasks that wait in a loop (pause) on two CPUs", ("yield", "2", "2000"), 1),
        "signal": ("time until a computing task on another CPU sees a signal", ("signal", "2", "300"), 0),
    }
    for name, (what, words, place) in kinds.items():
        # Whose turn a lock is depends on single instructions: one trial would measure that, not the quantum.
        figures = {
            f"{quantum} µs": [float(_printed(guests.of(turn_us=quantum), plan)[place]) for plan in _seeded(*words)]
            for quantum in QUANTA_US
        }
        finest, chosen = mean(figures["1 µs"]), mean(figures[f"{DEFAULT_QUANTUM_US} µs"])
        bound = 1000.0 * DEFAULT_QUANTUM_US
        waits = name in ("hand-off", "signal")
        difference = f"{chosen - finest:+.0f} ns ({chosen / finest - 1:+.2%})"
        yield Comparison(
            name=f"parallel-{name}",
            what=f"{what}, by the quantum",
            unit="ns",
            figures=figures,
            goal=f"{DEFAULT_QUANTUM_US} µs against 1 µs, means of {SEEDS} seeds: {difference}; "
            "goal: " + (f"at most the quantum, {bound:.0f} ns" if waits else f"at most {MOST_APART:.1%}"),
            reached=abs(chosen - finest) <= (bound if waits else MOST_APART * finest),
        )


def _times(guests: _Guests, name: str, plan: Plan) -> Comparison:
    def cpu_seconds(guest: GuestExecutor) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _seen(guest, plan)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    ways = {"one clock": guests.of(parallel=False)}
    ways |= {f"at once, {quantum} µs": guests.of(turn_us=quantum) for quantum in QUANTA_US}
    figures = by_turns({way: partial(cpu_seconds, guest) for way, guest in ways.items()}, ROUNDS)
    times = {way: median(values) / median(figures["one clock"]) for way, values in figures.items()}
    chosen = times[f"at once, {DEFAULT_QUANTUM_US} µs"]
    return Comparison(
        name=f"parallel-time-{name}",
        what=f"CPU time of QEMU for a trial of {name} on {CPUS} CPUs",
        unit="s",
        figures=figures,
        goal=f"{', '.join(f'{way}: {ratio:.2f}' for way, ratio in times.items())}; goal: at most {MOST_TIMES}",
        reached=chosen <= MOST_TIMES,
    )


def _repeats(guests: _Guests, repeats: int) -> Comparison:
    guest = guests.of()
    load = Command(argv=(_PROGRAM, "jitter", "--sleeps", "1000000", "--interval-us", "130"))
    plan = _hackbench_plan(groups=1).model_copy(update={"background": (load,)})
    kinds: set[str] = set()

    def trial(_: int) -> None:
        kinds.add(hashlib.sha256(_seen(guest, plan).lines.encode()).hexdigest())

    with busy_host(), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(trial, range(repeats)))
    return Comparison(
        name="parallel-repeats",
        what=f"kinds of trials among {repeats} of hackbench on {CPUS} CPUs, beside a busy host",
        unit="kinds",
        figures={"kinds": [float(len(kinds))]},
        goal="one",
        reached=len(kinds) == 1,
    )


def _modelled(stack: ExitStack, directory: Path) -> Comparison:
    """Guests that have the time of a modelled machine, with two last-level caches for two CPUs each."""
    guest = stack.enter_context(
        GuestExecutor(
            fetch_kernel(SPEC, home()),
            clock="virtual",
            cpus=CPUS,
            topology=Topology(cores=CPUS, llc_groups=2),
            paced_by=catalogue().machines[MACHINE],
            files=GuestFiles(study_files={"costs": built(directory, "costs")}),
            home=home(),
        )
    )
    words = {
        **{f"load of {kib} KiB": ("chase", str(kib), "0") for kib in (16, 256, 4096)},
        "lines of their own": ("share", "64", "100000", "0", "1"),
        "one line": ("share", "8", "100000", "0", "1"),
        "64 lines handed on, one LLC": ("pass", "64", "500", "0", "1"),
        "... two LLCs": ("pass", "64", "500", "0", "2"),
        "256 KiB, staying and moving": ("move", "256", "10", "0", "1"),
        "... to the other LLC": ("move", "256", "10", "0", "2"),
    }
    plans = {name: Plan(id="costs", workload=Command(argv=("/study/costs", *some))) for name, some in words.items()}
    figures = {name: [figure / 1000 for figure in _printed(guest, plan)] for name, plan in plans.items()}
    l1, l2, llc, apart, together, near, far, _, _ = (values[0] for values in figures.values())
    return Comparison(
        name="parallel-modelled",
        what=f"accesses in a guest with the time of {MACHINE} (of moves in µs)",
        unit="ns",
        figures=figures,
        goal="each level further out, a shared line and the other LLC take longer",
        reached=l1 < l2 < llc and together > 10 * apart and far > 2 * near,
    )


def _percent(apart: dict[str, float]) -> str:
    return ", ".join(f"{name} {difference:+.2%}" for name, difference in apart.items())


def main() -> None:
    """``--repeats N`` instead of those of ``make bench``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parallel")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    for comparison in measure(parser.parse_args().repeats):
        show(comparison, Console())
