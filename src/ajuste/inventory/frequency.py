"""How fast the CPUs may run and who decides it: cpufreq's driver and governor, turbo."""

from __future__ import annotations

from collections.abc import Iterable

from ajuste.inventory.cpu_list import cpus_in, list_of
from ajuste.inventory.section import Section
from ajuste.inventory.source import Reading, Source

_CPUFREQ = "/sys/devices/system/cpu/cpufreq"
_PSTATE = "/sys/devices/system/cpu/intel_pstate"
_HIDDEN = "not visible here: no cpufreq driver"


class Frequency(Section):
    """Where CPUs differ, a text names each value with its CPUs: ``performance (0-3), powersave (4-7)``.

    ``lowest_khz`` … ``highest_khz`` is what the limits allow now, ``hardware_…`` what the processor can do.
    """

    driver: str | None = None
    governor: str | None = None
    governors_offered: str | None = None
    energy_preference: str | None = None
    lowest_khz: str | None = None
    highest_khz: str | None = None
    hardware_lowest_khz: str | None = None
    hardware_highest_khz: str | None = None
    base_khz: str | None = None
    turbo: bool | None = None
    pstate_mode: str | None = None


_FILES = {
    "driver": "scaling_driver",
    "governor": "scaling_governor",
    "governors_offered": "scaling_available_governors",
    "energy_preference": "energy_performance_preference",
    "lowest_khz": "scaling_min_freq",
    "highest_khz": "scaling_max_freq",
    "hardware_lowest_khz": "cpuinfo_min_freq",
    "hardware_highest_khz": "cpuinfo_max_freq",
    "base_khz": "base_frequency",
}


def take_frequency(source: Source) -> Frequency:
    """From Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst."""
    policies = [name for name in source.names(_CPUFREQ) if name.startswith("policy")]
    reading = Reading(source, absent="not offered by this driver" if policies else _HIDDEN)
    words = {field: _together(source, reading, policies, field, name) for field, name in _FILES.items()}
    return Frequency(
        **words,
        turbo=_turbo(source, reading),
        pstate_mode=reading.text("pstate_mode", f"{_PSTATE}/status")
        or reading.text("pstate_mode", "/sys/devices/system/cpu/amd_pstate/status"),
        unknown={name: why for name, why in reading.unknown.items() if words.get(name) is None},
    )


def _together(source: Source, reading: Reading, policies: list[str], field: str, name: str) -> str | None:
    """The value of a file in all policies; a governor that is absent in all of them is recorded as lacking."""
    if not policies:
        return reading.lacks(field, _HIDDEN)
    values: dict[str, list[int]] = {}
    for policy in policies:
        value = reading.text(field, f"{_CPUFREQ}/{policy}/{name}")
        if value is not None:
            cpus = cpus_in(source.line(f"{_CPUFREQ}/{policy}/affected_cpus").replace(" ", ","))
            values.setdefault(value, []).extend(cpus)
    return _listed(values.items()) if values else None


def _listed(values: Iterable[tuple[str, list[int]]]) -> str:
    pairs = list(values)
    if len(pairs) == 1:
        return pairs[0][0]
    return ", ".join(f"{value} ({list_of(cpus)})" for value, cpus in pairs)


def _turbo(source: Source, reading: Reading) -> bool | None:
    if source.is_there(f"{_PSTATE}/no_turbo"):
        stopped = reading.switch("turbo", f"{_PSTATE}/no_turbo")
        return None if stopped is None else not stopped
    return reading.switch("turbo", f"{_CPUFREQ}/boost")
