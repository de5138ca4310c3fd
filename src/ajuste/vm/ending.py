"""How a guest ended, in words."""

from __future__ import annotations

from ajuste.vm.machine import LARGEST_OUTPUT_BYTES, Outcome, RunningMachine


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
        return f"QEMU ended {how}: {running.complaint() or 'it did not say why'}"
    return ""


def _panic_reason(console: str) -> str:
    line = next((line for line in console.splitlines() if "Kernel panic" in line), "")
    reason = line.partition("Kernel panic - not syncing: ")[2]
    return f": {reason[:200]}" if reason else ""
