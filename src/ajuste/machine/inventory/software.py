"""The software that measures and is measured: distribution, C library, Python, QEMU."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from typing import Final

from ajuste.machine.installation import ajuste_version, c_library
from ajuste.machine.inventory.source import InventorySection, InventorySource, Missing, SourceReading

_QEMU = "qemu-system-x86_64"
_LONGEST_S = 10


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
    """Of the system below the source's root; C library and Python are those that run now. ``programs`` are started
    only if asked for.
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
    """os-release(5)."""
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


_DMI: Final = "/sys/class/dmi/id"
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
"""Beginnings of DMI names (``dmi_vendor_table`` in virt.c)."""
_CLOCKS: Final = (("kvm-clock", "kvm"), ("hyperv_clocksource", "microsoft"), ("xen", "xen"), ("vmware", "vmware"))
_CONTAINERS: Final = (
    ("/.dockerenv", "docker"),
    ("/run/.containerenv", "podman"),
)


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
    """What of this machine is virtual."""
    reading = SourceReading(source, absent="not offered by this machine")
    return Virtualisation(
        machine=_machine(source),
        container=_container(source, reading),
        maker=reading.text("maker", f"{_DMI}/sys_vendor"),
        product=reading.text("product", f"{_DMI}/product_name"),
        steal_seen=_steal_seen(source, reading),
        unknown=reading.unknown,
    )


def _machine(source: InventorySource) -> str:
    if source.is_there("/proc/xen") and "control_d" not in source.line("/proc/xen/capabilities"):
        return "xen"
    processor = source.text("/proc/cpuinfo")
    said = "" if isinstance(processor, Missing) else processor
    if re.search(r"^vendor_id\s*:\s*User Mode Linux", said, re.MULTILINE):
        return "uml"
    from_firmware = _from_firmware(source)
    is_guest = re.search(r"^flags\s*:.*\bhypervisor\b", said, re.MULTILINE) is not None
    # Firmware of a real machine can be of the same maker as a virtual one's (Oracle's servers).
    if from_firmware and (is_guest or "flags" not in said):
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
        said = source.line(f"{_DMI}/{name}")
        found = next((machine for maker, machine in _MAKERS if said.startswith(maker)), "")
        if found:
            return found
    tree = source.line("/proc/device-tree/hypervisor/compatible").rstrip("\0")
    return {"linux,kvm": "kvm", "xen": "xen", "vmware": "vmware"}.get(tree, "")


def _container(source: InventorySource, reading: SourceReading) -> str | None:
    """By what container managers leave for those inside."""
    if source.is_there("/proc/vz") and not source.is_there("/proc/bc"):
        return "openvz"
    if re.search("Microsoft|WSL", source.line("/proc/sys/kernel/osrelease")):
        return "wsl"
    told = source.line("/run/host/container-manager") or source.line("/run/systemd/container")
    if told:
        return told
    for mark, name in _CONTAINERS:
        if source.is_there(mark):
            return name
    environment = source.bytes_of("/proc/1/environ")
    if isinstance(environment, Missing):
        return reading.lacks("container", environment.reason)
    for variable in environment.split(b"\0"):
        if variable.startswith(b"container="):
            return variable[10:].decode(errors="replace") or "none"
    return "none"


def _steal_seen(source: InventorySource, reading: SourceReading) -> bool | None:
    """The eighth figure of the first line of /proc/stat (proc_stat(5))."""
    words = source.line("/proc/stat").split()
    if len(words) < 9 or words[0] != "cpu" or not words[8].isdecimal():
        return reading.lacks("steal_seen", "not offered by this kernel")
    return words[8].strip("0") != ""
