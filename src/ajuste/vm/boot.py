"""Booting a guest up to its gate."""

from __future__ import annotations

from dataclasses import dataclass

from ajuste.model.event import Gate, Hello
from ajuste.target.stream import read_boot
from ajuste.vm.machine import Limit, Outcome, RunningMachine

BOOT_LIMIT = Limit(host_s=300, guest_s=120)
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


def await_gate(machine: RunningMachine, limit: Limit = BOOT_LIMIT) -> Arrival:
    """Wait until the guest stands at its gate. Raises BootFailure if it does anything else."""
    outcome = machine.wait(limit)
    boot = read_boot(machine.events())
    console = machine.console()
    if outcome is Outcome.STOPPED and boot.hello is not None and boot.gate is not None and not boot.rest:
        return Arrival(boot.hello, boot.gate)
    if outcome is Outcome.LATE:
        raise BootFailure(f"it did not arrive at its gate within {limit.host_s:.0f} s", console)
    if boot.problem and boot.hello is None and boot.problem.startswith("the guest failed"):
        raise BootFailure(boot.problem, console)
    if "Kernel panic" in console:
        raise BootFailure("the kernel panicked", console)
    complaint = machine.complaint()
    raise BootFailure(boot.problem + (f" ({complaint.splitlines()[-1]})" if complaint else ""), console)
