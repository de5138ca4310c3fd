"""A played machine: a directory with GRUB's real files, which is switched on, comes up or not, and goes down.

What GRUB does with ``next_entry`` is done here with grub-editenv; what systemd does with the units of an experiment is
read from the units themselves.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ajuste.machine.boot.loader import run_tool
from ajuste.machine.boot.machine import RebootableMachine
from ajuste.machine.boot.units import DIRECTORY

KERNELS: Final = ("6.12.90+deb12.1-cloud-amd64", "6.1.0-50-cloud-amd64")
"""Those of the configuration beside this file, which update-grub made in the emulated machine."""
CONFIGURATION: Final = Path(__file__).with_name("grub.cfg")

ComesUp = Callable[[str], bool]
"""Whether a kernel comes up, by its command line."""


class Rebooted(Exception):
    """The machine went down, as it was told to."""


def always(_command_line: str) -> bool:
    return True


class PlayedMachine:
    """A machine below ``root``, which is made if it is not there yet. ``boots`` are the command lines that came up."""

    def __init__(self, root: Path, comes_up: ComesUp = always) -> None:
        self.root = root
        self.comes_up = comes_up
        self.rebootable = RebootableMachine(root, self.run)
        if not root.exists():
            self._make()

    def run(self, words: Sequence[str]) -> str:
        """A program of this machine."""
        if words[:2] == ("systemctl", "reboot"):
            raise Rebooted
        return run_tool(words) if words[0].startswith("grub") else ""

    def power_on(self) -> None:
        """Boot, as often as it takes until a kernel comes up."""
        while True:
            release, words = self._entry()
            line = " ".join(words)
            if self.comes_up(line):
                break
        self._write("proc/cmdline", f"{line}\n")
        self._write("proc/sys/kernel/random/boot_id", f"{uuid.uuid4()}\n")
        self._write("proc/sys/kernel/osrelease", f"{release}\n")
        (self.root / "run/ajuste-resumed").unlink(missing_ok=True)
        self._start_early(line)

    @property
    def resumes(self) -> bool:
        """Whether a unit goes on with an experiment after this boot."""
        return (self.root / DIRECTORY / "multi-user.target.wants/ajuste-reboots.service").exists()

    @property
    def files(self) -> dict[str, bytes]:
        """All that an experiment may change, and must not leave changed."""
        places = (self.root / "boot/grub", self.root / DIRECTORY)
        found = (file for place in places for file in sorted(place.rglob("*")) if file.is_file() or file.is_symlink())
        return {str(file.relative_to(self.root)): file.read_bytes() for file in found}

    def _entry(self) -> tuple[str, tuple[str, ...]]:
        """The kernel and the command line of the entry that GRUB boots, once if that was asked for."""
        block = self.root / "boot/grub/grubenv"
        wanted = dict(line.split("=", 1) for line in run_tool(("grub-editenv", str(block), "list")).splitlines())
        text = (self.root / "boot/grub/grub.cfg").read_text()
        custom = self.root / "boot/grub/custom.cfg"
        if chosen := wanted.get("next_entry"):
            run_tool(("grub-editenv", str(block), "set", "next_entry="))
            if custom.exists():
                own = re.search(rf"--id {re.escape(chosen)} \{{(.*?)^\}}", custom.read_text(), re.DOTALL | re.MULTILINE)
                text = own[1] if own else text
        found = re.search(r"^\s*linux\s+/boot/vmlinuz-(\S+)\s+(.*)$", text, re.MULTILINE)
        assert found is not None, "the menu has no entry"
        return found[1], (f"BOOT_IMAGE=/boot/vmlinuz-{found[1]}", *found[2].split())

    def _start_early(self, line: str) -> None:
        unit = self.root / DIRECTORY / "sysinit.target.wants/ajuste-reboots-came-up.service"
        if unit.exists() and "ajuste.boot=" in line:
            to = re.search(r"^ExecStart=cp .* /proc/cmdline (\S+)$", unit.read_text(), re.MULTILINE)
            assert to is not None
            Path(to[1]).write_text(line)

    def _make(self) -> None:
        for place in ("boot/grub", "run/systemd/system", DIRECTORY, "dev", "proc/sys/kernel/random"):
            (self.root / place).mkdir(parents=True)
        for target in ("multi-user.target.wants", "sysinit.target.wants"):
            (self.root / DIRECTORY / target).mkdir()
        self._write("boot/grub/grub.cfg", CONFIGURATION.read_text())
        run_tool(("grub-editenv", str(self.root / "boot/grub/grubenv"), "create"))
        for release in KERNELS:
            (self.root / "lib/modules" / release).mkdir(parents=True)
            self._write(f"boot/vmlinuz-{release}", "played")
        self._write("proc/mounts", "/dev/vda1 / ext4 rw 0 0\n")
        self.power_on()

    def _write(self, place: str, text: str) -> None:
        (self.root / place).write_text(text)
