"""The emulated machine: a Debian in QEMU that reboots for its experiment, and whose power is cut at random moments.

By TCG with counted instructions: what the guest measures does not depend on how busy this machine is.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.comparison import Comparison
from benchmarks.reboots.image import command_disk, image, overlay

CACHE: Final = Path("~/.cache/ajuste/emulated").expanduser()
MITIGATIONS: Final = (
    *("ajuste", "compare", "--boot", "mitigations=default,off", "--reboots", "--reboot-each", "2"),
    *("--blocks", "6..8", "--max-time", "3h", "--quiet", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1"),
    "count=40000",
)
KERNELS: Final = (
    *("ajuste", "compare", "--boot-kernel", "default,6.1", "--reboots", "--reboot-each", "2"),
    *("--blocks", "6..8", "--max-time", "3h", "--quiet", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1"),
    "count=40000",
)
_LONGEST_S: Final = 4 * 3600


@dataclass
class Ended:
    """What the console of the machine said: its ``boots`` by command line, ``cuts`` of its power, and the report."""

    boots: list[str] = field(default_factory=list)
    cuts: int = 0
    as_before: bool = False
    report: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def trials(self) -> Counter[tuple[int, int]]:
        """How often each slot of the design was measured cleanly."""
        return Counter((one["block"], one["position"]) for one in self.report["trials"] if one["status"] == "ok")

    @property
    def doubled(self) -> int:
        return sum(count - 1 for count in self.trials.values())

    @property
    def lost(self) -> int:
        """Of the blocks that were begun."""
        blocks = 1 + max(block for block, _ in self.trials)
        return blocks * len(self.report["configurations"]) - len(self.trials)


def conduct(command: Sequence[str], cuts: int = 0, seed: int = 1, cache: Path = CACHE) -> Ended:
    """The experiment of ``command`` on a new machine, to its end, with so many power cuts."""
    disk, draw, found = image(cache), random.Random(seed), Ended()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        place = Path(directory)
        own, console = overlay(disk, place), place / "console"
        given, text, a_boot_s = command_disk(place, command), "", 120.0
        while "EMULATED end" not in text:
            if time.monotonic() - began > _LONGEST_S:
                raise SystemExit(f"the experiment did not end; its console said:\n{text[-3000:]}")
            limit_s = draw.uniform(0, 1.5 * a_boot_s) if found.cuts < cuts else _LONGEST_S
            started, before = time.monotonic(), text.count("EMULATED boot")
            found.cuts += _until_off_or_cut(own, given, console, limit_s)
            text += console.read_text(errors="replace")
            if (booted := text.count("EMULATED boot") - before) > 0:
                a_boot_s = (time.monotonic() - started) / booted
            found.boots = re.findall(r"EMULATED boot (.*)", text)
    found.as_before = "EMULATED files as before" in text
    said = re.findall(r"EMULATED report\s+(\{.*?^\})", text, re.DOTALL | re.MULTILINE)
    found.report = json.loads(said[-1].replace("\r", ""))
    found.seconds = time.monotonic() - began
    return found


def _until_off_or_cut(disk: Path, given: Path, console: Path, limit_s: float) -> bool:
    """Whether the power was cut, which is once ``limit_s`` are over."""
    words = [
        *("qemu-system-x86_64", "-accel", "tcg", "-icount", "shift=2,sleep=off", "-rtc", "clock=vm"),
        *("-cpu", "Nehalem", "-m", "768", "-display", "none", "-monitor", "none", "-nic", "none"),
        *("-serial", f"file:{console}", "-drive", f"file={disk},if=virtio,cache=writeback"),
        *("-drive", f"file={given},if=virtio,format=raw,readonly=on"),
    ]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as machine:
        try:
            machine.wait(limit_s)
        except subprocess.TimeoutExpired:
            machine.kill()
            return True
    return False


def power_cuts(cuts: int) -> Iterator[Comparison]:
    """Experiments with as many power cuts each as come to ``cuts`` together."""
    ended: list[Ended] = []
    while sum(one.cuts for one in ended) < cuts:
        left = cuts - sum(one.cuts for one in ended)
        ended.append(conduct(MITIGATIONS, min(10, left), seed=len(ended) + 1))
    changed = sum(not one.as_before for one in ended)
    lost, doubled = sum(one.lost for one in ended), sum(one.doubled for one in ended)
    yield Comparison(
        name="reboots-cuts",
        what=f"{cuts} power cuts of an emulated machine in {len(ended)} experiments across reboots",
        unit="",
        figures={
            "boots": [float(len(one.boots)) for one in ended],
            "boot files changed": [float(changed)],
            "trials lost": [float(lost)],
            "trials doubled": [float(doubled)],
        },
        goal="it always comes up, and nothing is lost, doubled or left changed",
        reached=changed == lost == doubled == 0,
    )
