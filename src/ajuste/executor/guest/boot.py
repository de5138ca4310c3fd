"""Booting a guest up to its gate."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.executor.guest.machine import LARGEST_OUTPUT_BYTES, MachineLimit, Outcome, RunningMachine
from ajuste.executor.stream import read_boot
from ajuste.kernel.kconfig.config_file import read_config
from ajuste.model.error import RequestError
from ajuste.model.event import Gate, Hello

_LOG: Final = logging.getLogger(__name__)

BOOT_LIMIT = MachineLimit(host_s=300, guest_s=120)
"""Emulated kernels take about 3 s of their own time to boot, and a busy machine makes that ten times as long."""

_LAST_LINES = 12


@dataclass(frozen=True)
class Arrival:
    """A guest that waits at its gate for its plan."""

    hello: Hello
    gate: Gate


class BootFailure(Exception):
    """A guest did not arrive; the message says why, ``console`` is the end of what it printed."""

    def __init__(self, reason: str, console: str) -> None:
        super().__init__(reason)
        self.console = console

    @property
    def last_lines(self) -> str:
        """The last lines of the console."""
        return "\n".join(self.console.rstrip().splitlines()[-_LAST_LINES:])


def await_gate(machine: RunningMachine, limit: MachineLimit = BOOT_LIMIT) -> Arrival:
    """Wait until the guest stands at its gate. Raises BootFailure if it does anything else."""
    outcome = machine.wait(limit)
    boot = read_boot(machine.events())
    console = machine.console()
    if outcome is Outcome.STOPPED and boot.hello is not None and boot.gate is not None and not boot.rest:
        _LOG.info("guest booted", extra={"kernel": boot.hello.kernel, "guest_seconds": boot.gate.at_ns / 1e9})
        return Arrival(boot.hello, boot.gate)
    if outcome is Outcome.LATE:
        raise BootFailure(f"it was not ready within {limit.host_s:.0f} s", console)
    if boot.problem and boot.hello is None and boot.problem.startswith("the guest failed"):
        raise BootFailure(boot.problem, console)
    if "Kernel panic" in console:
        raise BootFailure("the kernel panicked", console)
    complaint = machine.complaint()
    raise BootFailure(boot.problem + (f" ({complaint.splitlines()[-1]})" if complaint else ""), console)


# What a kernel must have so that a guest comes up, and which of it one lacks that did not.


_NEEDS: Final = {
    "64BIT": "it is not a 64-bit kernel",
    "BLK_DEV_INITRD": "it cannot use an initramfs",
    "BINFMT_ELF": "it cannot run programs",
    "DEVTMPFS": "it has no devices in /dev",
    "PROC_FS": "it has no /proc",
    "SYSFS": "it has no /sys",
    "X86_IOPL_IOPERM": "programs cannot use I/O ports, through which the guest answers",
    "FUTEX": "threads cannot wait for each other",
    "EPOLL": "it lacks system calls that current programs use",
    "MULTIUSER": "it has no users",
    "TTY": "it has no terminals",
    "SERIAL_8250_CONSOLE": "it has no serial console, so its messages cannot be seen",
    "PRINTK": "it prints nothing",
}
"""By option; the likeliest causes first."""

_SIGNS: Final = {
    "Unable to mount root fs": "it did not use its initramfs",
    "No working init found": "it could not run the first program of the initramfs",
    "Requested init /init failed (error -8)": "it cannot run programs",
    "Out of memory": "the guest has too little memory; raise --memory, or memory_mib in the study",
    "System is deadlocked on memory": "the guest has too little memory; raise --memory, or memory_mib in the study",
}
"""By what the console says."""


def likely_causes(config: Path | None, console: str) -> str | None:
    """Why a kernel with that ``.config`` (if it is known) may not have come up, or ``None``."""
    seen = [meaning for sign, meaning in _SIGNS.items() if sign in console]
    seen += [f"{meaning} ({name} is off)" for name, meaning in _NEEDS.items() if name in _off(config)]
    return f"likely cause: {'; '.join(dict.fromkeys(seen))}" if seen else None


def _off(config: Path | None) -> frozenset[str]:
    if config is None:
        return frozenset()
    try:
        options = read_config(config)
    except RequestError:
        return frozenset()
    return frozenset(name for name in _NEEDS if not options[name].is_on)


# How a guest ended, in words.


def what_went_wrong(running: RunningMachine, outcome: Outcome, console: str) -> str:
    """What went wrong with the machine itself, or an empty text."""
    if outcome is Outcome.LATE:
        return "the guest hung: it did not end within its time limit"
    if outcome is Outcome.LOUD:
        return f"the guest printed more than {LARGEST_OUTPUT_BYTES >> 20} MiB and was ended"
    if outcome is Outcome.STOPPED or "Kernel panic" in console:
        return f"the guest's kernel panicked{_panic_reason(console)}"
    code = running.exit_code
    if code:
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"QEMU ended {how}: {running.complaint() or 'it gave no reason'}"
    return ""


def _panic_reason(console: str) -> str:
    line = next((line for line in console.splitlines() if "Kernel panic" in line), "")
    reason = line.partition("Kernel panic - not syncing: ")[2]
    return f": {reason[:200]}" if reason else ""
