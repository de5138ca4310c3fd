"""Building kernels: the first one beside plain make, variants of it, the same again, and the boot of what was built.

Everything is built in a cache of its own, with nothing compiled before. Only the sources and Debian's kernels are
shared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from ajuste.kernel.spec import PackagedKernel, parse_spec
from ajuste.machine.home import Home
from ajuste_kernels.building.build import BuildRequest, build_kernel
from ajuste_kernels.building.built import BuiltKernel, remove_built
from ajuste_kernels.building.sources import packaged_source
from benchmarks import cold_start
from benchmarks.comparison import Comparison, by_turns, seconds
from benchmarks.guest import do_nothing, target
from benchmarks.place import own_home

SOURCE = "debian:6.1"
PATCH = Path(__file__).parent.parent / "docs/patches/keep-the-turn.patch"

FIRST_SHARE = 1.05
"""Share below which a difference is none, as there is one build by each way."""
VARIANT_SHARE = 0.1
AGAIN_SECONDS = 5.0
BOOT_SECONDS = 1.5
ROUNDS = 5
LAB = "mine:base"
GUEST_ALONE = "ajuste, lab: of that the guest"


class Silent:
    """Watches builds and says nothing."""

    def say(self, text: str) -> None: ...

    def compiling(self, expected: int | None) -> None: ...

    def compiled(self, count: int) -> None: ...


def measure() -> Iterator[Comparison]:
    """Seconds of this machine's clock. Needs about 4 GB in the cache, and half an hour on two CPUs."""
    with own_home() as place:
        wanted = parse_spec(SOURCE)
        assert isinstance(wanted, PackagedKernel)
        packaged_source(wanted, place, print)
        os.sync()  # The first build is not to wait for sources that are still on their way to the disk.
        first = build(place, "base")
        yield boot(place)
        again = build(place, "again")
        yield Comparison(
            name="kernel-build-again",
            what="a kernel that was built before",
            unit="s",
            figures={"the same again": [again]},
            goal=f"under {AGAIN_SECONDS:g} s",
            reached=again < AGAIN_SECONDS,
        )
        local = {"Kyber off": build(place, "non-kyber", "MQ_IOSCHED_KYBER=n"), "fair.c patched": patched(place)}
        yield Comparison(
            name="kernel-build-variants",
            what="a variant of it",
            unit="s",
            figures={**{name: [value] for name, value in local.items()}, "the first build": [first]},
            goal=f"each under {VARIANT_SHARE:.0%} of the first build",
            reached=all(value < VARIANT_SHARE * first for value in local.values()),
        )
        plain = plain_make(place)
        yield Comparison(
            name="kernel-build-first",
            what=f"{SOURCE} with lab, nothing compiled before",
            unit="s",
            figures={"ajuste": [first], "plain make": [plain]},
            goal=f"at most {FIRST_SHARE:.0%} of plain make",
            reached=first <= FIRST_SHARE * plain,
        )
        yield everything(place)


def everything(place: Home) -> Comparison:
    """A variant of which every file is compiled, and the way back from it, for which all objects are still there."""
    there = build(place, "non-numa", "NUMA=n")
    for name in ("base", "again"):
        remove_built(name, place)
    back = build(place, "base")
    return Comparison(
        name="kernel-build-everything",
        what="a variant that touches every file",
        unit="s",
        figures={"NUMA off": [there], "NUMA on again": [back]},
        goal="the second under half",
        reached=back < there / 2,
    )


def build(place: Home, name: str, *settings: str, patches: tuple[Path, ...] = ()) -> float:
    request = BuildRequest(SOURCE, settings=settings, patches=patches, name=name)
    return seconds(lambda: build_kernel(request, place, Silent()))


def patched(place: Home) -> float:
    return build(place, "patched", patches=(PATCH,))


def plain_make(place: Home) -> float:
    """``make -j`` of the same sources with the same options, as a person would call it, and no compiler's cache."""
    built = _base(place)
    tree = place.cache / "build" / built.provenance.workspace
    with tempfile.TemporaryDirectory(prefix="plain-", dir=place.cache) as name:
        source, objects = Path(name) / "source", Path(name) / "objects"
        shutil.copytree(tree / "source", source, symlinks=True, copy_function=os.link)
        objects.mkdir()
        shutil.copyfile(built.directory / "config", objects / ".config")
        command = ["make", f"-j{len(os.sched_getaffinity(0))}", f"O={objects}", "bzImage", "modules"]
        return seconds(lambda: subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL))


def _base(place: Home) -> BuiltKernel:
    return build_kernel(BuildRequest(SOURCE, name="base"), place, Silent())


def boot(place: Home) -> Comparison:
    """``true`` in a guest, emulated: whole commands, and of ours the guest by itself, from its start to its end."""
    environment = {**os.environ, "AJUSTE_HOME": str(place.cache.parent)}
    guest = [sys.executable, "-m", "benchmarks.guest", LAB]
    with cold_start.installed() as vmlinuz, target(LAB, place=place, snapshot=False) as cold:
        figures = by_turns(
            {
                GUEST_ALONE: lambda: do_nothing(cold, "cold"),
                "ajuste, lab": lambda: seconds(lambda: subprocess.run(guest, env=environment, check=True)),
                "virtme-ng, generic": lambda: seconds(lambda: cold_start.run_virtme_ng(vmlinuz)),
            },
            ROUNDS,
        )
    return Comparison(
        name="kernel-build-boot",
        what="true in a guest with the lab kernel, emulated, beside virtme-ng, which the lab kernel has no 9p for",
        unit="s",
        figures=figures,
        goal=f"the guest under {BOOT_SECONDS} s",
        reached=median(figures[GUEST_ALONE]) < BOOT_SECONDS,
    )
