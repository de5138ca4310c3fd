"""Speed of guests: instructions a second by CPUs and by what is counted, beside the same programs on this machine;
and how long a boot, a restore and a verdict take. Writes the tables of docs/reference/speed.md.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final
from unittest.mock import patch

from ajuste.catalogue.loader import catalogue
from ajuste.executor.executor import Depth
from ajuste.machine.home import WORKLOADS, home, native_program
from ajuste.model.plan import Command, Plan
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.executor.machine import RunningMachine
from ajuste_guest.kernel.fetch import fetch_kernel
from benchmarks import demo
from benchmarks.comparison import Comparison, by_turns, seconds
from benchmarks.guest import do_nothing, target
from benchmarks.parallel import built
from benchmarks.place import own_home
from benchmarks.verdicts.page import write

SPEC: Final = "debian:6.12"
CPUS: Final = (1, 2, 4, 8)
ROUNDS: Final = 5
BOOTS: Final = 3
RESTORES: Final = 15
MACHINE: Final = "zen4-8c"
PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "speed.md"
PLAIN: Final = "as it is"
DEPTHS: Final[dict[str, Depth]] = {"counts": "counts", "functions": "functions", "modelled machine": "counts"}
GOALS: Final = {"counts": 2.0, "functions": 2.0, "modelled machine": 3.5}
MOST_RESTORE_S: Final = 0.1


def measure() -> Iterator[Comparison]:
    """Measure everything, in about ten minutes, and write the page."""
    with ExitStack() as stack:
        program = built(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        rates = list(_rates(stack, program))
        slower = _slowdowns(stack, program)
    moments = _moments()
    yield from (*rates, *slower, *moments)
    write(_page(rates, slower, moments), PAGE, "speed")


def _guest(stack: ExitStack, cpus: int, program: Path) -> GuestExecutor:
    hackbench = shutil.which("hackbench")
    files = GuestFiles(programs=(Path(hackbench),) if hackbench else (), study_files={"across": program})
    guest = GuestExecutor(fetch_kernel(SPEC, home()), clock="virtual", cpus=cpus, files=files, home=home())
    return stack.enter_context(guest)


def _cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of the processes that ``work`` starts and that end in it.

    Noise of this machine hardly changes that.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# Instructions a second.


def _rates(stack: ExitStack, program: Path) -> Iterator[Comparison]:
    for cpus in CPUS:
        guest = _guest(stack, cpus, program)
        plan = Plan(id="jobs", workload=Command(argv=("/study/across", "jobs", str(cpus), str(8 * cpus))))
        counted = guest.count(plan, "counts").costs
        if counted is None:
            raise SystemExit(f"nothing was counted with {cpus} CPUs")
        figures = by_turns(
            {way: partial(_millions, guest, plan, way, counted.instructions) for way in (PLAIN, *DEPTHS)}, ROUNDS
        )
        times = {way: median(figures[PLAIN]) / median(figures[way]) for way in DEPTHS}
        yield Comparison(
            name=f"speed-{cpus}",
            what=f"equal jobs on {cpus} CPU{'s' * (cpus > 1)} of {SPEC}: instructions of all CPUs a second",
            unit="million",
            figures=figures,
            goal=", ".join(f"{way} ×{ratio:.2f} (goal: {GOALS[way]})" for way, ratio in times.items()),
            reached=all(ratio <= GOALS[way] for way, ratio in times.items()),
        )


def _millions(guest: GuestExecutor, plan: Plan, way: str, instructions: int) -> float:
    nothing_s = _cpu_seconds(lambda: _carry_out(guest, Plan(id="nothing"), PLAIN))
    return instructions / 1e6 / (_cpu_seconds(lambda: _carry_out(guest, plan, way)) - nothing_s)


def _carry_out(guest: GuestExecutor, plan: Plan, way: str) -> None:
    machine = catalogue().machines[MACHINE] if way == "modelled machine" else None
    observation = guest.run(plan) if way == PLAIN else guest.count(plan, DEPTHS[way], machine)
    if observation.problem:
        raise SystemExit(f"{plan.id} ({way}): {observation.problem}")


# The same program here and in a guest.


def _slowdowns(stack: ExitStack, program: Path) -> list[Comparison]:
    guest = _guest(stack, 1, program)
    workloads = str(native_program(WORKLOADS))
    hackbench = shutil.which("hackbench") or "hackbench"
    messages = ("-g", "2", "-l", "400", "-s", "100", "-T")
    jobs = {
        "equal jobs": ((str(program), "jobs", "1", "16"), ("/study/across", "jobs", "1", "16")),
        "LINPACK": (
            (workloads, "linpack", "--repetitions", "100"),
            (f"/ajuste/bin/{WORKLOADS}", "linpack", "--repetitions", "100"),
        ),
        "hackbench": ((hackbench, *messages), (hackbench, *messages)),
    }
    comparisons = []
    for name, (here, there) in jobs.items():
        plan = Plan(id=name, workload=Command(argv=there))
        ways: dict[str, Callable[[], float]] = {
            "here": partial(_cpu_seconds, partial(_on_one_cpu, here)),
            "in a guest": partial(_cpu_seconds, partial(_carry_out, guest, plan, PLAIN)),
        }
        figures = by_turns(ways, ROUNDS)
        ratio = median(figures["in a guest"]) / median(figures["here"])
        comparisons.append(
            Comparison(
                name=f"slowdown-{name.lower().replace(' ', '-')}",
                what=f"CPU time of {name}: here, and of QEMU with one CPU of {SPEC}, its start included",
                unit="s",
                figures=figures,
                goal=f"{ratio:.1f} times; no goal",
                reached=True,
            )
        )
    return comparisons


def _on_one_cpu(command: tuple[str, ...]) -> None:
    subprocess.run(("taskset", "-c", "0", *command), check=True, stdout=subprocess.DEVNULL)


# Moments.


def _moments() -> list[Comparison]:
    boots = [seconds(_boot) for _ in range(BOOTS)]
    first, whole = _restores()
    verdict = next(iter(demo.measure()))
    return [
        _moment("boot", "until a kernel that has never been booted stands at its gate, and is saved", boots),
        _moment("restore", "from QEMU's start to the first instruction of a trial", first, MOST_RESTORE_S),
        _moment("trial", "of a whole trial of a program that does nothing", whole),
        _moment("verdict", verdict.what, verdict.figures["ajuste"]),
    ]


def _moment(name: str, what: str, figures: list[float], most: float | None = None) -> Comparison:
    return Comparison(
        name=f"speed-{name}",
        what=what,
        unit="s",
        figures={"ajuste": figures},
        goal="no goal" if most is None else f"goal: at most {most} s",
        reached=most is None or median(figures) <= most,
    )


def _boot() -> None:
    with own_home() as place, target(SPEC, "virtual", place=place):
        pass


def _restores() -> tuple[list[float], list[float]]:
    first: list[float] = []
    began = 0.0
    resume = RunningMachine.resume

    def noted(machine: RunningMachine) -> None:
        resume(machine)
        first.append(time.monotonic() - began)

    whole = []
    with target(SPEC, "virtual") as guest, patch.object(RunningMachine, "resume", noted):
        for number in range(RESTORES):
            began = time.monotonic()
            whole.append(do_nothing(guest, str(number)))
    return first, whole


# The page.


def _page(rates: list[Comparison], slower: list[Comparison], moments: list[Comparison]) -> str:
    ways = (PLAIN, *DEPTHS)
    lines = [
        f"Measured on a machine with {os.cpu_count()} CPUs ({_cpu_model()}); medians.",
        "",
        f"**Millions of instructions a second**, of all CPUs of the guest together ({SPEC}).",
        "",
        f"| CPUs | {' | '.join(ways)} |",
        f"| ---: |{' ---: |' * len(ways)}",
    ]
    lines += [
        f"| {cpus} | {' | '.join(f'{median(rate.figures[way]):.0f}' for way in ways)} |"
        for cpus, rate in zip(CPUS, rates, strict=True)
    ]
    lines += [
        "",
        "**The same program here and in a guest with one CPU**: CPU time in seconds.",
        "",
        "| program | here | in a guest | times |",
        "| --- | ---: | ---: | ---: |",
    ]
    for comparison in slower:
        here, there = (median(comparison.figures[way]) for way in ("here", "in a guest"))
        name = comparison.what.removeprefix("CPU time of ").partition(":")[0]
        lines.append(f"| {name} | {here:.2f} | {there:.2f} | {there / here:.1f} |")
    lines += ["", "**How long it takes**", "", "| what | seconds |", "| --- | ---: |"]
    lines += [f"| {moment.what} | {median(moment.figures['ajuste']):.2f} |" for moment in moments]
    return "\n".join((*lines, ""))


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
