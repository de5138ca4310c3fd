"""Who runs before a woken thread, beside two tasks that never sleep on its CPU: from every decision of the scheduler.

The gallery's page on the scheduler suite has what it prints.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from ajuste.executor.guest.guest import GuestExecutor
from ajuste.executor.guest.initramfs import GuestFiles
from ajuste.kernel.fetch import fetch_kernel
from ajuste.machine.home import WORKLOADS, home
from ajuste.model.decision import KINDS, NamedDecisions
from ajuste.model.plan import Command, Plan
from benchmarks.comparison import Comparison

WAYS: Final = {
    "6.1": ("debian:6.1", "0"),
    "6.12": ("debian:6.12", "0"),
    "7.3": ("debian:7.3", "0"),
    "7.3, slice of 0.1 ms": ("debian:7.3", "100"),
}
"""Kernel, and the slice in microseconds for which the thread asks."""
_PROGRAM: Final = f"/ajuste/bin/{WORKLOADS}"
_SLEEPS: Final = "500"
_INTERVAL_US: Final = "1700"
_AT_ONCE_NS: Final = 100_000
_SWITCH, _WAKEUP = KINDS.index("switch"), KINDS.index("wakeup")

Before = Literal["nobody", "the running task", "the waiting task"]


class WakeUp(NamedTuple):
    """For how long a thread that was woken waits, and who has the CPU until then."""

    wait_ns: int
    before: Before


def measure() -> tuple[Comparison, ...]:
    found = {name: _wake_ups(*way) for name, way in WAYS.items()}
    late: dict[Before, str] = {
        "the running task": "wake-ups for which the running task went on",
        "the waiting task": "wake-ups before which the other task had a turn, which had waited for longer",
    }
    counted = {
        who: {name: [float(sum(one.before == who for one in own))] for name, own in found.items()} for who in late
    }
    longest = {name: [max(one.wait_ns for one in own) / 1e6] for name, own in found.items()}
    immediate = all(one.before == "nobody" for one in found["6.1"])
    return (
        *(
            Comparison(
                name=f"wake-ups-after-{who.removeprefix('the ').replace(' ', '-')}",
                what=f"{what}, of {_SLEEPS}",
                unit="",
                figures=counted[who],
                goal="none on Linux 6.1, some on 6.12",
                reached=immediate and counted[who]["6.12"] > [0.0],
            )
            for who, what in late.items()
        ),
        Comparison(
            name="wake-ups-longest",
            what="the longest wait of a wake-up",
            unit="ms",
            figures=longest,
            goal="less than 0.1 ms on Linux 6.1, and with a short slice on 7.3",
            reached=immediate and longest["7.3, slice of 0.1 ms"] < [_AT_ONCE_NS / 1e6],
        ),
    )


def _wake_ups(kernel: str, slice_us: str) -> list[WakeUp]:
    place = home()
    words = ("jitter", "--sleeps", _SLEEPS, "--interval-us", _INTERVAL_US, "--slice-us", slice_us)
    load = Command(argv=(_PROGRAM, "spin"))
    plan = Plan(id="wake-ups", workload=Command(argv=(_PROGRAM, *words)), background=(load, load), timeout_ns=10**11)
    image = fetch_kernel(kernel, place)
    with GuestExecutor(image, clock="virtual", instruction_ns=4, files=GuestFiles(), home=place) as guest:
        seen = guest.count(plan, "decisions")
        if seen.problem or seen.costs is None or seen.decisions is None:
            raise RuntimeError(seen.problem or "nothing was followed")
        return _read(guest.named_decisions(seen.costs, seen.decisions))


def _read(decisions: NamedDecisions) -> list[WakeUp]:
    """Those of the workload by a task of the background load; the first wake-up is by the agent."""
    roles = {task.number: task.role for task in decisions.tasks}
    found: list[WakeUp] = []
    woken: tuple[int, int] | None = None
    between: set[int] = set()
    for place, (kind, running, other) in enumerate(
        zip(decisions.kinds, decisions.running, decisions.others, strict=True)
    ):
        if kind == _WAKEUP and roles.get(other) == "workload" and roles[running] == "background":
            woken, between = (decisions.time_ns(place), running), set()
        elif kind == _SWITCH and woken is not None and roles[other] == "background":
            between.add(other)
        elif kind == _SWITCH and woken is not None and roles[other] == "workload":
            wait_ns = decisions.time_ns(place) - woken[0]
            others: Before = "the waiting task" if between - {woken[1]} else "the running task"
            found.append(WakeUp(wait_ns, "nobody" if wait_ns < _AT_ONCE_NS else others))
            woken = None
    return found
