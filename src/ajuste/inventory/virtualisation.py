"""Whether this is a virtual machine or a container, and whose.

The rules are those of systemd-detect-virt(1) (src/basic/virt.c) as far as files show them: it also asks the processor
(CPUID), which no file repeats. In its place the clock sources that only a guest of a certain hypervisor has are looked
at.
"""

from __future__ import annotations

import re
from typing import Final

from ajuste.inventory.section import Section
from ajuste.inventory.source import Missing, Reading, Source

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


class Virtualisation(Section):
    """``machine`` and ``container`` are ``none`` or a name as systemd-detect-virt gives it. ``steal_seen`` is whether
    the hypervisor has ever reported time that it gave to others.
    """

    machine: str | None = None
    container: str | None = None
    maker: str | None = None
    product: str | None = None
    steal_seen: bool | None = None


def take_virtualisation(source: Source) -> Virtualisation:
    reading = Reading(source, absent="not offered by this machine")
    return Virtualisation(
        machine=_machine(source),
        container=_container(source, reading),
        maker=reading.text("maker", f"{_DMI}/sys_vendor"),
        product=reading.text("product", f"{_DMI}/product_name"),
        steal_seen=_steal_seen(source, reading),
        unknown=reading.unknown,
    )


def _machine(source: Source) -> str:
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


def _from_firmware(source: Source) -> str:
    for name in ("product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version"):
        said = source.line(f"{_DMI}/{name}")
        found = next((machine for maker, machine in _MAKERS if said.startswith(maker)), "")
        if found:
            return found
    tree = source.line("/proc/device-tree/hypervisor/compatible").rstrip("\0")
    return {"linux,kvm": "kvm", "xen": "xen", "vmware": "vmware"}.get(tree, "")


def _container(source: Source, reading: Reading) -> str | None:
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


def _steal_seen(source: Source, reading: Reading) -> bool | None:
    """The eighth figure of the first line of /proc/stat (proc_stat(5))."""
    words = source.line("/proc/stat").split()
    if len(words) < 9 or words[0] != "cpu" or not words[8].isdecimal():
        return reading.lacks("steal_seen", "not offered by this kernel")
    return words[8].strip("0") != ""
