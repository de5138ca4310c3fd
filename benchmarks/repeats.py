"""Check that a trial is the same each time, beside a busy host: what the agent says and what the lens counts by
function, with one CPU and with several that halt and wake up.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from ajuste.machine.home import WORKLOADS, home, native_program
from ajuste.model.plan import Command, Plan
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel
from benchmarks.comparison import Comparison

REPEATS: Final = 40
SPEC: Final = "debian:6.1"
CPUS: Final = (1, 2)
_PROGRAM: Final = f"/ajuste/bin/{WORKLOADS}"
_PLAN: Final = Plan(
    id="repeats",
    workload=Command(argv=(_PROGRAM, "jitter", "--sleeps", "3000", "--interval-us", "100")),
    background=(Command(argv=(_PROGRAM, "jitter", "--sleeps", "1000000", "--interval-us", "130")),),
)


def measure(repeats: int = REPEATS, *, cpus: tuple[int, ...] = CPUS, with_lens: bool = True) -> tuple[Comparison, ...]:
    """Count the kinds of trials; 1 is the goal."""
    figures = {f"{count} CPU{'s' * (count > 1)}": _kinds(count, repeats, with_lens) for count in cpus}
    return (
        Comparison(
            name="repeats",
            what=f"kinds of trials among {repeats} of one plan, half of them with the lens, on a busy host ({SPEC})",
            unit="kinds",
            figures={name: [float(len(kinds))] for name, kinds in figures.items()},
            goal="; ".join(f"{name}: {sorted(kinds.values())}" for name, kinds in figures.items()),
            reached=all(len(kinds) == 1 for kinds in figures.values()),
        ),
    )


def _kinds(cpus: int, repeats: int, with_lens: bool) -> Counter[str]:
    """Count each kind of what the agent said and of what the lens counted. ``with_lens=False``: as QEMU is."""
    if not with_lens:
        with patch("ajuste_guest.executor.guest.lens_of_turns", return_value=None):
            return _kinds_of(cpus, repeats, 0)
    return _kinds_of(cpus, repeats, 2)


def _kinds_of(cpus: int, repeats: int, counted_every: int) -> Counter[str]:
    place = home()
    image = fetch_kernel(SPEC, place)
    printed: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    with busy_host(), GuestExecutor(image, clock="virtual", cpus=cpus, files=GuestFiles(), home=place) as guest:

        def trial(number: int) -> None:
            is_counted = counted_every > 0 and number % counted_every == 1
            observation = guest.count(_PLAN, "functions") if is_counted else guest.run(_PLAN)
            if observation.problem:
                raise SystemExit(f"trial {number}: {observation.problem}")
            printed[_digest(observation.lines)] += 1
            if observation.costs is not None:
                counted[_digest(observation.costs.model_dump_json())] += 1
            if number % 50 == 0:
                print(f"{time.strftime('%H:%M:%S')} {cpus} CPUs, trial {number}", file=sys.stderr)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(trial, range(repeats)))
    if len(counted) > 1:
        return counted
    return printed


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def busy_host() -> Iterator[None]:
    """A job for each CPU of the host, which takes half of it from time to time."""
    program = native_program(WORKLOADS)
    loop = f"while :; do {program} spin --milliseconds 300; sleep 0.2; done"
    jobs = [
        subprocess.Popen(("setpriv", "--pdeathsig", "KILL", "sh", "-c", loop), start_new_session=True)
        for _ in range(os.cpu_count() or 1)
    ]
    try:
        yield
    finally:
        for job in jobs:
            os.killpg(job.pid, 9)
            job.wait()


def main() -> None:
    """``--repeats N`` and ``--cpus N`` instead of those of ``make bench``; ``--plain`` is without the lens."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repeats")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--cpus", type=int, nargs="*", default=CPUS)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    for comparison in measure(options.repeats, cpus=tuple(options.cpus), with_lens=not options.plain):
        print(comparison.what, comparison.figures, comparison.goal, sep="\n")
        if not comparison.reached:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
