"""The machine that is rebooted: what is booted now, which boot loader can boot once, and why it cannot.

Source: UEFI Specification 2.10, 3.3 (SecureBoot); PE format, "The Attribute Certificate Table".
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ajuste.machine.boot.grub import Grub
from ajuste.machine.boot.loader import MARK, BootEntry, BootLoader, Kexec, RunTool, run_tool
from ajuste.machine.boot.mounts import require_lasting, require_room
from ajuste.machine.boot.systemd_boot import SystemdBoot
from ajuste.machine.boot.units import DIRECTORY
from ajuste.machine.installation import as_root
from ajuste.model.error import RequestError

_VARIABLE: Final = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_OPTIONAL_PE32_PLUS: Final = 0x20B
_SECURITY: Final = 4  # the directory of certificates


def is_secure_boot(root: Path = Path("/")) -> bool:
    """Whether the firmware starts only what is signed. The value follows four bytes of attributes."""
    try:
        return (root / _VARIABLE).read_bytes()[4:5] == b"\x01"
    except OSError:
        return False


def is_signed(kernel: Path) -> bool:
    """Whether a kernel, an EFI program, has a signature; by whom is the firmware's to judge."""
    with kernel.open("rb") as file:
        head = file.read(4096)
    try:
        (at,) = struct.unpack_from("<I", head, 0x3C)
        if head[at : at + 4] != b"PE\0\0":
            return False
        (magic,) = struct.unpack_from("<H", head, at + 24)
        directories = at + 24 + (112 if magic == _OPTIONAL_PE32_PLUS else 96)
        _, size = struct.unpack_from("<II", head, directories + 8 * _SECURITY)
    except struct.error:
        return False
    return bool(size)


def require_signed(kernel: Path, release: str, root: Path = Path("/")) -> None:
    """Raises RequestError for a kernel that the firmware would refuse."""
    if is_secure_boot(root) and not is_signed(kernel):
        raise RequestError(
            f"Secure Boot is on, and the kernel {release} is not signed, so the firmware refuses it",
            hint="choose a signed kernel, or turn Secure Boot off in the firmware",
        )


LOADERS: Final = (Grub, SystemdBoot, Kexec)
"""In the order in which they are tried."""

LOADER_NAMES: Final = tuple(loader.name for loader in LOADERS)


@dataclass(frozen=True)
class RebootableMachine:
    """The machine whose files are below ``root``; ``run`` runs its programs. Played ones have another root."""

    root: Path = Path("/")
    run: RunTool = field(default=run_tool)

    @property
    def boot_id(self) -> str:
        """Another one after each boot (random(4))."""
        return (self.root / "proc/sys/kernel/random/boot_id").read_text().strip()

    @property
    def command_line(self) -> tuple[str, ...]:
        return tuple((self.root / "proc/cmdline").read_text().split())

    @property
    def release(self) -> str:
        """Of the running kernel."""
        return (self.root / "proc/sys/kernel/osrelease").read_text().strip()

    @property
    def mark(self) -> str:
        """The word by which the running boot is known to be of an experiment; empty where it is not."""
        return next((word for word in self.command_line if word.startswith(f"{MARK}=")), "")

    def loader(self, name: str) -> BootLoader:
        """Raises KeyError."""
        return {one.name: one for one in LOADERS}[name](self.root, self.run)

    def choose(self, name: str = "") -> BootLoader:
        """The boot loader of that name, or the first that can boot once. Raises RequestError where there is none."""
        reasons = []
        for one in LOADERS:
            if name in ("", one.name):
                loader = one(self.root, self.run)
                if not (why := loader.why_not()):
                    return loader
                reasons.append(why)
        raise RequestError(
            f"no boot loader of this machine can boot an entry once: {'; '.join(reasons)}",
            hint="install GRUB or systemd-boot, or kexec-tools; or measure in guests with --kernel",
        )

    def require_able(self, kept: Path) -> None:
        """Whether an experiment can reboot this machine and go on; ``kept`` is where its state is. Changes nothing.
        Raises RequestError.
        """
        if os.geteuid() != 0:
            raise RequestError("rebooting this machine requires root", hint=f"run {as_root()}")
        if not (self.root / "run/systemd/system").is_dir():
            raise RequestError(
                "systemd is not running: nothing would resume the experiment after a reboot",
                hint="run it on a machine with systemd, or measure in guests with --kernel",
            )
        if (self.root / "run/systemd/container").exists():
            raise RequestError("this is a container, which cannot boot another kernel", hint="run it on its host")
        require_lasting(kept, "the state of the experiment", self.root)
        require_lasting(self.root / DIRECTORY, "the unit that resumes the experiment", self.root)

    def require_bootable(self, loader: BootLoader, entries: Sequence[BootEntry]) -> None:
        """Whether ``loader`` can boot these. Changes nothing. Raises RequestError."""
        loader.check(entries)
        if loader.files:
            require_room(self.root / "boot", "the boot entries of the experiment", self.root)
        for entry in entries:
            file = loader.kernel_file(entry.kernel)
            if file.is_file():
                if not stat.S_ISREG(file.stat().st_mode):
                    raise RequestError(f"{file} is not a file; expected an installed kernel and its initial ramdisk")
                require_signed(file, entry.kernel, self.root)
