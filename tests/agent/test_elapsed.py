"""Elapsed time is from the workload's first instruction to its last, whatever else has the CPUs."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from ajuste.model.event import Exited
from tiers import slow

# Uses the CPU, and says itself when it began and ended.
JOB = """\
import os, time
began = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
while time.process_time() < 0.02: pass
os.write(1, b"%d %d" % (began, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)))
os._exit(0)
"""
READERS = "for i in $(seq 20); do cat /dev/urandom >/dev/null & done; wait"
ROUNDING_NS = 2_000  # both CPU times are whole microseconds

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a negative nice value")


def measured(run: Any, nice: int, background: list[dict[str, Any]]) -> tuple[Exited, int]:
    workload = {"argv": [sys.executable, "-S", "-c", JOB], "attributes": {"nice": nice}}
    trial = run(workload=workload, background=background)
    began_ns, ended_ns = map(int, trial.output().text.split())
    return trial.exited(), ended_ns - began_ns


@pytest.mark.parametrize("nice", [-20, 0, *slow(19)])
def test_no_trial_is_shorter_than_the_cpu_time_that_it_used(run: Any, machine_lock: None, nice: int) -> None:
    readers = [run.command(READERS)]
    for _ in range(5):
        exited, own_ns = measured(run, nice, readers)
        assert exited.wall_ns >= own_ns
        assert exited.wall_ns + ROUNDING_NS >= exited.user_ns + exited.system_ns


def test_what_the_agent_prepares_is_no_part_of_the_workload(run: Any) -> None:
    """The time of a program that does nothing is not that of the fork before it."""
    bare = run(workload={"argv": ["true"]})
    padded = run(workload={"argv": ["true"], "attributes": {"nice": 5, "policy": "batch", "affinity": [0]}})
    for trial in (bare, padded):
        assert trial.exited().wall_ns + ROUNDING_NS >= trial.exited().user_ns + trial.exited().system_ns > 0


def test_a_program_with_several_threads_ends_with_the_last_of_them(run: Any) -> None:
    threads = """\
import ctypes, os, threading, time
def last():
    time.sleep(0.3)
    os._exit(0)
threading.Thread(target=last).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    exited = run(workload={"argv": [sys.executable, "-S", "-c", threads]}).exited()
    assert exited.wall_ns >= 300_000_000
