"""A played machine: a directory with a boot loader's files, which is switched on, comes up or not, and goes down.

GRUB's files are real, and what it does with ``next_entry`` is done here with grub-editenv. systemd-boot's variable of
the firmware and the kernel that kexec loads are files. What systemd does with the units of an experiment is read from
the units themselves.
"""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

from ajuste.machine.units import DIRECTORY
from ajuste_boots.loader import run_tool
from ajuste_boots.session import RebootableMachine

KERNELS: Final = ("6.12.90+deb12.1-cloud-amd64", "6.1.0-50-cloud-amd64")
"""Kernels of the configuration beside this file, which update-grub made in the emulated machine."""
CONFIGURATION: Final = Path(__file__).with_name("grub.cfg")
_OPTIONS: Final = ("root=/dev/vda1", "ro", "quiet")
"""Options of an entry of systemd-boot."""

_ENTRIES: Final = "boot/loader/entries"
_VARIABLES: Final = "sys/firmware/efi/efivars"
_ONE_SHOT: Final = f"{_VARIABLES}/LoaderEntryOneShot"
_LOADED: Final = "sys/kernel/kexec_loaded"

LoaderName = Literal["grub", "systemd-boot", "kexec"]

ComesUp = Callable[[str], bool]
"""Function that says whether a kernel comes up, by its command line."""


class Rebooted(Exception):
    """The machine went down, as it was told to."""


def always(_command_line: str) -> bool:
    return True


class PlayedMachine:
    """A machine below ``root``, which is made if it is not there yet, and which ``loader`` can boot once."""

    def __init__(self, root: Path, comes_up: ComesUp = always, loader: LoaderName = "grub") -> None:
        self.root = root
        self.loader = loader
        self.comes_up = comes_up
        self.rebootable = RebootableMachine(root, self.run)
        if not root.exists():
            self._make()

    def run(self, words: Sequence[str]) -> str:
        """A program of this machine."""
        match tuple(words):
            case ("systemctl", "reboot"):
                self._write(_LOADED, "0\n")  # The firmware starts, and no kernel is loaded any more.
                raise Rebooted
            case ("systemctl", "kexec"):
                raise Rebooted
            case ("bootctl", "set-oneshot", name):
                self._write(_ONE_SHOT, name)
            case ("kexec", "--load", kernel, *_, line):
                self._write(_LOADED, f"1 {kernel} {line}\n")
            case ("kexec", "--unload"):
                self._write(_LOADED, "0\n")
            case (program, *_) if program.startswith("grub"):
                return run_tool(words)
        return ""

    def cut(self) -> None:
        """The power is gone, and comes back."""
        self._write(_LOADED, "0\n")
        self.power_on()

    def power_on(self) -> None:
        """Boot, as often as it takes until a kernel comes up."""
        entry = {"grub": self._grub, "systemd-boot": self._systemd_boot, "kexec": self._kexec}[self.loader]
        while True:
            release, words = entry()
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
        """Return whether a unit goes on with an experiment after this boot."""
        return (self.root / DIRECTORY / "multi-user.target.wants/ajuste-reboots.service").exists()

    @property
    def files(self) -> dict[str, bytes]:
        """Contents of all files that an experiment may change, and must not leave changed."""
        places = (self.root / "boot", self.root / DIRECTORY, self.root / _VARIABLES)
        files = (file for place in places for file in sorted(place.rglob("*")) if file.is_file() or file.is_symlink())
        return {str(file.relative_to(self.root)): file.read_bytes() for file in files}

    def _grub(self) -> tuple[str, tuple[str, ...]]:
        """The kernel and the command line of the entry that GRUB boots, once if that was asked for."""
        block = self.root / "boot/grub/grubenv"
        wanted = dict(line.split("=", 1) for line in run_tool(("grub-editenv", str(block), "list")).splitlines())
        text = (self.root / "boot/grub/grub.cfg").read_text()
        custom = self.root / "boot/grub/custom.cfg"
        if chosen := wanted.get("next_entry"):
            run_tool(("grub-editenv", str(block), "set", "next_entry="))
            if custom.exists():
                entry = re.search(
                    rf"--id {re.escape(chosen)} \{{(.*?)^\}}", custom.read_text(), re.DOTALL | re.MULTILINE
                )
                text = entry[1] if entry else text
        linux_line = re.search(r"^\s*linux\s+/boot/vmlinuz-(\S+)\s+(.*)$", text, re.MULTILINE)
        assert linux_line is not None, "the menu has no entry"
        return linux_line[1], (f"BOOT_IMAGE=/boot/vmlinuz-{linux_line[1]}", *linux_line[2].split())

    def _systemd_boot(self) -> tuple[str, tuple[str, ...]]:
        """Return the kernel and command line as GRUB's; without one boot the first entry."""
        wanted = (self.root / _ONE_SHOT).read_text()
        self._write(_ONE_SHOT, "")
        chosen = self.root / _ENTRIES / (wanted or f"{KERNELS[0]}.conf")
        lines = dict(line.split(" ", 1) for line in chosen.read_text().splitlines())
        return lines["version"], tuple(lines["options"].split())

    def _kexec(self) -> tuple[str, tuple[str, ...]]:
        """Return the kernel and command line as GRUB's: of the kernel that was loaded, or else that of the firmware."""
        state, _, loaded = (self.root / _LOADED).read_text().strip().partition(" ")
        self._write(_LOADED, "0\n")
        if state == "0":
            return KERNELS[0], _OPTIONS
        kernel, _, line = loaded.partition(" ")
        return kernel.partition("vmlinuz-")[2], tuple(shlex.split(line.removeprefix("--command-line=")))

    def _start_early(self, line: str) -> None:
        unit = self.root / DIRECTORY / "sysinit.target.wants/ajuste-reboots-came-up.service"
        if unit.exists() and "ajuste.boot=" in line:
            to = re.search(r"^ExecStart=cp .* /proc/cmdline (\S+)$", unit.read_text(), re.MULTILINE)
            assert to is not None
            Path(to[1]).write_text(line)

    def _make(self) -> None:
        directories = ("run/systemd/system", DIRECTORY, "dev", "proc/sys/kernel/random", "boot", "sys/kernel")
        for place in directories:
            (self.root / place).mkdir(parents=True)
        for target in ("multi-user.target.wants", "sysinit.target.wants"):
            (self.root / DIRECTORY / target).mkdir()
        self._write(_LOADED, "0\n")
        for release in KERNELS:
            (self.root / "lib/modules" / release).mkdir(parents=True)
            self._write(f"boot/vmlinuz-{release}", "played")
        if self.loader == "grub":
            (self.root / "boot/grub").mkdir()
            self._write("boot/grub/grub.cfg", CONFIGURATION.read_text())
            run_tool(("grub-editenv", str(self.root / "boot/grub/grubenv"), "create"))
        elif self.loader == "systemd-boot":
            self._make_entries()
        else:
            self._write("proc/sys/kernel/kexec_load_disabled", "0\n")
        self._write("proc/mounts", "/dev/vda1 / ext4 rw 0 0\n")
        self.power_on()

    def _make_entries(self) -> None:
        (self.root / _ENTRIES).mkdir(parents=True)
        (self.root / _VARIABLES).mkdir(parents=True)
        self._write(f"{_VARIABLES}/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f", "systemd-boot 252")
        self._write(_ONE_SHOT, "")
        for release in KERNELS:
            files = f"linux /{release}/linux\ninitrd /{release}/initrd.img\n"
            text = f"title Debian ({release})\nversion {release}\noptions {' '.join(_OPTIONS)}\n{files}"
            self._write(f"{_ENTRIES}/{release}.conf", text)

    def _write(self, place: str, text: str) -> None:
        (self.root / place).write_text(text)
