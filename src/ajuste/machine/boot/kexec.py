"""kexec: the running kernel loads the next one. No boot loader is involved, so nothing of it changes.

The hardware is not reset, and firmware does not run. Source: kexec(8), systemctl(1) kexec.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from ajuste.machine.boot.loader import BootEntry, BootLoader, program_of
from ajuste.model.error import RequestError


class Kexec(BootLoader):
    """The kernel's own way to boot another one, once."""

    name: ClassVar[str] = "kexec"
    reboot: ClassVar[tuple[str, ...]] = ("systemctl", "kexec")

    @property
    def files(self) -> tuple[Path, ...]:
        return ()

    def why_not(self) -> str:
        if program_of("kexec") is None:
            return "kexec: program kexec not found (package kexec-tools)"
        disabled = self.root / "proc/sys/kernel/kexec_load_disabled"
        if not disabled.exists():
            return "kexec: not supported by the running kernel"
        return "kexec: disabled until the next boot" if disabled.read_text().strip() == "1" else ""

    def check(self, entries: Sequence[BootEntry]) -> None:
        for entry in entries:
            if not self.kernel_file(entry.kernel).is_file():
                raise RequestError(f"{self.kernel_file(entry.kernel)} not found", hint="choose an installed kernel")

    def prepare(self, entries: Sequence[BootEntry]) -> None: ...

    def arm(self, entry: BootEntry) -> None:
        line = " ".join(entry.command_line(entry.words, watchdog=self.has_watchdog))
        initrd = self.root / "boot" / f"initrd.img-{entry.kernel}"
        loaded = (f"--initrd={initrd}",) if initrd.is_file() else ()
        self.run(("kexec", "--load", str(self.kernel_file(entry.kernel)), *loaded, f"--command-line={line}"))

    def restore(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        if program_of("kexec") is not None and (self.root / "sys/kernel/kexec_loaded").exists():
            self.run(("kexec", "--unload"))
        return ()
