"""Where a tunable is in a kernel, and what that kernel has instead if it is nowhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Final

from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Choice, Coalesce, CpuLatency, DeviceFeature, FileLocation, Flag, Location, Qdisc, Ring
from ajuste.model.tunable import (
    CgroupLimit,
    Marker,
    ProcessAttribute,
    SchedulerProgram,
    ScratchAttribute,
    Tunable,
    Where,
)

ALWAYS_ON = {"SCHED_DEBUG": KernelVersion(major=6, minor=15)}
"""Build options that are none any more from a version on: what they did is always there."""


def needed_options(where: Where, version: KernelVersion) -> tuple[str, ...]:
    """The build options that a kernel of ``version`` must have on for the place to be there."""
    return tuple(option for option in where.needs.split() if option not in ALWAYS_ON or version < ALWAYS_ON[option])


def locate(tunables: Mapping[str, Tunable], tunable: Tunable, version: KernelVersion) -> Location | Marker:
    """See ``Catalogue.locate``. What there is several of must be one instance."""
    where = tunable.place_in(version)
    if where is None:
        raise _absent(tunables, tunable, version)
    return location(where)


def location(where: Where) -> Location | Marker:
    """The place as the agent is told it; what is made for the trial is no place of its own but a part of the plan."""
    match where.kind:
        case "process":
            return ProcessAttribute.model_validate({"name": where.attribute})
        case "cgroup":
            return CgroupLimit(name=where.attribute)
        case "scratch":
            return ScratchAttribute(name=where.attribute)
        case "scheduler":
            return SchedulerProgram()
        case "flag":
            return Flag(path=where.path, name=where.flag)
        case "choice":
            return Choice(path=where.path)
        case "feature":
            return DeviceFeature(device=where.device, name=where.attribute)
        case "ring":
            return Ring.model_validate({"device": where.device, "name": where.attribute})
        case "coalesce":
            return Coalesce(device=where.device, name=where.attribute)
        case "qdisc":
            return Qdisc(device=where.device)
        case "latency":
            return CpuLatency()
        case _:
            return FileLocation(path=where.path)


def counterpart(tunables: Mapping[str, Tunable], tunable: Tunable, version: KernelVersion) -> Tunable | None:
    """See ``Catalogue.counterpart``. Follows the chain of successors, then that of predecessors."""
    for link in ("successor", "predecessor"):
        seen = {tunable.name}
        name = getattr(tunable, link)
        while name and name not in seen:
            seen.add(name)
            if tunables[name].place_in(version):
                return tunables[name]
            name = getattr(tunables[name], link)
    return None


def kernels(tunable: Tunable) -> str:
    """Which kernels have it, in words: ``all``, ``up to 6.5``, ``5.13 to 6.5``, ``6.12 and later``."""
    spans: list[tuple[str | None, str | None]] = []
    for where in tunable.where:
        if spans and where.since is not None and spans[-1][1] == where.since:
            spans[-1] = (spans[-1][0], where.before)
        else:
            spans.append((where.since, where.before))
    return ", ".join(_words(since, before) for since, before in spans)


def span(where: Where) -> str:
    """For which kernels a place holds, in words like those of ``kernels``."""
    return _words(where.since, where.before)


def _words(since: str | None, before: str | None) -> str:
    if before is None:
        return "all" if since is None else f"{since} and later"
    last = _last_before(KernelVersion.parse(before))
    if since is None:
        return f"up to {last}"
    return since if since == last else f"{since} to {last}"


def _last_before(version: KernelVersion) -> str:
    """The release before ``version``: 5.19 and 6.19 were the last of their majors."""
    return f"{version.major}.{version.minor - 1}" if version.minor else f"{version.major - 1}.19"


def _absent(tunables: Mapping[str, Tunable], tunable: Tunable, version: KernelVersion) -> RequestError:
    other = counterpart(tunables, tunable, version)
    hint = f"choose a kernel that has it with --kernel; see ajuste tunables show {tunable.name}"
    if other:
        hint = f"use {other.name}, a related but different tunable of Linux {version}"
    message = f"{tunable.name} is not supported by Linux {version}; kernels that have it: {kernels(tunable)}"
    return RequestError(message + (f". {tunable.removed}" if tunable.removed else ""), hint=hint)


# What the kernel changes along with a tunable, so that all of it can be put back.


ListFiles = Callable[[str], Iterable[str]]
"""From a directory to the paths of the files in it; none if it is not there."""


CanChange = Callable[[Tunable], bool]
"""Whether a machine can change a tunable: what it cannot, nothing else changes either."""


def companions(
    tunables: Mapping[str, Tunable], tunable: Tunable, version: KernelVersion, files: ListFiles, can_change: CanChange
) -> tuple[Location, ...]:
    """See ``Catalogue.companions``."""
    named = (_same_instance(tunables[name], tunable) for name in tunable.companions)
    places = (location(where) for other in named if (where := other.place_in(version)) and can_change(other))
    found = [place for place in places if not isinstance(place, Marker)]
    listed = chain.from_iterable(sorted(files(_of(path, tunable))) for path in tunable.companion_directories)
    found += [FileLocation(path=path) for path in listed]
    return tuple(dict.fromkeys(found))


def _same_instance(other: Tunable, tunable: Tunable) -> Tunable:
    return other.instance(tunable.chosen) if other.parts else other


def _of(path: str, tunable: Tunable) -> str:
    return re.sub(r"\{([a-z]+)\}", lambda match: tunable.chosen[match[1]], path)


# What sysctl(8) calls the files below /proc/sys, and back.
#
# Source: sysctl.d(5): dots stand for slashes, and in a part that has a dot of its own it is the other way round.


FOLDER: Final = "/proc/sys/"
_SWAPPED: Final = str.maketrans("./", "/.")


@lru_cache(4096)
def sysctl_name(path: str) -> str | None:
    """``vm.swappiness``, ``net.ipv4.conf.eth0/100.rp_filter``; ``None`` for what is no sysctl."""
    return path.removeprefix(FOLDER).translate(_SWAPPED) if path.startswith(FOLDER) else None


def sysctl_path(name: str) -> str:
    """The file of a sysctl. A name whose first separator is a slash has dots that mean dots."""
    dot, slash = name.find("."), name.find("/")
    if slash >= 0 and (dot < 0 or slash < dot):
        return FOLDER + name
    return FOLDER + name.translate(_SWAPPED)


# The value that a kernel gives a tunable at boot.


_COUNTED_CPUS = 8


def initial_value(tunable: Tunable, version: KernelVersion, cpus: int) -> str | None:
    """The value after boot of a kernel of ``version`` on a machine with ``cpus`` CPUs, where the catalogue can say it.

    Scaled ones grow with 1 + ⌊log2(CPUs)⌋, CPUs counted up to 8.
    Source: kernel/sched/fair.c, get_update_sysctl_factor.
    """
    where = tunable.place_in(version)
    if where is None or not where.initial:
        return None
    if not tunable.scaled:
        return where.initial
    return str(int(where.initial) * min(cpus, _COUNTED_CPUS).bit_length())
