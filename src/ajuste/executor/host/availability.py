"""The tunables of the catalogue on this machine: the value of each now, and why one cannot be changed, in words."""

from __future__ import annotations

import gzip
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.catalogue.place import kind, missing, named_parts, needed_options
from ajuste.machine.inventory.devices import Ethtool, KernelEthtool
from ajuste.machine.inventory.source import natural
from ajuste.model.error import RequestError
from ajuste.model.event import Failed, ReadBack
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Plan, Read, location_words
from ajuste.model.tunable import DEVICE_KINDS, PATH_KINDS, Marker, Tunable, Where, marker_words

if TYPE_CHECKING:
    from ajuste.executor.executor import Executor

NEEDS_ROOT = "needs root"
_DEBUGFS = "/sys/kernel/debug"
_LATENCY = "/dev/cpu_dma_latency"

_ROOT = Path("/")
_MOST_BYTES: Final = 4 << 20
CAP_NET_ADMIN: Final = 12

CAP_SYS_ADMIN: Final = 21
"""Numbers of capabilities (include/uapi/linux/capability.h)."""

GROUPS: Final = {
    "tx-checksumming": "tx-checksum-*",
    "scatter-gather": "tx-scatter-gather*",
    "tcp-segmentation-offload": "tx-tcp*-segmentation",
}
"""The features that ethtool(8) shows as one, by a pattern of the kernel's names for them."""


def why_not_writable(catalogue: Catalogue, tunable: Tunable, machine: HostMachine) -> str:
    """Return why ``tunable`` cannot be changed on ``machine``, also if it is missing (see ``why_not_there``); empty if
    nothing is in the way. The kernel may still refuse a value.
    """
    absence = why_not_there(catalogue, tunable, machine)
    where = tunable.place_in(machine.version)
    if absence or where is None:
        return absence
    if where.kind in PATH_KINDS:
        return _file(where.path, machine)
    if where.kind == "feature":
        fixed = (machine.feature(where.device, where.attribute) or "").endswith("fixed")
        return f"{where.device} does not allow changes" if fixed else _right(machine, CAP_NET_ADMIN)
    if where.kind in DEVICE_KINDS:
        return _right(machine, CAP_NET_ADMIN)
    if where.kind == "latency":
        return "" if machine.is_writable(_LATENCY) else NEEDS_ROOT
    if where.kind == "scheduler":
        return "only guests can use another scheduler"
    if where.kind in ("cgroup", "scratch"):
        return _right(machine, CAP_SYS_ADMIN)
    return ""


def why_not_there(catalogue: Catalogue, tunable: Tunable, machine: HostMachine) -> str:
    """Return why ``machine`` lacks it: another kernel, a build option, a device; empty if it has it."""
    where = tunable.place_in(machine.version)
    if where is None:
        return _other_kernel(catalogue, tunable, machine.version)
    if tunable.parts:
        if there := instances_here(catalogue, tunable, machine.version, machine.root):
            return missing(catalogue.parts, tunable, there).message
        absent = f"no {kind(catalogue.parts, tunable)} of this machine has it"
        return _debugfs(where, machine) or absent + _because(where, machine)
    if reason := _no_device(catalogue, tunable, machine) or _not_offered(where, machine):
        return reason
    if where.kind not in PATH_KINDS:
        return ""
    blocked = _debugfs(where, machine)
    if blocked or machine.exists(where.path):
        return blocked
    return "this machine does not have it" + _because(where, machine)


def _other_kernel(catalogue: Catalogue, tunable: Tunable, version: KernelVersion) -> str:
    try:
        catalogue.locate(tunable, version)
    except RequestError as error:
        other = catalogue.counterpart(tunable, version)
        reason = error.message.rstrip(".")
        return f"{reason}. This one has {other.name}, which is related but different" if other else error.message
    raise AssertionError(f"{tunable.name} is in no place of Linux {version}, and yet it was located")


def _no_device(catalogue: Catalogue, tunable: Tunable, machine: HostMachine) -> str:
    for name, chosen in tunable.chosen.items():
        part = catalogue.parts[name]
        # A part inside another one is reported with its file.
        if part.there.count("*") > 1:
            continue
        there = [read for device in machine.names_in(part.there) if (read := part.read(device))]
        if chosen not in there:
            has = f"it has {', '.join(there)}" if there else "it has none"
            return f"this machine has no {part.title} {chosen}; {has}"
    return ""


def _not_offered(where: Where, machine: HostMachine) -> str:
    if where.kind == "feature" and machine.feature(where.device, where.attribute) is None:
        return f"{where.device} has no such feature"
    if where.kind == "ring" and not machine.has_rings(where.device):
        return f"{where.device} does not report the size of its rings"
    if where.kind == "coalesce" and not machine.has_coalescing(where.device):
        return f"{where.device} has no such parameter"
    if where.kind == "latency" and not machine.exists(_LATENCY):
        return f"there is no {_LATENCY}"
    if where.kind == "cgroup":
        return _no_controller(where.attribute.partition(".")[0], machine)
    return ""


def why_no_weight(machine: HostMachine) -> str:
    """Return why processes cannot have a control group's weight on this machine, usually nothing."""
    return _no_controller("cpu", machine)


def _no_controller(name: str, machine: HostMachine) -> str:
    if machine.controllers is None:
        return "/sys/fs/cgroup is not cgroup v2 on this machine, and cgroup v1 has no such file"
    if name not in machine.controllers:
        return (
            f"cgroup v2 has no controller {name} on this machine: the kernel was built without it, or cgroup v1 uses it"
        )
    return ""


def _debugfs(where: Where, machine: HostMachine) -> str:
    if not where.path.startswith(f"{_DEBUGFS}/"):
        return ""
    if machine.has_debugfs is False:
        return f"debugfs is not mounted at {_DEBUGFS} (mount -t debugfs none {_DEBUGFS})"
    return "" if machine.can(CAP_SYS_ADMIN) else f"{NEEDS_ROOT}: files below {_DEBUGFS} are for root only"


def _because(where: Where, machine: HostMachine) -> str:
    note = f". {where.note}" if where.note else ""
    needs = needed_options(where, machine.version)
    if machine.options is None:
        return f": it requires a kernel with {_options(needs)}{note}" if needs else note
    off = tuple(option for option in needs if option not in machine.options)
    return f": its kernel was built without {_options(off)}" if off else note


def _options(names: tuple[str, ...]) -> str:
    return " and ".join(f"CONFIG_{name}" for name in names)


def _file(path: str, machine: HostMachine) -> str:
    if machine.lockdown and path.startswith(f"{_DEBUGFS}/"):
        return f"the kernel is locked down ({machine.lockdown}): no user can write below {_DEBUGFS}"
    if not machine.has_write_permission(path):
        return "it can only be read"
    if machine.is_mounted_read_only(path):
        return "its file system is mounted read-only"
    return "" if machine.is_writable(path) else NEEDS_ROOT


def _right(machine: HostMachine, capability: int) -> str:
    return "" if machine.can(capability) else NEEDS_ROOT


# The values that tunables have on a target now.


@dataclass(frozen=True)
class Current:
    """``value`` as the kernel shows it, or ``None`` and the ``problem`` in words. ``path`` is where it was sought."""

    value: str | None = None
    problem: str = ""
    path: str = ""


def current_values(target: Executor, tunables: Sequence[Tunable]) -> dict[str, Current]:
    """Read ``tunables`` on an entered target, by one plan that only reads. Every one of them is in the result.

    Never raises for a value that cannot be read. Raises RunError where the target is lost.
    """
    version = KernelVersion.parse(target.hello.kernel)
    current: dict[str, Current] = {}
    reads: list[Read] = []
    for tunable in tunables:
        try:
            location = catalogue().locate(tunable, version)
        except RequestError as error:
            current[tunable.name] = Current(problem=error.message)
            continue
        if isinstance(location, Marker):
            current[tunable.name] = Current(problem=f"{marker_words(location)}, not of the machine")
        else:
            reads.append(Read(tunable=tunable.name, location=location))
    return current | _read(target, reads, {tunable.name: tunable for tunable in tunables}, version)


def _read(
    target: Executor, reads: list[Read], tunables: dict[str, Tunable], version: KernelVersion
) -> dict[str, Current]:
    if not reads:
        return {}
    observation = target.run(Plan(id="current", reads=tuple(reads)))
    read_back = {event.tunable: event for event in observation.events if isinstance(event, ReadBack)}
    failed = next((event.message for event in observation.events if isinstance(event, Failed)), "")
    silence = observation.problem or failed or "the agent did not report it"
    return {
        read.tunable: _current(read, read_back.get(read.tunable), silence, tunables[read.tunable], version)
        for read in reads
    }


def _current(read: Read, read_back: ReadBack | None, silence: str, tunable: Tunable, version: KernelVersion) -> Current:
    path = location_words(read.location)
    if read_back is None:
        return Current(problem=f"not readable: {silence}", path=path)
    if read_back.value is not None:
        return Current(value=read_back.value, path=path)
    error = read_back.error or "no reason was given"
    if error.endswith(("Permission denied", "Operation not permitted")):
        return Current(problem="not readable: needs root", path=path)
    if not (error.endswith("No such file or directory") or error.startswith("no flag")):
        return Current(problem=f"not readable: {error}", path=path)
    return Current(problem=_absence(tunable, version), path=path)


def _absence(tunable: Tunable, version: KernelVersion) -> str:
    where = tunable.place_in(version)
    if where is None:
        return "not there"
    wants = [f"a kernel with CONFIG_{option}" for option in needed_options(where, version)]
    if where.path.startswith("/sys/kernel/debug/"):
        wants.append("debugfs mounted at /sys/kernel/debug")
    note = f". {where.note}" if where.note else ""
    return f"not there: it requires {' and '.join(wants)}{note}" if wants else f"not there{note}"


# The catalogue's tunables on this machine, with their values and what locks them.


@dataclass(frozen=True)
class Here:
    """``tunable`` is one instance where there are several, and the entry itself where there is none.

    ``locked`` says why it cannot be changed; it is empty if nothing is in the way.
    """

    tunable: Tunable
    current: Current
    locked: str = ""


def tunables_here(
    target: Executor, catalogue: Catalogue, tunables: Sequence[Tunable], machine: HostMachine
) -> list[Here]:
    """Return every instance of ``tunables`` on ``machine``, which the entered ``target`` is, with its value. Never
    raises for a value that cannot be read. Raises RunError where the target is lost.
    """
    every: list[Tunable] = []
    for tunable in tunables:
        names = instances_here(catalogue, tunable, machine.version, machine.root)
        every += [catalogue.instance(tunable, which) for which in names] or [tunable]
    absent = {instance.name: why_not_there(catalogue, instance, machine) for instance in every}
    values = current_values(target, [instance for instance in every if not absent[instance.name]])
    here: list[Here] = []
    for instance in every:
        current = values.get(instance.name, Current())
        if absent[instance.name]:
            current = replace(current, problem=absent[instance.name])
        locked = why_not_writable(catalogue, instance, machine)
        # Some files say in place of a choice that there is none.
        if not locked and instance.type == "choice" and current.value and current.value not in instance.choices:
            locked = f"the kernel says {current.value}"
        here.append(Here(tunable=instance, current=current, locked=locked))
    return here


# Facts of this machine that decide whether a tunable can be changed: build options, lockdown, rights, files, devices.


class HostMachine:
    """The machine whose files are below ``root``. Reads only, and never raises: what cannot be read is not known.

    ``ethtool`` and ``release`` (``uname -r``) stand for the kernel's own answers where they are given.
    """

    def __init__(self, root: Path = _ROOT, *, ethtool: Ethtool | None = None, release: str = "") -> None:
        self.root = root
        self._ethtool = ethtool
        self._release = release or platform.release()

    @property
    def version(self) -> KernelVersion:
        return KernelVersion.parse(self._release)

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def exists(self, path: str) -> bool:
        try:
            return self.path(path).exists()
        except OSError:
            return False

    def names_in(self, pattern: str) -> tuple[str, ...]:
        """Return the last components of the paths that ``pattern`` matches."""
        try:
            return tuple(sorted(path.name for path in self.root.glob(pattern.lstrip("/"))))
        except OSError:
            return ()

    def has_write_permission(self, path: str) -> bool:
        """Return whether the file lets anybody write at all: not even root can write a file that does not."""
        try:
            return bool(self.path(path).stat().st_mode & 0o222)
        except OSError:
            return False

    def is_writable(self, path: str) -> bool:
        """Return whether this process may open the file for writing."""
        return os.access(self.path(path), os.W_OK)

    def is_mounted_read_only(self, path: str) -> bool:
        try:
            return bool(os.statvfs(self.path(path)).f_flag & os.ST_RDONLY)
        except OSError:
            return False

    def can(self, capability: int) -> bool:
        """Return whether this process has the capability of that number in force."""
        match = re.search(r"^CapEff:\s*([0-9a-f]+)$", self._text("/proc/self/status"), re.MULTILINE)
        return bool(match and int(match[1], 16) >> capability & 1)

    @cached_property
    def options(self) -> frozenset[str] | None:
        """Return the build options that are on, built in or as modules; ``None`` where nothing says them."""
        places = ("/proc/config.gz", f"/boot/config-{self._release}", f"/lib/modules/{self._release}/config")
        for place in places:
            text = self._text(place)
            if "CONFIG_" in text:
                return frozenset(re.findall(r"^CONFIG_(\w+)=[ym]$", text, re.MULTILINE))
        return None

    @cached_property
    def lockdown(self) -> str:
        """Return ``integrity`` or ``confidentiality``; empty where the kernel is not locked down."""
        match = re.search(r"\[(\w+)\]", self._text("/sys/kernel/security/lockdown"))
        return match[1] if match and match[1] != "none" else ""

    @cached_property
    def has_debugfs(self) -> bool | None:
        """Return whether debugfs is mounted where it belongs; ``None`` if the mounts cannot be read."""
        mounts = self._text("/proc/self/mounts")
        return "/sys/kernel/debug debugfs" in mounts if mounts else None

    @cached_property
    def controllers(self) -> frozenset[str] | None:
        """Return the controllers of cgroup v2 at /sys/fs/cgroup; ``None`` where that is not cgroup v2."""
        if not self.exists("/sys/fs/cgroup/cgroup.controllers"):
            return None
        return frozenset(self._text("/sys/fs/cgroup/cgroup.controllers").split())

    def feature(self, device: str, name: str) -> str | None:
        """Return ``on`` or ``off``, with ``, fixed`` if it cannot be changed; ``None`` if the device lacks it. A group
        counts as fixed if all of it is.
        """
        with KernelEthtool() as kernel:
            features = (self._ethtool or kernel).features(device) or {}
        pattern = GROUPS.get(name, name)
        states = [state for feature, state in features.items() if fnmatch(feature, pattern)]
        return next((state for state in states if not state.endswith("fixed")), states[0] if states else None)

    def has_rings(self, device: str) -> bool:
        with KernelEthtool() as kernel:
            return bool((self._ethtool or kernel).rings(device))

    def has_coalescing(self, device: str) -> bool:
        with KernelEthtool() as kernel:
            return bool((self._ethtool or kernel).coalescing(device))

    def _text(self, path: str) -> str:
        try:
            with self.path(path).open("rb") as file:
                content = file.read(_MOST_BYTES)
            if path.endswith(".gz"):
                content = gzip.decompress(content)
        except (OSError, EOFError, gzip.BadGzipFile):
            return ""
        return content.decode(errors="replace")


# The parts of a machine: instances of a tunable, and files in a directory of the kernel.


def instances_here(
    catalogue: Catalogue, tunable: Tunable, version: KernelVersion, root: Path = _ROOT
) -> tuple[str, ...]:
    """Return the instances of ``tunable`` that the machine below ``root`` has, in natural order: ``cpu2`` before
    ``cpu10``, without devices that lack the file. Empty where there is only one tunable, or such kernels have none.
    """
    where = tunable.place_in(version)
    if not tunable.parts or where is None:
        return ()
    template = catalogue.parts["interface"].there if where.kind in DEVICE_KINDS else where.path
    names = set()
    for path in _glob(re.sub(r"\{[a-z]+\}", "*", template), root):
        if where.kind in DEVICE_KINDS:
            name = catalogue.parts["interface"].read(path.rpartition("/")[2])
            # bonding_masters is a file among the directories of the interfaces.
            if name and (root / path.lstrip("/")).is_dir():
                names.add(name)
        elif named := named_parts(template, catalogue.parts, path):
            names.add("/".join(named[part] for part in tunable.parts))
    return tuple(sorted(names, key=natural))


def of_this_machine(catalogue: Catalogue) -> Catalogue:
    """Return the catalogue that names this machine's instances where one must be named."""
    return replace(catalogue, there=instances_here)


def files_in(directory: str, root: Path = _ROOT) -> tuple[str, ...]:
    """Return the paths of the files in a directory of the machine below ``root``, in order."""
    return tuple(path for path in _glob(f"{directory}/*", root) if (root / path.lstrip("/")).is_file())


def _glob(pattern: str, root: Path) -> list[str]:
    try:
        return sorted(f"/{path.relative_to(root)}" for path in root.glob(pattern.lstrip("/")))
    except OSError:
        return []
