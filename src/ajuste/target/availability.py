"""Why a tunable that the catalogue knows cannot be changed on this machine, in words."""

from __future__ import annotations

from ajuste.catalogue.instance import kind, missing
from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.place import needed_options
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import DEVICE_KINDS, PATH_KINDS, Tunable, Where
from ajuste.target.listing import instances_here
from ajuste.target.machine import CAP_NET_ADMIN, CAP_SYS_ADMIN, Machine

NEEDS_ROOT = "needs root"
_DEBUGFS = "/sys/kernel/debug"
_LATENCY = "/dev/cpu_dma_latency"


def why_not_writable(catalogue: Catalogue, tunable: Tunable, machine: Machine) -> str:
    """Why ``tunable`` cannot be changed on ``machine``; empty if nothing is in the way.

    The kernel may still refuse a value. What is not there at all counts as well: see ``why_not_there``.
    """
    absence = why_not_there(catalogue, tunable, machine)
    where = tunable.place_in(machine.version)
    if absence or where is None:
        return absence
    if where.kind in PATH_KINDS:
        return _file(where.path, machine)
    if where.kind == "feature":
        fixed = (machine.feature(where.device, where.attribute) or "").endswith("fixed")
        return f"{where.device} does not let it be changed" if fixed else _right(machine, CAP_NET_ADMIN)
    if where.kind in DEVICE_KINDS:
        return _right(machine, CAP_NET_ADMIN)
    if where.kind == "latency":
        return "" if machine.is_writable(_LATENCY) else NEEDS_ROOT
    if where.kind == "scheduler":
        return "only guests are given another scheduler"
    if where.kind in ("cgroup", "scratch"):
        return _right(machine, CAP_SYS_ADMIN)
    return ""


def why_not_there(catalogue: Catalogue, tunable: Tunable, machine: Machine) -> str:
    """Why ``machine`` has no such tunable: another kernel, a build option, a device; empty if it has it."""
    where = tunable.place_in(machine.version)
    if where is None:
        return _other_kernel(catalogue, tunable, machine.version)
    if tunable.parts:
        there = instances_here(catalogue, tunable, machine.version, machine.root)
        return missing(catalogue.parts, tunable, there).message if there else _none(catalogue, tunable, where, machine)
    return (
        _no_device(catalogue, tunable, machine)
        or _not_offered(where, machine)
        or (_no_file(where, machine) if where.kind in PATH_KINDS else "")
    )


def _other_kernel(catalogue: Catalogue, tunable: Tunable, version: KernelVersion) -> str:
    try:
        catalogue.locate(tunable, version)
    except RequestError as error:
        other = catalogue.counterpart(tunable, version)
        said = error.message.rstrip(".")
        return f"{said}. This one has {other.name}, which is related but different" if other else error.message
    raise AssertionError(f"{tunable.name} is in no place of Linux {version}, and yet it was located")


def _none(catalogue: Catalogue, tunable: Tunable, where: Where, machine: Machine) -> str:
    """Why there is not one of what there can be several of."""
    blocked = _debugfs(where, machine)
    return blocked or f"no {kind(catalogue.parts, tunable)} of this machine has it" + _because(where, machine)


def _no_device(catalogue: Catalogue, tunable: Tunable, machine: Machine) -> str:
    for name, chosen in tunable.chosen.items():
        part = catalogue.parts[name]
        # What is inside of another thing is missed with the file.
        if part.there.count("*") > 1:
            continue
        there = [read for found in machine.names_in(part.there) if (read := part.read(found))]
        if chosen not in there:
            has = f"it has {', '.join(there)}" if there else "it has none"
            return f"this machine has no {part.title} {chosen}; {has}"
    return ""


def _not_offered(where: Where, machine: Machine) -> str:
    """What is no file, and not offered by this machine or its device."""
    if where.kind == "feature" and machine.feature(where.device, where.attribute) is None:
        return f"{where.device} has no such feature"
    if where.kind == "ring" and not machine.has_rings(where.device):
        return f"{where.device} has no rings whose size it tells"
    if where.kind == "coalesce" and not machine.has_coalescing(where.device):
        return f"{where.device} has no such parameter"
    if where.kind == "latency" and not machine.exists(_LATENCY):
        return f"there is no {_LATENCY}"
    if where.kind == "cgroup":
        return _no_controller(where.attribute.partition(".")[0], machine)
    return ""


def why_no_weight(machine: Machine) -> str:
    """Why processes cannot be given a control group's weight on this machine; usually there is no reason."""
    return _no_controller("cpu", machine)


def _no_controller(name: str, machine: Machine) -> str:
    if machine.controllers is None:
        return "/sys/fs/cgroup is not cgroup v2 on this machine, and cgroup v1 has no such file"
    if name not in machine.controllers:
        return f"cgroup v2 has no controller {name} on this machine: it was not built, or cgroup v1 has it"
    return ""


def _no_file(where: Where, machine: Machine) -> str:
    blocked = _debugfs(where, machine)
    if blocked or machine.exists(where.path):
        return blocked
    return "this machine does not have it" + _because(where, machine)


def _debugfs(where: Where, machine: Machine) -> str:
    if not where.path.startswith(f"{_DEBUGFS}/"):
        return ""
    if machine.has_debugfs is False:
        return f"debugfs is not mounted at {_DEBUGFS} (mount -t debugfs none {_DEBUGFS})"
    return "" if machine.can(CAP_SYS_ADMIN) else f"{NEEDS_ROOT}: files below {_DEBUGFS} are for root only"


def _because(where: Where, machine: Machine) -> str:
    """The build options that it lacks, or may lack, and what there is to know of the place."""
    note = f". {where.note}" if where.note else ""
    needs = needed_options(where, machine.version)
    if machine.options is None:
        return f": it takes a kernel with {_options(needs)}{note}" if needs else note
    off = tuple(option for option in needs if option not in machine.options)
    return f": its kernel was built without {_options(off)}" if off else note


def _options(names: tuple[str, ...]) -> str:
    return " and ".join(f"CONFIG_{name}" for name in names)


def _file(path: str, machine: Machine) -> str:
    if machine.lockdown and path.startswith(f"{_DEBUGFS}/"):
        return f"the kernel is locked down ({machine.lockdown}): nobody may write below {_DEBUGFS}"
    if not machine.has_write_permission(path):
        return "it can only be read"
    if machine.is_mounted_read_only(path):
        return "its file system is mounted read-only"
    return "" if machine.is_writable(path) else NEEDS_ROOT


def _right(machine: Machine, capability: int) -> str:
    return "" if machine.can(capability) else NEEDS_ROOT
