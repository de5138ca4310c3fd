"""The end of a trial is when its process ended, not when the agent got a CPU to notice it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ajuste.model.event import Started

SLEEPER = """\
import os, time
time.sleep(0.1)
os.write(1, b"%d" % time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))
os._exit(0)
"""
HOGS = 2
MOST_TRIALS = 30
LATE_NS = 2_000_000
LATE_TRIALS = 6

pytestmark = [
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the hogs go before the agent"),
]


@contextmanager
def hogs_on(cpu: int) -> Iterator[None]:
    """Ordinary processes that never sleep, with a higher weight than the agent's."""

    def go_first() -> None:
        os.sched_setaffinity(0, [cpu])
        os.nice(-10)

    hogs = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"], preexec_fn=go_first) for _ in range(HOGS)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def test_a_wait_for_a_cpu_does_not_lengthen_a_measurement(run: Any, machine_lock: None) -> None:
    """Beside hogs on the agent's CPU. When the workload ended it says itself."""
    if Path("/proc/self/schedstat").read_text().split()[1] == "0":
        pytest.skip("this kernel does not account for waiting")
    ours, other, *_ = sorted(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    attributes = {"affinity": [other], "nice": -20}
    late: list[tuple[int, int]] = []
    try:
        os.sched_setaffinity(0, [ours])
        with hogs_on(ours):
            for _ in range(MOST_TRIALS):
                trial = run(workload={"argv": [sys.executable, "-S", "-c", SLEEPER], "attributes": attributes})
                ended_ns = int(trial.output().text)
                (started,) = trial.of(Started)
                noticed = trial.exited().at_ns - ended_ns
                if noticed > LATE_NS:
                    late.append((started.at_ns + trial.exited().wall_ns - ended_ns, noticed))
                if len(late) == LATE_TRIALS:
                    break
            else:
                pytest.skip("the agent hardly ever had to wait")
    finally:
        os.sched_setaffinity(0, before)
    # Others of this machine may keep the workload itself from ending.
    assert sum(reported < noticed / 2 for reported, noticed in late) >= LATE_TRIALS / 2, late
