"""Places of a tunable in a kernel, what that kernel has instead if it is nowhere, and the names of one of several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import (
    CgroupLimit,
    InstanceKind,
    Marker,
    ProcessAttribute,
    SchedulerProgram,
    ScratchAttribute,
    Tunable,
    Where,
)

if TYPE_CHECKING:
    from ajuste.model.plan import Location

ALWAYS_ON = {"SCHED_DEBUG": KernelVersion(major=6, minor=15)}
"""Build options that are none any more from a version on: what they did is always there."""

ListFiles = Callable[[str], Iterable[str]]
"""A function from a directory to the paths of the files in it; none if it is not there."""

CanChange = Callable[[Tunable], bool]
"""A function that says whether a machine can change a tunable: what it cannot, nothing else changes either."""

FOLDER: Final = "/proc/sys/"
_SWAPPED: Final = str.maketrans("./", "/.")
_COUNTED_CPUS = 8
_NAME = re.compile(r"([^\[\]]+)(?:\[([^\[\]]*)\])?")
_PLACEHOLDER = re.compile(r"\\\{([a-z]+)\\\}")


def needed_options(where: Where, version: KernelVersion) -> tuple[str, ...]:
    """Return the build options that the place needs in a kernel of ``version``."""
    return tuple(option for option in where.needs.split() if option not in ALWAYS_ON or version < ALWAYS_ON[option])


def locate(tunables: Mapping[str, Tunable], tunable: Tunable, version: KernelVersion) -> Location | Marker:
    """See ``Catalogue.locate``. What there is several of must be one instance."""
    where = tunable.place_in(version)
    if where is None:
        raise _absent(tunables, tunable, version)
    return location(where)


def location(where: Where) -> Location | Marker:
    """Return the place as the agent reads it; what is made for the trial is a part of the plan instead."""
    from ajuste.model.plan import (
        Choice,
        Coalesce,
        CpuLatency,
        DeviceFeature,
        FileLocation,
        Flag,
        Qdisc,
        Ring,
        ServerSetting,
    )

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
        case "ring" | "coalesce":
            kind = Ring if where.kind == "ring" else Coalesce
            return kind.model_validate({"device": where.device, "name": where.attribute})
        case "qdisc":
            return Qdisc(device=where.device)
        case "latency":
            return CpuLatency()
        case "redis" | "postgresql":
            return ServerSetting(kind=where.kind, address=where.device, name=where.attribute)
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
    """Return which kernels have it, in words: ``all``, ``up to 6.5``, ``5.13 to 6.5``, ``6.12 and later``."""
    spans: list[tuple[str | None, str | None]] = []
    for where in tunable.where:
        if spans and where.since is not None and spans[-1][1] == where.since:
            spans[-1] = (spans[-1][0], where.before)
        else:
            spans.append((where.since, where.before))
    return ", ".join(_words(since, before) for since, before in spans)


def span(where: Where) -> str:
    """Return for which kernels a place holds, in words like those of ``kernels``."""
    return _words(where.since, where.before)


def _words(since: str | None, before: str | None) -> str:
    if before is None:
        return "all" if since is None else f"{since} and later"
    version = KernelVersion.parse(before)
    # 5.19 and 6.19 were the last of their majors.
    last = f"{version.major}.{version.minor - 1}" if version.minor else f"{version.major - 1}.19"
    if since is None:
        return f"up to {last}"
    return since if since == last else f"{since} to {last}"


def _absent(tunables: Mapping[str, Tunable], tunable: Tunable, version: KernelVersion) -> RequestError:
    other = counterpart(tunables, tunable, version)
    hint = f"choose a kernel that has it with --kernel; see ajuste tunables show {tunable.name}"
    if other:
        hint = f"use {other.name}, a related but different tunable of Linux {version}"
    message = f"{tunable.name} is not supported by Linux {version}; kernels that have it: {kernels(tunable)}"
    return RequestError(message + (f". {tunable.removed}" if tunable.removed else ""), hint=hint)


# What the kernel changes along with a tunable, so that all of it can be put back.


def companions(
    tunables: Mapping[str, Tunable], tunable: Tunable, version: KernelVersion, files: ListFiles, can_change: CanChange
) -> tuple[Location, ...]:
    """See ``Catalogue.companions``."""
    from ajuste.model.plan import FileLocation

    others = (tunables[name] for name in tunable.companions)
    named = (other.instance(tunable.chosen) if other.parts else other for other in others)
    places = (location(where) for other in named if (where := other.place_in(version)) and can_change(other))
    locations = [place for place in places if not isinstance(place, Marker)]
    for directory in tunable.companion_directories:
        filled = re.sub(r"\{([a-z]+)\}", lambda match: tunable.chosen[match[1]], directory)
        locations += [FileLocation(path=path) for path in sorted(files(filled))]
    return tuple(dict.fromkeys(locations))


# What sysctl(8) calls the files below /proc/sys, and back.
#
# Source: sysctl.d(5): dots stand for slashes, and in a part that has a dot of its own it is the other way round.


@lru_cache(4096)
def sysctl_name(path: str) -> str | None:
    """Return ``vm.swappiness``, ``net.ipv4.conf.eth0/100.rp_filter``; ``None`` for what is no sysctl."""
    return path.removeprefix(FOLDER).translate(_SWAPPED) if path.startswith(FOLDER) else None


def sysctl_path(name: str) -> str:
    """Return the file of a sysctl. A name whose first separator is a slash has dots that mean dots."""
    dot, slash = name.find("."), name.find("/")
    if slash >= 0 and (dot < 0 or slash < dot):
        return FOLDER + name
    return FOLDER + name.translate(_SWAPPED)


# The value that a kernel gives a tunable at boot.


def initial_value(tunable: Tunable, version: KernelVersion, cpus: int) -> str | None:
    """Return the value after boot of a kernel of ``version`` on a machine with ``cpus`` CPUs, if known. Scaled ones
    grow with 1 + ⌊log2(CPUs)⌋, CPUs counted up to 8. Source: kernel/sched/fair.c, get_update_sysctl_factor.
    """
    where = tunable.place_in(version)
    if where is None or not where.initial:
        return None
    if not tunable.scaled:
        return where.initial
    return str(int(where.initial) * min(cpus, _COUNTED_CPUS).bit_length())


# One of several: ``NAME[INSTANCE]``, read and written.


def split_name(text: str) -> tuple[str, str | None]:
    """Return the name and what stands in brackets behind it, if any. Raises RequestError for other brackets."""
    match = _NAME.fullmatch(text.strip())
    if not match:
        raise RequestError(f"{text!r} is not the name of a tunable; expected NAME or NAME[INSTANCE]")
    return match[1].strip(), match[2] if match[2] is None else match[2].strip()


def instance(parts: Mapping[str, InstanceKind], tunable: Tunable, text: str) -> Tunable:
    """Return the instance ``text`` of a tunable. Raises RequestError with an example for another form."""
    if not tunable.parts:
        raise RequestError(f"{tunable.name} has no instances; remove [{text}]")
    words = [text] if len(tunable.parts) == 1 else text.split("/")
    read = [parts[name].read(word) for name, word in zip(tunable.parts, words, strict=False)]
    names = [name for name in read if name is not None]
    if len(words) != len(tunable.parts) or len(names) != len(words):
        raise RequestError(f"{text!r} is not a {kind(parts, tunable)}; expected {instance_form(parts, tunable)}")
    return tunable.instance(dict(zip(tunable.parts, names, strict=True)))


def example(parts: Mapping[str, InstanceKind], tunable: Tunable) -> Tunable:
    """Return the tunable, or an instance as an example for the many."""
    return tunable.instance({name: parts[name].example for name in tunable.parts}) if tunable.parts else tunable


def kind(parts: Mapping[str, InstanceKind], tunable: Tunable) -> str:
    """Return what there is one of it for: ``CPU``, ``idle state of a CPU``."""
    return " of a ".join(parts[name].title for name in reversed(tunable.parts))


def instance_form(parts: Mapping[str, InstanceKind], tunable: Tunable) -> str:
    """Return how an instance is written, in words."""
    return f"a name such as {example(parts, tunable).name}"


def missing(parts: Mapping[str, InstanceKind], tunable: Tunable, there: tuple[str, ...] = ()) -> RequestError:
    """Return the error for a tunable that requires an instance. ``there`` are those of the machine."""
    requirement = f"{tunable.name} requires an instance, one for each {kind(parts, tunable)}: {tunable.name}[…]"
    if there:
        return RequestError(
            f"{requirement}; this machine has {', '.join(there)}", hint=f"write {tunable.name}[{there[0]}]"
        )
    return RequestError(requirement, hint=f"name one, such as {example(parts, tunable).name}")


# The names that a tunable goes by: its own, the one that sysctl(8) has for it, and its path.


def find(
    tunables: Mapping[str, Tunable], parts: Mapping[str, InstanceKind], name: str
) -> tuple[Tunable, str | None] | None:
    """Return the tunable that ``name`` means, by any of its names, and the instance where it is the path of one."""
    if name in tunables:
        return tunables[name], None
    dotted = name.replace("/", ".").strip(".").removeprefix("proc.sys.")
    for tunable in tunables.values():
        if name in tunable.aliases:
            return tunable, None
        for where in tunable.where:
            # The path of a file of flags is the name of none of them.
            is_there = where.path == name or sysctl_name(where.path) == dotted
            if is_there and where.path and not where.flag and not where.placeholders:
                return tunable, None
    return _by_path(tunables, parts, name) if name.startswith("/") else None


def _by_path(
    tunables: Mapping[str, Tunable], parts: Mapping[str, InstanceKind], path: str
) -> tuple[Tunable, str] | None:
    for tunable in tunables.values():
        for where in tunable.where:
            named = named_parts(where.path, parts, path) if where.placeholders and where.path else None
            if named:
                return tunable, "/".join(named[part] for part in tunable.parts)
    return None


def named_parts(template: str, parts: Mapping[str, InstanceKind], path: str) -> dict[str, str] | None:
    """Return what ``path`` has where ``template`` has placeholders, ``None`` if it is no path of that form."""
    match = re.fullmatch(_PLACEHOLDER.sub(r"(?P<\1>[^/]+)", re.escape(template)), path)
    if not match:
        return None
    read = {name: parts[name].read(text) for name, text in match.groupdict().items()}
    return {name: text for name, text in read.items() if text is not None} if None not in read.values() else None
