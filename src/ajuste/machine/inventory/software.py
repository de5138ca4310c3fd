"""The kernel, with its build, command line and limits; and the software that measures and is measured."""

from __future__ import annotations

import gzip
import platform
import re
import shutil
import subprocess
import tomllib
import zlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any, Final

from pydantic import Field

from ajuste.machine.home import ajuste_version, c_library
from ajuste.machine.inventory.source import (
    NOT_UNDERSTOOD,
    InventorySection,
    InventorySource,
    Missing,
    SourceReading,
    is_publishable,
    published_value,
)
from ajuste.model.error import AjusteError
from ajuste.model.kernel import KernelVersion

_MOST_CONFIG_BYTES: Final = 4 << 20
_CLOCK = "/sys/devices/system/clocksource/clocksource0"
_SCHEDULERS_FIRST = KernelVersion.parse("6.6")

_PLACE = "/sys/devices/system/cpu/vulnerabilities"
_CGROUP = "/sys/fs/cgroup"
_UNITS = ("bytes", "seconds", "us")
_QEMU = "qemu-system-x86_64"
_LONGEST_S = 10
_DMI: Final = "/sys/class/dmi/id"

# Beginnings of DMI names (`dmi_vendor_table` in virt.c).
_MAKERS: Final = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Oracle Corporation", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Apple Virtualization", "apple"),
    ("Google Compute Engine", "google"),
)

_CLOCKS: Final = (("kvm-clock", "kvm"), ("hyperv_clocksource", "microsoft"), ("xen", "xen"), ("vmware", "vmware"))

_CONTAINERS: Final = (
    ("/.dockerenv", "docker"),
    ("/run/.containerenv", "podman"),
)


class Kernel(InventorySection):
    """``release`` is ``uname -r``, ``build`` is ``uname -v``. ``options`` are those of ``asked.toml`` that the build's
    configuration has, ``settings`` the sysctls. ``command_line`` maps parameters to values.
    """

    release: str | None = None
    build: str | None = None
    scheduler: str | None = None
    preemption: str | None = None
    clock_source: str | None = None
    clock_sources_offered: str | None = None
    lockdown: str | None = None
    tainted: int | None = None
    modules: int | None = None
    command_line: dict[str, str] = Field(default_factory=dict)
    options_from: str | None = None
    options: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
    scheduler_features: tuple[str, ...] | None = None


def take_kernel(source: InventorySource) -> Kernel:
    """Read proc(5) and sysfs; the preemption model and the scheduler's features need debugfs, and so root."""
    reading = SourceReading(source, absent="not offered by this kernel")
    release = reading.text("release", "/proc/sys/kernel/osrelease")
    options_from, options = _options(source, release or "")
    if options_from is None:
        reading.lacks("options_from", "neither /proc/config.gz nor /boot/config can be read")
    features: tuple[str, ...] | None = None
    for place in ("/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"):
        text = source.text(place)
        if not isinstance(text, Missing):
            features = tuple(text.split())
            break
    else:
        reading.lacks("scheduler_features", "needs root and debugfs")
    return Kernel(
        release=release,
        build=reading.text("build", "/proc/sys/kernel/version"),
        scheduler=_scheduler(source, reading, release),
        preemption=_preemption(source, reading, options),
        clock_source=reading.text("clock_source", f"{_CLOCK}/current_clocksource"),
        clock_sources_offered=reading.text("clock_sources_offered", f"{_CLOCK}/available_clocksource"),
        lockdown=reading.choice("lockdown", "/sys/kernel/security/lockdown"),
        tainted=reading.whole("tainted", "/proc/sys/kernel/tainted"),
        modules=_modules(source, reading),
        command_line=_command_line(source),
        options_from=options_from,
        options=options,
        settings=_settings(source),
        scheduler_features=features,
        unknown=reading.unknown,
    )


@cache
def _selection() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("asked.toml").read_text())


def _command_line(source: InventorySource) -> dict[str, str]:
    # What comes after `--` is for init and not for the kernel. Double quotes keep blanks together.
    parameters: dict[str, str] = {}
    unnamed = 0
    words = re.findall(r'(?:[^\s"]|"[^"]*"?)+', source.line("/proc/cmdline"))
    for word in words[: words.index("--")] if "--" in words else words:
        name, equals, value = word.replace('"', "").partition("=")
        if equals:
            published = published_value("kernel_parameters", name, value)
            parameters[name] = f"{parameters[name]} {published}" if name in parameters else published
        elif is_publishable("kernel_parameters", name):
            parameters[name] = ""
        else:
            unnamed += 1
    if unnamed:
        parameters["other words"] = str(unnamed)
    return parameters


def _options(source: InventorySource, release: str) -> tuple[str | None, dict[str, str]]:
    # Where the configuration was found, and what it says. Options that are off are `n`.
    for place in ("/proc/config.gz", f"/boot/config-{release}", f"/lib/modules/{release}/config"):
        content = source.read_bytes(place, _MOST_CONFIG_BYTES)
        if isinstance(content, Missing):
            continue
        if place.endswith(".gz"):
            try:
                content = gzip.GzipFile(fileobj=BytesIO(content)).read(_MOST_CONFIG_BYTES)
            except (OSError, EOFError, zlib.error):
                continue
        options = {
            name.decode(): value.decode(errors="replace").strip('"')
            for name, value in re.findall(rb"^CONFIG_(\w{1,64})=(.{1,200})$", content, re.MULTILINE)
        }
        if options:
            return place.removesuffix(f"-{release}"), {name: options.get(name, "n") for name in _selection()["options"]}
    return None, {}


def _scheduler(source: InventorySource, reading: SourceReading, release: str | None) -> str | None:
    # The fair scheduler of that version, and a sched_ext one if it is loaded.
    try:
        fair = "EEVDF" if KernelVersion.parse(release or "") >= _SCHEDULERS_FIRST else "CFS"
    except (AjusteError, ValueError):
        return reading.lacks("scheduler", "the release is no version")
    extended = source.line("/sys/kernel/sched_ext/state") == "enabled"
    loaded = source.line("/sys/kernel/sched_ext/root/ops")
    return f"{fair}, sched_ext {loaded}".rstrip() if extended else fair


def _preemption(source: InventorySource, reading: SourceReading, options: dict[str, str]) -> str | None:
    # What is in force: the real-time kernel's, the dynamic one's choice, or that of the build.
    if source.line("/sys/kernel/realtime") == "1" or options.get("PREEMPT_RT") == "y":
        return "full real-time (PREEMPT_RT)"
    current = re.search(r"\(([a-z]+)\)", source.line("/sys/kernel/debug/sched/preempt"))
    if current:
        return f"{current[1]}, chosen at run time"
    models = {"PREEMPT_LAZY": "lazy", "PREEMPT": "full", "PREEMPT_VOLUNTARY": "voluntary", "PREEMPT_NONE": "none"}
    built = next((words for name, words in models.items() if options.get(name) == "y"), None)
    boot_choice = re.search(r"(?:^|\s)preempt=(\w{1,20})(?:\s|$)", source.line("/proc/cmdline"))
    if options.get("PREEMPT_DYNAMIC") == "y":
        return f"{boot_choice[1] if boot_choice else built or 'full'} at boot; can change at run time"
    if built is None:
        return reading.lacks("preemption", "needs root and debugfs, or the kernel's configuration")
    return built


def _modules(source: InventorySource, reading: SourceReading) -> int | None:
    text = source.text("/proc/modules", 1 << 20)
    if isinstance(text, Missing):
        return reading.lacks("modules", "not offered by this kernel" if text.reason != "needs root" else text.reason)
    return len(text.splitlines())


def _settings(source: InventorySource) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name in _selection()["settings"]:
        value = source.text(f"/proc/sys/{name.replace('.', '/')}")
        if not isinstance(value, Missing):
            settings[name] = " ".join(value.split())
    return settings


# Vulnerabilities of the processor, and what the kernel does about them.


def take_mitigations(source: InventorySource) -> dict[str, str]:
    """Read mitigations by the kernel's names, in its words (Documentation/ABI/testing/sysfs-devices-system-cpu)."""
    texts = {name: source.text(f"{_PLACE}/{name}") for name in source.names(_PLACE)}
    return {name: f"unknown: {text.reason}" if isinstance(text, Missing) else text for name, text in texts.items()}


# Limits that are in force for what we start: of the process, of its cgroups, of the system.


class SystemLimits(InventorySection):
    """``resources`` are soft and hard limits as in /proc/self/limits. Those of cgroups are the tightest from our own
    group up to the root: ``cpu_limit`` in CPUs, ``cpu_weight`` of our own group.
    """

    allowed_cpus: str | None = None
    cgroup_version: str | None = None
    cpu_limit: float | None = None
    cpu_weight: int | None = None
    memory_limit_bytes: int | None = None
    process_limit: int | None = None
    pid_max: int | None = None
    threads_max: int | None = None
    resources: dict[str, str] = Field(default_factory=dict)


def take_limits(source: InventorySource) -> SystemLimits:
    """Read limits. Source: proc_pid_limits(5) and Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/."""
    reading = SourceReading(source, absent="not offered by this kernel")
    version, groups = _groups(source)
    v2 = version == "2"
    memory = "memory.max" if v2 else "memory.limit_in_bytes"
    lines = source.lines("/proc/self/status")
    allowed = filter(None, (re.fullmatch(r"Cpus_allowed_list:\s*([0-9,-]{1,4096})", line) for line in lines))
    group = next(_upwards(groups, "cpu"), "")
    weight = source.whole(f"{group}/{'cpu.weight' if v2 else 'cpu.shares'}") if group else None
    return SystemLimits(
        allowed_cpus=next((match[1] for match in allowed), None) or reading.lacks("allowed_cpus", NOT_UNDERSTOOD),
        cgroup_version=version or reading.lacks("cgroup_version", "no cgroups are mounted"),
        cpu_limit=_cpu_limit(source, groups, v2) or reading.lacks("cpu_limit", "no limit"),
        cpu_weight=weight or reading.lacks("cpu_weight", "no group of its own"),
        memory_limit_bytes=_least(source, groups, "memory", memory) or reading.lacks("memory_limit_bytes", "no limit"),
        process_limit=_least(source, groups, "pids", "pids.max") or reading.lacks("process_limit", "no limit"),
        pid_max=reading.whole("pid_max", "/proc/sys/kernel/pid_max"),
        threads_max=reading.whole("threads_max", "/proc/sys/kernel/threads-max"),
        resources=_resources(source),
        unknown=reading.unknown,
    )


def _resources(source: InventorySource) -> dict[str, str]:
    limits: dict[str, str] = {}
    for line in source.lines("/proc/self/limits")[1:]:
        match = re.fullmatch(
            r"Max ([a-z ]{1,40}?)\s+(unlimited|[0-9]{1,20})\s+(unlimited|[0-9]{1,20})(\s+\w+)?\s*", line
        )
        if match:
            unit, soft, hard = (match[4] or "").strip(), match[2], match[3]
            amount = f"{soft} {unit}" if unit in _UNITS and soft != "unlimited" else soft
            limits[match[1]] = amount if soft == hard else f"{amount} (at most {hard})"
    return limits


def _groups(source: InventorySource) -> tuple[str, dict[str, str]]:
    groups: dict[str, str] = {}
    for line in source.lines("/proc/self/cgroup"):
        parts = line.split(":", 2)
        if len(parts) == 3 and ".." not in parts[2].split("/"):
            for controller in parts[1].split(","):
                groups[controller] = parts[2].rstrip("/")
    if source.is_there(f"{_CGROUP}/cgroup.controllers"):
        return "2", {"": groups.get("", "")}
    mounted = {name: path for name, path in groups.items() if name and source.is_there(f"{_CGROUP}/{name}")}
    if not mounted:
        return "", {}
    return ("1 and 2" if source.is_there(f"{_CGROUP}/unified/cgroup.controllers") else "1"), mounted


def _upwards(groups: dict[str, str], controller: str) -> Iterator[str]:
    # Our group's directory for `controller` and all above it.
    group = groups.get("", groups.get(controller))
    if group is None:
        return
    top = _CGROUP if "" in groups else f"{_CGROUP}/{controller}"
    while group:
        yield top + group
        group = group.rpartition("/")[0]
    yield top


def _least(source: InventorySource, groups: dict[str, str], controller: str, name: str) -> int | None:
    # The smallest number that any of the groups has. Version 1 writes "no limit" as a number near 2⁶³.
    limits = [source.whole(f"{place}/{name}") for place in _upwards(groups, controller)]
    return min((value for value in limits if value is not None and 0 < value < 1 << 62), default=None)


def _cpu_limit(source: InventorySource, groups: dict[str, str], v2: bool) -> float | None:
    shares: list[float] = []
    for place in _upwards(groups, "cpu"):
        if v2:
            quota, _, period = source.line(f"{place}/cpu.max").partition(" ")
        else:
            quota, period = source.line(f"{place}/cpu.cfs_quota_us"), source.line(f"{place}/cpu.cfs_period_us")
        if re.fullmatch(r"[1-9][0-9]{0,14}", quota) and re.fullmatch(r"[1-9][0-9]{0,14}", period):
            shares.append(int(quota) / int(period))
    return min(shares, default=None)


# The software that measures and is measured: distribution, C library, Python, QEMU.


class Software(InventorySection):
    """``qemu`` takes a moment to ask for; it is left out of what is kept with every study, where a guest's own QEMU is
    named beside the guest.
    """

    system: str | None = None
    c_library: str | None = None
    python: str = ""
    ajuste: str = ""
    qemu: str | None = None


def take_software(source: InventorySource, *, programs: bool) -> Software:
    """Read the software of the system below the source's root; C library and Python are those that run now.
    ``programs`` are started only if asked for.
    """
    reading = SourceReading(source)
    return Software(
        system=_system(source) or reading.lacks("system", "/etc/os-release does not say"),
        c_library=c_library() or reading.lacks("c_library", "not the GNU C library"),
        python=platform.python_version(),
        ajuste=ajuste_version(),
        qemu=_qemu(reading) if programs and source.is_this_machine else reading.lacks("qemu", "not asked for"),
        unknown=reading.unknown,
    )


def _system(source: InventorySource) -> str | None:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        for line in source.lines(path):
            match = re.fullmatch(r"PRETTY_NAME=(.{1,200})", line)
            if match:
                return match[1].strip("\"'") or None
    return None


def _qemu(reading: SourceReading) -> str | None:
    program = shutil.which(_QEMU)
    if program is None:
        return reading.lacks("qemu", "not installed")
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return reading.lacks("qemu", "does not answer")
    match = re.search(rb"version ([0-9][0-9.]{0,20})", done.stdout)
    return match[1].decode() if match else reading.lacks("qemu", "does not say its version")


# Whether this is a virtual machine or a container, and whose.
#
# The rules are those of systemd-detect-virt(1) (src/basic/virt.c) as far as files show them: it also asks the
# processor (CPUID), which no file repeats. In its place the clock sources that only a guest of a certain hypervisor
# has are looked at.


class Virtualisation(InventorySection):
    """``machine`` and ``container`` are ``none`` or a name as systemd-detect-virt gives it. ``steal_seen`` is whether
    the hypervisor has ever reported time that it gave to others.
    """

    machine: str | None = None
    container: str | None = None
    maker: str | None = None
    product: str | None = None
    steal_seen: bool | None = None


def take_virtualisation(source: InventorySource) -> Virtualisation:
    """Read what of this machine is virtual."""
    reading = SourceReading(source, absent="not offered by this machine")
    # Stolen time is the eighth figure of the first line of /proc/stat (proc_stat(5)).
    words = source.line("/proc/stat").split()
    counts = len(words) > 8 and words[0] == "cpu" and words[8].isdecimal()
    return Virtualisation(
        machine=_machine(source),
        container=_container(source, reading),
        maker=reading.text("maker", f"{_DMI}/sys_vendor"),
        product=reading.text("product", f"{_DMI}/product_name"),
        steal_seen=words[8].strip("0") != "" if counts else reading.lacks("steal_seen", "not offered by this kernel"),
        unknown=reading.unknown,
    )


def _machine(source: InventorySource) -> str:
    if source.is_there("/proc/xen") and "control_d" not in source.line("/proc/xen/capabilities"):
        return "xen"
    processor = source.text("/proc/cpuinfo")
    cpuinfo = "" if isinstance(processor, Missing) else processor
    if re.search(r"^vendor_id\s*:\s*User Mode Linux", cpuinfo, re.MULTILINE):
        return "uml"
    from_firmware = _from_firmware(source)
    is_guest = re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE) is not None
    # Firmware of a real machine can be of the same maker as a virtual one's (Oracle's servers).
    if from_firmware and (is_guest or "flags" not in cpuinfo):
        return from_firmware
    clocks = source.line("/sys/devices/system/clocksource/clocksource0/available_clocksource").split()
    from_clock = next((name for clock, name in _CLOCKS if clock in clocks), "")
    kind = source.line("/sys/hypervisor/type")
    if kind == "xen" and is_guest:
        return "xen"
    if is_guest:
        return from_clock or "a hypervisor that does not say its name"
    return from_clock or "none"


def _from_firmware(source: InventorySource) -> str:
    for name in ("product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version"):
        vendor = source.line(f"{_DMI}/{name}")
        machine_name = next((machine for maker, machine in _MAKERS if vendor.startswith(maker)), "")
        if machine_name:
            return machine_name
    tree = source.line("/proc/device-tree/hypervisor/compatible").rstrip("\0")
    return {"linux,kvm": "kvm", "xen": "xen", "vmware": "vmware"}.get(tree, "")


def _container(source: InventorySource, reading: SourceReading) -> str | None:
    if source.is_there("/proc/vz") and not source.is_there("/proc/bc"):
        return "openvz"
    if re.search("Microsoft|WSL", source.line("/proc/sys/kernel/osrelease")):
        return "wsl"
    manager = source.line("/run/host/container-manager") or source.line("/run/systemd/container")
    if manager:
        return manager
    for mark, name in _CONTAINERS:
        if source.is_there(mark):
            return name
    environment = source.read_bytes("/proc/1/environ")
    if isinstance(environment, Missing):
        return reading.lacks("container", environment.reason)
    for variable in environment.split(b"\0"):
        if variable.startswith(b"container="):
            return variable[10:].decode(errors="replace") or "none"
    return "none"
