"""Reports of ``ajuste-service`` on the services of a trial: their accounts, or why one did not start.

The same JSON is described in ``native/services/src/report.rs``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from pydantic import Field, ValidationError

from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.event import Output
from ajuste.model.metric import Metric

_STARTS: Final = ('{"ajuste_services":', '{"ajuste_service_failed":')

_Kind = TypeVar("_Kind", bound=BaseModel)

_ADVICE: Final = (
    (r"port \d+ was taken by another program", "run it again, or stop the other program"),
    (r"port \d+ is already in use by another program", "write {port} instead of the number, or stop the other program"),
    (r"port \d+ requires root", "write {port} instead of the number, choose a port of 1024 or more, or use sudo"),
    (
        r"No space left on device|Disk quota exceeded|could not extend file",
        "free space where the services' data is: below /var/tmp or /var/lib here, in the memory of a guest (--memory)",
    ),
)

_LAST_LINES: Final = 3

# Characters of a line that are shown.
_LONGEST: Final = 200

_FIGURES: Final = (
    ("cpu", "CPU time", "s", "cpu_ns", 1e9),
    ("peak-rss", "Peak memory", "bytes", "peak_rss_bytes", 1),
    ("voluntary-switches", "Voluntary context switches", "", "voluntary_switches", 1),
    ("involuntary-switches", "Involuntary context switches", "", "involuntary_switches", 1),
)


class ServiceEnd(ClosedModel):
    """The end of the process of a service."""

    exit_code: int | None
    signal: int | None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"was killed by signal {self.signal}"
        return f"ended with exit code {self.exit_code}"


class ServiceUse(ClosedModel):
    """The resources that all processes of a service used from when all services were ready until the workload's end.

    ``cpu_ns`` is exact but for processes that ended meanwhile and were waited for by another one: the kernel has these
    in clock ticks. ``peak_rss_bytes`` adds up the largest resident memory of each process that is left at the end.
    Switches of tasks that ended meanwhile are not in it.
    """

    cpu_ns: int = Field(ge=0, lt=2**64)
    peak_rss_bytes: int = Field(ge=0, lt=2**64)
    voluntary_switches: int = Field(ge=0, lt=2**64)
    involuntary_switches: int = Field(ge=0, lt=2**64)


class ServiceAccount(ClosedModel):
    """A service of a trial. ``used`` is missing where the trial ended before. ``died``: it ended before the workload
    did. ``killed``: it did not stop in time. ``log`` is the end of its output, if it died or was killed.
    """

    name: str
    used: ServiceUse | None = Field(alias="use")
    died: ServiceEnd | None
    killed: bool
    log: str


class NotStarted(ClosedModel):
    """A service that did not start, or was not ready in time."""

    name: str
    why: str
    log: str


class _Accounts(ClosedModel):
    accounts: tuple[ServiceAccount, ...] = Field(alias="ajuste_services")


class _Failed(ClosedModel):
    failure: NotStarted = Field(alias="ajuste_service_failed")


def is_report(output: Output) -> bool:
    """Return whether that is a message of ``ajuste-service``, and not of a command of the study."""
    return output.role in ("before", "after") and output.text.startswith(_STARTS)


def accounts(events: Iterable[object]) -> tuple[ServiceAccount, ...]:
    """Return the accounts of all services of a trial; none where it did not come to that."""
    return next((report.accounts for report in _reports(events, _Accounts)), ())


def not_started(events: Iterable[object]) -> NotStarted | None:
    """Return why the trial was not measured, if that is because of a service."""
    return next((report.failure for report in _reports(events, _Failed)), None)


def _reports(events: Iterable[object], kind: type[_Kind]) -> Iterator[_Kind]:
    for event in events:
        if isinstance(event, Output) and is_report(event):
            try:
                yield kind.model_validate_json(event.text)
            except ValidationError:
                continue


def cpu_seconds(events: Iterable[object]) -> float:
    """Return the CPU time that all services used in a trial."""
    return sum(account.used.cpu_ns for account in accounts(events) if account.used is not None) / 1e9


def service_problem(events: Iterable[object]) -> str:
    """Return why a trial is lost because of a service, with the end of its log; empty if none is to blame."""
    reports = list(events)
    if (failure := not_started(reports)) is not None:
        return _with_log(f"service {failure.name}: {failure.why}", failure.log)
    dead = next((account for account in accounts(reports) if account.died is not None), None)
    if dead is None:
        return ""
    return _with_log(f"service {dead.name} {dead.died} before the workload's end", dead.log)


def with_advice(problem: str) -> str:
    """Return ``problem`` with what to do about it, where that is known of services."""
    advice = next((advice for pattern, advice in _ADVICE if re.search(pattern, problem)), "")
    return f"{problem}; {advice}" if advice else problem


def service_notes(events: Iterable[object]) -> list[str]:
    """Return what a reader must know of the services, though the trial was measured well."""
    return [
        f"service {account.name} was killed: it did not stop in time" for account in accounts(events) if account.killed
    ]


def _with_log(words: str, log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()][-_LAST_LINES:]
    excerpts = [line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…" for line in lines]
    return f"{words}; its log ends: {' / '.join(excerpts)}" if excerpts else words


# Metrics: of all services together, and of each if there are several.


def service_values(events: Iterable[object]) -> dict[str, float]:
    """Return the metrics of the services of a trial, by name."""
    used = {account.name: account.used for account in accounts(events) if account.used is not None}
    metrics: dict[str, float] = {}
    for figure, _, _, field, by in _FIGURES:
        values = {name: getattr(account, field) / by for name, account in used.items()}
        if values:
            metrics[f"service-{figure}"] = float(sum(values.values()))
        if len(values) > 1:
            metrics |= {f"service-{figure}.{name}": float(value) for name, value in values.items()}
    return metrics


def service_metrics(names: Sequence[str]) -> tuple[Metric, ...]:
    """Return the metrics of trials with services of these ``names``."""
    of = [("", "of the services" if len(names) > 1 else "of the service")] if names else []
    of += [(f".{name}", f"of {name}") for name in names] if len(names) > 1 else []
    return tuple(
        Metric(
            name=f"service-{figure}{suffix}",
            title=f"{title} {whose}",
            unit=unit,
            direction="lower" if unit else "none",
            scale="ratio" if unit == "bytes" else "difference",
            resolution=0 if unit == "s" else 1,
            what=f"{title} {whose}, from when all services are ready until the workload's end.",
        )
        for suffix, whose in of
        for figure, title, unit, _, _ in _FIGURES
    )
