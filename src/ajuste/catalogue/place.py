"""Where a tunable is in a kernel, and what that kernel has instead if it is nowhere."""

from __future__ import annotations

from collections.abc import Mapping

from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Choice, Coalesce, Feature, File, Flag, Latency, Location, Qdisc, Ring
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
            return Feature(device=where.device, name=where.attribute)
        case "ring":
            return Ring.model_validate({"device": where.device, "name": where.attribute})
        case "coalesce":
            return Coalesce(device=where.device, name=where.attribute)
        case "qdisc":
            return Qdisc(device=where.device)
        case "latency":
            return Latency()
        case _:
            return File(path=where.path)


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
    hint = f"choose a kernel that has it, for example with --kernel; ajuste tunables show {tunable.name} says more"
    if other:
        hint = (
            f"its counterpart in {version} is {other.name}, which is related but different: ask for it by its own name"
        )
    message = f"Linux {version} has no {tunable.name}; kernels that have it: {kernels(tunable)}"
    return RequestError(message + (f". {tunable.removed}" if tunable.removed else ""), hint=hint)
