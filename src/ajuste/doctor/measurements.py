"""What the doctor measures: figures without any judgement."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Jitter(_Part):
    """How late sleeps of a millisecond ended, in microseconds."""

    sleeps: int
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float


class Run(_Part):
    """One run of the fixed job: when it began (from the first one), how long it took, and what CPU time it had."""

    began_s: float
    elapsed_s: float
    cpu_s: float


class Busy(_Part):
    """A program of others that used the CPU meanwhile: the share of one CPU, summed over its processes."""

    name: str
    cpu_percent: float


class Measurements(_Part):
    """``None`` is what could not be measured; ``unknown`` says why.

    Shares are in per cent: ``steal_percent`` and ``others_percent`` of all CPUs, ``pressure_…`` of the time in which
    some task waited (Documentation/accounting/psi.rst). ``frequency_range_percent`` is by how much the fastest CPU's
    frequency varied from look to look, ``throttled`` how often a CPU was throttled because it was hot.
    """

    seconds: float
    cpus: int
    jitter: Jitter | None = None
    runs: tuple[Run, ...] = ()
    steal_percent: float | None = None
    others_percent: float | None = None
    runnable: float | None = None
    pressure_cpu_percent: float | None = None
    pressure_io_percent: float | None = None
    pressure_memory_percent: float | None = None
    frequency_range_percent: float | None = None
    throttled: int | None = None
    interrupts_per_s: float | None = None
    switches_per_s: float | None = None
    busy: tuple[Busy, ...] = ()
    facts: dict[str, str] = Field(default_factory=dict)
    unknown: dict[str, str] = Field(default_factory=dict)
