"""Idle states: how deeply CPUs sleep, and how long they take to wake."""

from __future__ import annotations

from pydantic import Field

from ajuste.inventory.section import Section
from ajuste.inventory.source import Reading, Source

_CPUIDLE = "/sys/devices/system/cpu/cpuidle"
_STATES = "/sys/devices/system/cpu/cpu0/cpuidle"


class IdleState(Section):
    """``disabled`` by a person or a program, through sysfs or a PM QoS request of its own."""

    exit_latency_us: int | None = None
    target_residency_us: int | None = None
    disabled: bool | None = None


class Idle(Section):
    """Of CPU 0; all CPUs of most machines are alike."""

    driver: str | None = None
    governor: str | None = None
    states: dict[str, IdleState] = Field(default_factory=dict)


def take_idle(source: Source) -> Idle:
    """From Documentation/admin-guide/pm/cpuidle.rst."""
    reading = Reading(source, absent="not offered by this kernel")
    states: dict[str, IdleState] = {}
    for number in source.names(_STATES):
        if number.startswith("state"):
            name = source.line(f"{_STATES}/{number}/name") or number
            states[name if name not in states else f"{name} ({number})"] = _state(source, f"{_STATES}/{number}")
    governor = "current_governor_ro" if source.is_there(f"{_CPUIDLE}/current_governor_ro") else "current_governor"
    return Idle(
        driver=reading.text("driver", f"{_CPUIDLE}/current_driver"),
        governor=reading.text("governor", f"{_CPUIDLE}/{governor}"),
        states=states,
        unknown=reading.unknown,
    )


def _state(source: Source, place: str) -> IdleState:
    reading = Reading(source, absent="not offered by this driver")
    return IdleState(
        exit_latency_us=reading.whole("exit_latency_us", f"{place}/latency"),
        target_residency_us=reading.whole("target_residency_us", f"{place}/residency"),
        disabled=reading.switch("disabled", f"{place}/disable"),
        unknown=reading.unknown,
    )
