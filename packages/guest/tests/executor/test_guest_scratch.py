"""Scratch file systems in guests, as exact as all else under the virtual clock."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ajuste.machine.home import Home
from ajuste.model.event import Exited, Failed, Output
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Command, Perturbation, Plan, Scratch
from ajuste.model.trial import Observation
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles

MKFS = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin:/bin") or ""
BUSYBOX = "/bin/busybox"
PLACE = "/mnt/scratch"

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(not MKFS or not Path(BUSYBOX).exists(), reason="mkfs.ext4 or busybox is not installed"),
]


def plan(seed: int = 0, **place: Any) -> Plan:
    """Writes 2 MiB through a file system that is made for it, and says what it is mounted on."""
    write = f"{BUSYBOX} dd if=/dev/zero of={PLACE}/x bs=64k count=32 conv=fsync 2>/dev/null"
    script = f"{BUSYBOX} grep {PLACE} /proc/mounts; {write}"
    make = (MKFS, "-q", "-m", "0")
    return Plan(
        id="scratch",
        scratch=Scratch(filesystem="ext4", make=make, mount=PLACE, options="noatime,data=journal", **place),
        workload=Command(
            argv=(BUSYBOX, "sh", "-c", script),
        ),
        perturbation=Perturbation(entropy=seed),
    )


def text(observation: Observation) -> str:
    assert observation.problem == "", observation.problem
    return "".join(event.text for event in observation.events if isinstance(event, Output))


def wall_ns(observation: Observation) -> int:
    return next(event.wall_ns for event in observation.events if isinstance(event, Exited))


def test_a_memory_backed_device_is_formatted_and_written_twice_the_same_to_the_bit(
    place: Home, kernel: Callable[[str], KernelImage]
) -> None:
    files = GuestFiles(programs=(Path(MKFS), Path(BUSYBOX)), modules=("ext4", "null_blk memory_backed=1 gb=1"))
    with GuestExecutor(kernel("debian:6.1"), clock="virtual", files=files, home=place) as target:
        first = target.run(plan(device="/dev/nullb0"))
        assert text(first).startswith(f"/dev/nullb0 {PLACE} ext4 rw,noatime,")
        assert "data=journal" in text(first)
        assert target.run(plan(device="/dev/nullb0")).lines == first.lines
        assert wall_ns(target.run(plan(seed=1, device="/dev/nullb0"))) > 0


@pytest.mark.slow
def test_an_image_in_memory_is_as_good(place: Home, kernel: Callable[[str], KernelImage]) -> None:
    files = GuestFiles(programs=(Path(MKFS), Path(BUSYBOX)), modules=("loop", "ext4"))
    with GuestExecutor(kernel("debian:5.10"), clock="virtual", files=files, home=place) as target:
        image: dict[str, Any] = {"directory": "/dev/shm", "size_bytes": 32 << 20}
        first = target.run(plan(**image))
        assert text(first).startswith(f"/dev/loop0 {PLACE} ext4 rw,noatime,")
        assert target.run(plan(**image)).lines == first.lines
        wrong = target.run(
            plan(**image).model_copy(
                update={
                    "scratch": Scratch(filesystem="ext4", make=(MKFS, "-q"), mount=PLACE, options="data=warp", **image)
                }
            )
        )
        (failed,) = [event for event in wrong.events if isinstance(event, Failed)]
        assert failed.stage == "scratch"
        assert "Invalid argument (EXT4-fs (loop0)" in failed.message
