"""An executor that a test plays: nothing to make ready, nothing to end."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from ajuste.executor.executor import Executor
from ajuste.model.event import Accepted, End, Event, Exited, Hello, Output, Started, Written
from ajuste.model.plan import Plan


class PlayedExecutor(Executor):
    """Keeps the ``plans`` that it was given; what becomes of them is the test's to say, in ``run``."""

    environment: dict[str, str] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    @property
    def hello(self) -> Hello:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


def said(plan: Plan, switches: int, exit_code: int = 0) -> Iterator[Event]:
    """What an agent says of a clean trial of the workload ``matrix`` beside one background load."""
    yield Accepted(at_ns=1, id=plan.id)
    for write in plan.writes:
        yield Written(at_ns=2, tunable=write.tunable, asked=write.value, before="750000", after=write.value)
    yield Started(at_ns=3, role="background", index=0, pid=2)
    yield Started(at_ns=3, role="workload", index=0, pid=3)
    common: dict[str, Any] = {"user_ns": 1, "system_ns": 1, "voluntary_switches": 1, "minor_faults": 1}
    common |= {"major_faults": 0, "peak_rss_bytes": 1, "wall_ns": 10**9, "index": 0, "at_ns": 4}
    yield Exited(role="workload", exit_code=exit_code, involuntary_switches=switches, **common)
    yield Exited(role="background", signal=9, involuntary_switches=0, **common)
    text = "matrix size=100 repetitions=2 checksum=1\n"
    yield Output(at_ns=4, role="workload", index=0, stream="stdout", text=text)
    yield End(at_ns=5, id=plan.id, ok=True, events=7)
