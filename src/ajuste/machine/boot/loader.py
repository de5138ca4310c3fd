"""What a boot loader has to do for an experiment: boot an entry of its own, once. And kexec, which needs no boot
loader: the running kernel loads the next one, and nothing of a boot loader changes.

With kexec the hardware is not reset, and firmware does not run. Source: kexec(8), systemctl(1) kexec.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from ajuste.model.boot import BootState
from ajuste.model.error import RequestError, RunError

PANIC_SECONDS: Final = 10
"""After so long a kernel that panicked reboots, into the old one."""

MARK: Final = "ajuste.boot"
"""The word of the command line by which a boot of an experiment is known. The kernel passes over it."""

_TIMEOUT_S: Final = 120

RunTool = Callable[[Sequence[str]], str]
"""Runs a program of the machine, and gives back what it said. Raises RunError where it fails."""


@dataclass(frozen=True)
class BootEntry:
    """The entry number ``index`` of an experiment: ``kernel`` is the release that ``state`` boots. ``words`` are the
    command line of this machine before the experiment.
    """

    index: int
    kernel: str
    state: BootState
    experiment: str
    words: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """The word by which a boot of it is known."""
        return f"{MARK}={self.experiment}.{self.index}"

    def command_line(self, words: Sequence[str], *, watchdog: bool) -> tuple[str, ...]:
        """``words``, those of an entry of this machine, as this one has them: a kernel that panics reboots."""
        plain = [word for word in words if not word.startswith((f"{MARK}=", "panic=", "BOOT_IMAGE="))]
        guard = (f"panic={PANIC_SECONDS}", *(("systemd.watchdog_sec=60s",) if watchdog else ()))
        return (*self.state.applied_to(plain), *guard, self.mark)


class BootLoader(ABC):
    """A boot loader of the machine whose files are below ``root``, and whose programs ``run`` runs."""

    name: ClassVar[str]
    reboot: ClassVar[tuple[str, ...]] = ("systemctl", "reboot")
    """The command that boots what was armed."""

    def __init__(self, root: Path, run: RunTool) -> None:
        self.root = root
        self.run = run

    @abstractmethod
    def why_not(self) -> str:
        """Why this machine cannot boot once by it; empty if it can."""

    @property
    @abstractmethod
    def files(self) -> tuple[Path, ...]:
        """All that it changes. They are as before at the end, or are not there again."""

    @abstractmethod
    def check(self, entries: Sequence[BootEntry]) -> None:
        """Whether it has what ``entries`` need. Changes nothing. Raises RequestError."""

    @abstractmethod
    def prepare(self, entries: Sequence[BootEntry]) -> None:
        """Write the entries, beside those of the machine. May be done twice. Raises OSError, RunError."""

    @abstractmethod
    def arm(self, entry: BootEntry) -> None:
        """The next boot, and only that one, is of ``entry``. Raises OSError, RunError."""

    @abstractmethod
    def restore(self, originals: dict[str, bytes | None]) -> tuple[str, ...]:
        """Take everything away that was written, and the one boot back; ``originals`` are ``files`` as they were. What
        somebody else changed meanwhile stays, and is said. May be done twice. Raises OSError, RunError.
        """

    def kernel_file(self, release: str) -> Path:
        return self.root / "boot" / f"vmlinuz-{release}"

    @property
    def has_watchdog(self) -> bool:
        """Whether the machine has a watchdog that reboots it when its kernel hangs."""
        return (self.root / "dev/watchdog0").exists()


def installed_kernels(root: Path = Path("/")) -> tuple[str, ...]:
    """The releases of the kernels in /boot that have modules, newest first."""
    found = [file.name.removeprefix("vmlinuz-") for file in (root / "boot").glob("vmlinuz-*")]
    return tuple(sorted((one for one in found if (root / "lib/modules" / one).is_dir()), key=_by_number, reverse=True))


def installed_kernel(named: str, root: Path = Path("/")) -> str:
    """The release that ``named`` means: itself, or the newest that begins with it. Raises RequestError."""
    known = installed_kernels(root)
    if named in known:
        return named
    begins = [one for one in known if one.startswith((f"{named}.", f"{named}-"))]
    if begins:
        return begins[0]
    raise RequestError(
        f'kernel "{named}" is not installed; expected {", ".join(known) or "a kernel in /boot"}',
        hint="install its package, such as linux-image-amd64, or choose an installed one",
    )


def _by_number(release: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", release) if part]


def run_tool(words: Sequence[str]) -> str:
    """What a program of this machine says. Raises RunError where it fails."""
    program = shutil.which(words[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise RunError(f"program {words[0]} not found")
    try:
        done = subprocess.run([program, *words[1:]], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"{words[0]} did not end within {_TIMEOUT_S} s") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RunError(f"{' '.join(words)} failed: {said[-1] if said else f'exit code {done.returncode}'}")
    return done.stdout


def program_of(*names: str) -> str | None:
    """The first of these programs that this machine has."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"
    return next((name for name in names if shutil.which(name, path=path)), None)


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
