"""The emulated machine: a Debian in QEMU that reboots for its experiment, and whose power is cut at random moments.

By TCG with counted instructions: what the guest measures does not depend on how busy this machine is.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from ajuste.model.results import Results
from ajuste.run.outcome import results_of
from ajuste.store.store import Store
from ajuste_boots.model import KeptBoot
from ajuste_boots.session import last_boots
from benchmarks.comparison import Comparison
from benchmarks.reboots.image import ROOT, command_disk, files_disk, image, overlay, result_disk

CACHE: Final = Path("~/.cache/ajuste/emulated").expanduser()
KEPT: Final = ROOT / "target/reboots"
_COMMAND: Final = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=40000")
_COMPARE: Final = ("ajuste", "compare", "--reboots", "--quiet", "--max-time", "3h")
COMPARISONS: Final = {
    "mitigations": (
        *(*_COMPARE, "--boot", "mitigations=default,off", "--reboot-each", "2", "--blocks", "6..12"),
        *("--min-effect", "1%", "--name", "mitigations", "--", *_COMMAND),
    ),
    "kernels": (
        *(*_COMPARE, "--boot-kernel", "default,6.1", "--reboot-each", "2", "--blocks", "6..12"),
        *("--min-effect", "1%", "--name", "kernels", "--", *_COMMAND),
    ),
}
"""Comparisons, each of at least three rounds of two boots, which is the fewest that an interval takes."""

CUT_BLOCKS: Final = 2
_CUT: Final = (
    *(*_COMPARE, "--boot", "mitigations=default,off", "--reboot-each", "1", "--blocks", str(CUT_BLOCKS)),
    *("--warm-up", "0", "--name", "cuts", "--", *_COMMAND),
)
"""Four boots of one trial each, and the one that brings the machine back."""

MOST_CUTS: Final = 10
"""Power cuts of one experiment, which ends undisturbed."""

CUT_WITHIN: Final = 3.0
"""Boots: after a power cut it takes one to ask for the state that was cut, and one to measure it."""

_CACHE: Final = "unsafe"
"""A flush of the guest reaches this machine's kernel, which outlives the emulator, but waits for no disk: meanwhile the
guest's clock would leap.
"""

_LONGEST_S: Final = 4 * 3600


@dataclass
class Ended:
    """An experiment that ended: the ``command_lines`` that came up by the machine's console, ``cuts`` of its power, how
    often each slot of the design was measured cleanly, and what its store holds.
    """

    command_lines: list[str] = field(default_factory=list)
    cuts: int = 0
    as_before: bool = False
    seconds: float = 0.0
    trials: Counter[tuple[int, int]] = field(default_factory=Counter)
    boots: tuple[KeptBoot, ...] = ()
    results: Results | None = None

    @property
    def doubled(self) -> int:
        return sum(count - 1 for count in self.trials.values())

    @property
    def outcomes(self) -> Counter[str]:
        """Numbers of boots that were asked for, by what became of them."""
        return Counter(boot.outcome for boot in self.boots)


def conduct(
    disk: Path,
    command: Sequence[str],
    cuts: int = 0,
    within: float = CUT_WITHIN,
    seed: int = 1,
    keep: Path | None = None,
    files: Path | None = None,
) -> Ended:
    """The experiment of ``command`` on a machine of which ``disk`` is the image, to its end, with so many power cuts,
    each ``within`` so many boots. The ``files`` of a directory are an archive on the machine's fourth disk.

    Its store and reports are put into ``keep``, so that `AJUSTE_HOME=KEEP ajuste report` shows them.
    """
    draw, ended = random.Random(seed), Ended()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=disk.parent) as directory:
        place = Path(directory)
        disks = [overlay(disk, place), command_disk(place, command), result_disk(place)]
        disks += [files_disk(place, files)] if files else []
        console, text, a_boot_s = place / "console", "", 90.0
        while "EMULATED end" not in text:
            if time.monotonic() - began > _LONGEST_S:
                raise SystemExit(f"the experiment did not end; its console said:\n{text[-3000:]}")
            limit_s = draw.uniform(0, within * a_boot_s) if ended.cuts < cuts else _LONGEST_S
            before = text.count("EMULATED boot")
            was_cut, used_s = _until_off_or_cut(disks, console, limit_s)
            ended.cuts += was_cut
            text += console.read_text(errors="replace")
            if (booted := text.count("EMULATED boot") - before) > 0:
                a_boot_s = used_s / booted
        results_directory = keep or place / "kept"
        shutil.rmtree(results_directory, ignore_errors=True)
        if (refused := re.search(r"EMULATED code [1-9]", text)) is not None:
            raise SystemExit(f"the experiment did not begin; its console said:\n{text[: refused.end()][-3000:]}")
        results_directory.mkdir(parents=True)
        subprocess.run(["tar", "-xf", disks[2], "-C", results_directory], check=True)
        (results_directory / "console").write_text(text)
        _read(results_directory, ended)
    ended.command_lines = re.findall(r"EMULATED boot (.*)", text)
    ended.as_before = "EMULATED files as before" in text
    ended.seconds = time.monotonic() - began
    return ended


def _read(directory: Path, ended: Ended) -> None:
    """Read what the machine kept of its experiment, which may have been given up."""
    boots = last_boots(directory / "state/reboots")
    ended.boots = boots.boots if boots is not None else ()
    with Store(f"sqlite:///{directory / 'data/store.sqlite'}") as store:
        run = store.find_run(store.runs()[0].id)
        ok = (trial for trial in store.trials(run) if trial.status == "ok")
        ended.trials = Counter((trial.slot.block, trial.slot.position) for trial in ok)
        ended.results = results_of(run, store) if run.stopped else None


def _until_off_or_cut(disks: Sequence[Path], console: Path, limit_s: float) -> tuple[bool, float]:
    """Run until the machine is off, or cut its power once the emulator used ``limit_s`` of a CPU.

    Returns whether the power was cut, and how much was used.
    """
    boot_disk, *others = disks
    words = [
        *("qemu-system-x86_64", "-accel", "tcg", "-icount", "shift=2,sleep=off", "-rtc", "clock=vm"),
        *("-cpu", "Nehalem", "-m", "768", "-display", "none", "-monitor", "none", "-nic", "none"),
        *("-serial", f"file:{console}", "-drive", f"file={boot_disk},if=virtio,cache={_CACHE}"),
        *(word for disk in others for word in ("-drive", f"file={disk},if=virtio,format=raw,cache={_CACHE}")),
    ]
    used_s = 0.0
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as machine:
        while machine.poll() is None:
            times = psutil.Process(machine.pid).cpu_times()  # a busy machine boots more slowly, but takes no more
            used_s = times.user + times.system
            if used_s >= limit_s:
                machine.kill()
                return True, used_s
            time.sleep(0.05)
    return False, used_s


def power_cuts(cuts: int, within: float) -> Iterator[Comparison]:
    """Experiments with as many power cuts each as come to ``cuts`` together, each ``within`` so many boots."""
    disk = image(CACHE)
    ended: list[Ended] = []
    while (left := cuts - sum(experiment.cuts for experiment in ended)) > 0:
        experiment = conduct(disk, _CUT, min(MOST_CUTS, left), within, seed=len(ended) + 1)
        ended.append(experiment)
        boots = f"{len(experiment.command_lines)} boots in {experiment.seconds:.0f} s"
        print(
            f"{experiment.cuts} cuts, {boots}; asked for: {dict(experiment.outcomes)}; "
            f"trials: {len(experiment.trials)}",
            flush=True,
        )
    changed = sum(not experiment.as_before for experiment in ended)
    lost = sum(2 * CUT_BLOCKS - len(experiment.trials) for experiment in ended)
    doubled = sum(experiment.doubled for experiment in ended)
    yield Comparison(
        name="reboots-cuts",
        what=f"{cuts} power cuts of an emulated machine in {len(ended)} experiments across reboots",
        unit="",
        figures={
            "boots": [float(len(experiment.command_lines)) for experiment in ended],
            "boots cut short": [float(experiment.outcomes["cut"]) for experiment in ended],
            "boots taken for a kernel that does not come up": [
                float(experiment.outcomes["down"]) for experiment in ended
            ],
            "boot files changed": [float(changed)],
            "trials lost": [float(lost)],
            "trials doubled": [float(doubled)],
        },
        goal="it always comes up, and nothing is lost, doubled or left changed",
        reached=changed == lost == doubled == 0,
    )
