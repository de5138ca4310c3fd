"""Booted machines that were kept: the next trials begin from them at once, unless they are damaged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BufferedReader, BytesIO
from pathlib import Path

import pytest

from ajuste.executor.executor import NOTES
from ajuste.machine.home import WORKLOADS, Home
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Attributes, Command, Plan
from ajuste_guest.executor import snapshot as booted
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import GuestFiles
from ajuste_guest.executor.snapshot import Snapshot

pytestmark = pytest.mark.vm


def contest() -> Plan:
    """A fixed job against an endless one."""
    program = f"/ajuste/bin/{WORKLOADS}"
    return Plan(
        id="contest",
        background=(Command(argv=(program, "spin"), attributes=Attributes(nice=1)),),
        workload=Command(argv=(program, "matrix", "--size", "100", "--repetitions", "2")),
        counters=("context-switches",),
    )


@dataclass
class Elsewhere:
    """A machine in a cache of its own."""

    image: KernelImage
    home: Home
    messages: list[str] = field(default_factory=list)

    def boot(self, seed: int = 1) -> GuestExecutor:
        return GuestExecutor(
            self.image, clock="virtual", files=GuestFiles(), home=self.home, seed=seed, say=self.messages.append
        )

    def once(self, seed: int = 1) -> tuple[str, dict[str, str]]:
        with self.boot(seed) as target:
            return target.run(contest()).lines, target.environment

    def copy(self, cache: Path) -> Elsewhere:
        """... in which it has been kept as in this one."""
        shutil.copytree(self.home.cache, cache)
        return Elsewhere(self.image, Home(self.home.data, cache, self.home.state))


@pytest.fixture(scope="module")
def elsewhere(place: Home, kernel: Callable[[str], KernelImage], tmp_path_factory: pytest.TempPathFactory) -> Elsewhere:
    """... that nothing was kept in."""
    home = Home(place.data, tmp_path_factory.mktemp("elsewhere") / "cache", place.state)
    return Elsewhere(kernel("debian:5.10"), home)


@pytest.fixture(scope="module")
def first(elsewhere: Elsewhere) -> tuple[str, dict[str, str]]:
    """Return the lines and environment of a trial where the machine booted."""
    trial = elsewhere.once()
    assert elsewhere.messages == ["booting debian:5.10"]
    return trial


@pytest.mark.slow
def test_a_machine_that_has_booted_once_is_ready_at_once_the_next_time(
    elsewhere: Elsewhere, first: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    again = elsewhere.copy(tmp_path / "cache")
    assert again.once() == first
    assert again.messages == []
    again.once(seed=2)
    assert again.messages == ["booting debian:5.10"]


def flip_in_the_middle(snapshot_file: Path) -> None:
    with snapshot_file.open("r+b") as file:
        file.seek(snapshot_file.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 4]))


def keep_instead(place: Home, snapshot_file: Path, content: bytes) -> None:
    """Keep what is no snapshot, with its own checksum."""
    match = booted.find(place, snapshot_file.stem)
    assert match is not None
    with Snapshot.of_file(BufferedReader(BytesIO(content))) as snapshot:  # type: ignore[arg-type]
        record = match[0].model_copy(update={"snapshot_sha256": snapshot.sha256})
        booted.keep(place, snapshot_file.stem, record, snapshot)


@pytest.mark.parametrize(
    ("instead", "why"),
    [
        pytest.param(None, "SHA-256", id="a flipped bit"),
        pytest.param(b"no snapshot at all", "QEMU rejected it", id="no snapshot"),
        pytest.param(b"QEVM" + bytes(4096), "QEMU rejected it", id="only the beginning"),
    ],
)
@pytest.mark.slow
def test_a_kept_snapshot_that_cannot_be_used_is_dropped_and_that_is_said(
    elsewhere: Elsewhere, first: tuple[str, dict[str, str]], tmp_path: Path, instead: bytes | None, why: str
) -> None:
    """Trials that were begun from it do not notice: they never read it again."""
    elsewhere_cached = elsewhere.copy(tmp_path / "cache")
    lines, _ = first

    def two_at_once(target: GuestExecutor) -> list[str]:
        with ThreadPoolExecutor(2) as pool:
            return [observation.lines for observation in pool.map(target.run, [contest(), contest()])]

    (snapshot_file,) = elsewhere_cached.home.booted.glob("*.snapshot")
    with elsewhere_cached.boot() as target:
        if instead is None:
            flip_in_the_middle(snapshot_file)
        else:
            keep_instead(elsewhere_cached.home, snapshot_file, instead)
        assert two_at_once(target) == [lines, lines]
        assert NOTES not in target.environment
    with elsewhere_cached.boot() as target:
        assert two_at_once(target) == [lines, lines]
        assert why in target.environment[NOTES]
        assert target.environment[NOTES].count("was dropped, and the machine booted anew") == 1
    with elsewhere_cached.boot() as target:
        assert target.run(contest()).lines == lines
        assert NOTES not in target.environment
