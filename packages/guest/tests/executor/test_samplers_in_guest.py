"""Samplers in a guest under the virtual clock: the flusher's rule is seen in the figures, to the second and the bit."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGALRM

import psutil
import pytest

from ajuste.machine.home import Home
from ajuste.model.event import Sample, Sampled
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Command, FileLocation, Plan, Sampler, Write
from ajuste.outputs.timeline_metrics import Timeline, measure, sampling
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles

pytestmark = pytest.mark.vm

EXPIRE = FileLocation(path="/proc/sys/vm/dirty_expire_centisecs")
PROGRAMS = ("sh", "dd", "mkfs.ext2", "mkdir", "mount", "sync")
JOB = """set -e
mkfs.ext2 -q -b 4096 /dev/ram0 16M
mkdir -p /mnt
mount -t ext4 /dev/ram0 /mnt
sync
dd if=/dev/zero of=/mnt/file bs=1M count=5
"""


@pytest.fixture(scope="module")
def disk(place: Home, kernel: Callable[[str], KernelImage]) -> Iterator[GuestExecutor]:
    """A guest with a disk in memory and what is needed for a file system on it."""
    paths = [shutil.which(name) for name in PROGRAMS]
    if None in paths:
        pytest.skip(f"one of {', '.join(PROGRAMS)} is not installed")
    files = GuestFiles(programs=tuple(Path(str(path)) for path in paths), modules=("brd", "ext4"))
    with GuestExecutor(kernel("debian:5.10"), clock="virtual", files=files, home=place) as target:
        yield target


def plan(expire_centisecs: int) -> Plan:
    """5 MiB into a file, then nothing for 45 s."""
    return Plan(
        id="writeback",
        writes=(Write(tunable="vm.dirty_expire_centisecs", location=EXPIRE, value=str(expire_centisecs)),),
        workload=Command(argv=("/bin/sh", "-c", JOB), environment={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}),
        samplers=(
            Sampler(source="vmstat", keys=("nr_dirty", "nr_written"), interval_ns=100_000_000),
            Sampler(source="schedstat", keys=("cpu0.timeslices",), interval_ns=1_000_000_000),
            Sampler(source="pressure", keys=("io.*",), interval_ns=1_000_000_000),
        ),
        observe_ns=45_000_000_000,
    )


@pytest.mark.parametrize(("expire_centisecs", "least_s", "most_s"), [(3000, 30, 35), (1000, 10, 15)])
@pytest.mark.slow
def test_dirty_pages_are_written_after_their_time(
    disk: GuestExecutor, expire_centisecs: int, least_s: float, most_s: float
) -> None:
    observation = disk.run(plan(expire_centisecs))
    assert observation.problem == ""
    samples = sampling(observation.events)
    assert samples is not None
    delay = Timeline(name="delay", source="vmstat", key="nr_written", take="delay", since="end", counter=True)
    assert least_s <= measure(delay, samples) <= most_s
    most_dirty = Timeline(name="dirty", source="vmstat", key="nr_dirty", take="maximum")
    assert measure(most_dirty, samples) >= 5 << 20 >> 12


def test_readings_come_on_time_and_are_the_same_to_the_bit(disk: GuestExecutor) -> None:
    first = disk.run(plan(1000))
    assert disk.run(plan(1000)).lines == first.lines
    times = [event.at_ns for event in first.events if isinstance(event, Sample) and event.source == "vmstat"]
    (end,) = [event for event in first.events if isinstance(event, Sampled) and event.source == "vmstat"]
    assert (end.skipped, end.full) == (0, False)
    # 45 s at 10 Hz, and one more at each of the start, the end of the workload and the end of the observation.
    assert 450 <= end.readings == len(times) <= 456
    late = [(at_ns - times[0]) % 100_000_000 for at_ns in times[1:]]
    assert sorted(late)[-3] < 5_000_000


@contextlib.contextmanager
def qemu_woken() -> Iterator[None]:
    """The main thread of every QEMU started here looks up from its wait at random moments, as on a busy machine."""
    ended = threading.Event()

    def wake() -> None:
        chance = random.Random(5)
        seen: dict[int, float] = {}
        looked = 0.0
        while not ended.wait(chance.random() * 0.0005):
            now = time.monotonic()
            if now - looked > 0.1:
                looked = now
                guests = [child.pid for child in psutil.Process().children() if "qemu" in child.name()]
                seen = {pid: seen.get(pid, now) for pid in guests}
            for pid, since in seen.items():
                if now - since > 0.5:  # before, QEMU would not have said yet that it takes signals by itself
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, SIGALRM)

    thread = threading.Thread(target=wake)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.slow
def test_what_wakes_qemu_meanwhile_changes_nothing(disk: GuestExecutor) -> None:
    undisturbed = disk.run(plan(1000))
    with qemu_woken():
        assert all(disk.run(plan(1000)).lines == undisturbed.lines for _ in range(3))
