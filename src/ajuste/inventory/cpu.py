"""The processor: what it is, its CPUs, cores and sockets, and which of them are set apart."""

from __future__ import annotations

from ajuste.inventory.cpu_list import cpus_in, list_of
from ajuste.inventory.section import Section
from ajuste.inventory.source import NOT_THERE, Reading, Source, whole_number

_CPUS = "/sys/devices/system/cpu"


class Cpu(Section):
    """``online``, ``offline``, ``isolated`` and ``nohz_full`` are lists of CPUs as the kernel writes them; empty where
    there are none. ``smt`` is the kernel's word: on, off, forceoff, notsupported, notimplemented.
    """

    model: str | None = None
    vendor: str | None = None
    family: int | None = None
    model_number: int | None = None
    stepping: int | None = None
    microcode: str | None = None
    cpus: int | None = None
    sockets: int | None = None
    cores: int | None = None
    threads_per_core: int | None = None
    smt: str | None = None
    online: str | None = None
    offline: str | None = None
    isolated: str | None = None
    nohz_full: str | None = None
    flags: tuple[str, ...] = ()


def take_cpu(source: Source) -> Cpu:
    """From /proc/cpuinfo (proc(5)) and the topology in sysfs (Documentation/admin-guide/cputopology.rst)."""
    reading = Reading(source, absent="not offered by this kernel")
    said = _first_processor(source)

    def number(field: str, key: str) -> int | None:
        value = whole_number(said.get(key, ""))
        return reading.lacks(field, "not said by this processor") if value is None else value

    def word(field: str, *keys: str) -> str | None:
        value = next((said[key] for key in keys if said.get(key)), None)
        return reading.lacks(field, "not said by this processor") if value is None else value

    online = online_cpus(source)
    cores, sockets = _topology(source, online)
    return Cpu(
        model=word("model", "model name", "Processor", "cpu model", "uarch", "machine"),
        vendor=word("vendor", "vendor_id", "CPU implementer"),
        family=number("family", "cpu family"),
        model_number=number("model_number", "model"),
        stepping=number("stepping", "stepping"),
        microcode=word("microcode", "microcode"),
        cpus=len(online) or reading.lacks("cpus", NOT_THERE),
        sockets=sockets or reading.lacks("sockets", "not offered by this kernel"),
        cores=cores or reading.lacks("cores", "not offered by this kernel"),
        threads_per_core=-(-len(online) // cores) if cores else reading.lacks("threads_per_core", NOT_THERE),
        smt=reading.text("smt", f"{_CPUS}/smt/control"),
        online=list_of(online),
        offline=_listed(source, reading, "offline"),
        isolated=_listed(source, reading, "isolated"),
        nohz_full=_listed(source, reading, "nohz_full"),
        flags=tuple(sorted((said.get("flags") or said.get("Features") or "").split())),
        unknown=reading.unknown,
    )


def online_cpus(source: Source) -> list[int]:
    """The numbers of the CPUs that are in use."""
    listed = cpus_in(source.line(f"{_CPUS}/online"))
    if listed:
        return listed
    numbers = (whole_number(name.removeprefix("cpu")) for name in source.names(_CPUS) if name.startswith("cpu"))
    return [number for number in numbers if number is not None]


def _first_processor(source: Source) -> dict[str, str]:
    """The lines about the first processor, and those that are about all of them (as on Arm)."""
    said: dict[str, str] = {}
    for line in source.lines("/proc/cpuinfo"):
        key, colon, value = line.partition(":")
        if colon:
            said.setdefault(key.strip(), value.strip())
    return said


def _topology(source: Source, online: list[int]) -> tuple[int, int]:
    """How many cores and sockets the CPUs that are in use belong to; 0 where nothing says so."""
    cores: set[tuple[int, ...]] = set()
    sockets: set[str] = set()
    covered: set[int] = set()
    for cpu in online:
        if cpu in covered:
            continue
        place = f"{_CPUS}/cpu{cpu}/topology"
        siblings = cpus_in(source.line(f"{place}/thread_siblings_list"))
        if not siblings:
            return 0, 0
        covered.update(siblings)
        cores.add(tuple(siblings))
        sockets.add(source.line(f"{place}/physical_package_id"))
    return len(cores), len(sockets)


def _listed(source: Source, reading: Reading, name: str) -> str | None:
    """A list of CPUs, in the kernel's way of writing; the kernel says ``(null)`` for none in some versions."""
    path = f"{_CPUS}/{name}"
    if not source.is_there(path):
        return reading.lacks(name, "not offered by this kernel")
    return list_of(cpus_in(source.line(path)))
