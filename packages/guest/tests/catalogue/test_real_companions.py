"""Companions on a real kernel: it changes the tunable that is written, its companions, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import home
from ajuste.model.event import Output, Written
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Command, Plan, Write
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.kernel.fetch import fetch_kernel

pytestmark = [pytest.mark.slow, pytest.mark.vm, pytest.mark.timeout(600)]

VERSION = KernelVersion.parse("6.12")
QUEUE = "/sys/block/nullb0/queue"
FOLDERS = ("/proc/sys/vm", "/proc/sys/net/mptcp", "/sys/kernel/mm/ksm", "/sys/kernel/mm/hugepages", f"{QUEUE}/")

BFQ = ("block.scheduler[nullb0]", "bfq")
CASES: list[tuple[tuple[str, str], ...]] = [
    (("vm.dirty_ratio", "30"),),
    (("vm.dirty_bytes", "64MiB"),),
    (("vm.dirty_background_ratio", "5"),),
    (("vm.dirty_background_bytes", "16MiB"),),
    (("vm.dirty_bytes", "64MiB"), ("vm.dirty_ratio", "10")),
    (("vm.overcommit_kbytes", "100000"),),
    (("vm.overcommit_kbytes", "100000"), ("vm.overcommit_ratio", "80")),
    (("vm.swappiness", "10"),),
    (("vm.min_free_kbytes", "4096"),),
    (("block.scheduler[nullb0]", "mq-deadline"),),
    (("block.scheduler[nullb0]", "kyber"),),
    (BFQ,),
    (BFQ, ("block.bfq.slice_idle[nullb0]", "4")),
    (BFQ, ("block.bfq.slice_idle_us[nullb0]", "3000")),
    (BFQ, ("block.bfq.timeout_sync[nullb0]", "40")),
    (("block.read_ahead_kb[nullb0]", "64"),),
    (("ksm.advisor_mode", "scan-time"),),
]


class Guest:
    """A kernel that writes tunables and shows its files. Every plan begins with the same machine."""

    def __init__(self, target: GuestExecutor, grep: str) -> None:
        self._target = target
        self._show = Command(argv=(grep, "-rs", "", *FOLDERS))
        self._known: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}

    def after(self, *levels: tuple[str, str]) -> dict[str, str]:
        """Return all files with their values, when the tunables of ``levels`` have been written in this order."""
        if levels not in self._known:
            self._known[levels] = self._listed(levels)
        return self._known[levels]

    def _listed(self, levels: tuple[tuple[str, str], ...]) -> dict[str, str]:
        writes = []
        for name, level in levels:
            tunable = catalogue().find_tunable(name)
            location = catalogue().locate(tunable, VERSION)
            value = catalogue().check_level(tunable, level, VERSION)
            writes.append(Write.model_validate({"tunable": name, "location": location, "value": value}))
        observation = self._target.run(Plan(id="write", writes=tuple(writes), workload=self._show))
        written = [event for event in observation.events if isinstance(event, Written)]
        assert [event.after for event in written] == [write.value for write in writes], observation.problem
        text = "".join(e.text for e in observation.events if isinstance(e, Output) and e.stream == "stdout")
        lines = text.replace("//", "/").splitlines()
        return dict(line.split(":", 1) for line in lines)


@pytest.fixture(scope="module")
def guest() -> Iterator[Guest]:
    grep = shutil.which("grep")
    assert grep, "grep is needed"
    modules = ("null_blk", "bfq", "kyber-iosched", "mq-deadline")
    image = fetch_kernel(f"debian:{VERSION}", home())
    files = GuestFiles(programs=(Path(grep),), modules=modules)
    with GuestExecutor(image, clock="virtual", files=files, home=home()) as target:
        yield Guest(target, grep)


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {path for path in before | after if before.get(path) != after.get(path)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: " then ".join("=".join(pair) for pair in case))
def test_the_kernel_changes_a_tunable_its_companions_and_nothing_else(
    guest: Guest, case: tuple[tuple[str, str], ...]
) -> None:
    tunable = catalogue().find_tunable(case[-1][0])
    before, after = guest.after(*case[:-1]), guest.after(*case)
    listed = before | after

    def files(directory: str) -> list[str]:
        return [path for path in listed if path.startswith(f"{directory}/")]

    location = catalogue().locate(tunable, VERSION)
    known = {getattr(place, "path", "") for place in (location, *catalogue().companions(tunable, VERSION, files))}
    changes = changed(before, after)
    assert changes <= known
    assert getattr(location, "path", "") in changes


def test_putting_back_the_tunable_and_then_its_companions_puts_back_everything(guest: Guest) -> None:
    first = guest.after()
    back = [("vm.dirty_ratio", first["/proc/sys/vm/dirty_ratio"])]
    assert changed(first, guest.after(("vm.dirty_bytes", "64MiB"), *back)) == set()


def test_every_companion_of_a_file_is_tried_here() -> None:
    tried = {catalogue().find_tunable(case[-1][0]).entry for case in CASES}
    with_some = {
        tunable.name
        for tunable in catalogue().tunables.values()
        if (tunable.companions or tunable.companion_directories)
        and tunable.place_in(VERSION)
        and tunable.subsystem in ("memory-writeback", "memory-reclaim", "memory-sharing", "block-schedulers")
    }
    assert with_some <= tried
