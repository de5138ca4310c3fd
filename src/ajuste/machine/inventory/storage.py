"""Disks and other block devices, with their queues: as lsblk, blockdev and ``hdparm -I`` would say it."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field

from ajuste.machine.inventory.source import (
    LEFT_OUT,
    InventorySection,
    InventorySource,
    SourceReading,
    free_name,
    published_mount_point,
    published_value,
)

_BLOCK = "/sys/block"
_SECTOR_BYTES = 512
_IGNORED = re.compile(r"(?:ram|fd|sr)[0-9]+")


class Disk(InventorySection):
    """``write_cache`` is the kernel's word for the drive's cache (``write back``, ``write through``), ``queues`` the
    number of hardware queues, ``device_queue_depth`` how many commands the drive takes at once (NCQ, NVMe).

    No serial number, no world-wide name and no label is read.
    """

    kind: str | None = None
    model: str | None = None
    vendor: str | None = None
    firmware: str | None = None
    driver: str | None = None
    size_bytes: int | None = None
    rotational: bool | None = None
    removable: bool | None = None
    read_only: bool | None = None
    scheduler: str | None = None
    schedulers_offered: str | None = None
    requests: int | None = None
    read_ahead_bytes: int | None = None
    write_cache: str | None = None
    force_unit_access: bool | None = None
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    minimum_io_bytes: int | None = None
    optimal_io_bytes: int | None = None
    largest_request_bytes: int | None = None
    discard_bytes: int | None = None
    queues: int | None = None
    device_queue_depth: int | None = None
    request_affinity: int | None = None
    no_merges: int | None = None
    writeback_throttling_us: int | None = None
    polling: bool | None = None
    statistics: bool | None = None
    zoned: str | None = None
    dax: bool | None = None


def take_disks(source: InventorySource) -> dict[str, Disk]:
    """By the kernel's names, without RAM disks, and without loop devices that nothing is attached to.

    From Documentation/ABI/stable/sysfs-block.
    """
    return {name: _disk(source, name) for name in source.names(_BLOCK) if _is_in_use(source, name)}


def _is_in_use(source: InventorySource, name: str) -> bool:
    if _IGNORED.fullmatch(name):
        return False
    return source.whole(f"{_BLOCK}/{name}/size") != 0 or not name.startswith(("loop", "zram", "nbd"))


def _disk(source: InventorySource, name: str) -> Disk:
    place = f"{_BLOCK}/{name}"
    queue = f"{place}/queue"
    kind = _kind(source, name)
    reading = SourceReading(source, absent="not offered by this device")
    # A device of the kernel's own, such as dm-0, has no model by nature.
    described = {
        "model": reading.text("model", f"{place}/device/model"),
        "vendor": _vendor(reading, place),
        "firmware": reading.text("firmware", f"{place}/device/firmware_rev")
        or reading.text("firmware", f"{place}/device/rev"),
        "driver": source.link(f"{place}/device/driver")
        or source.link(f"{place}/device/device/driver")
        or reading.lacks("driver", "not offered by this device"),
    }
    return Disk(
        **described,
        kind=kind,
        size_bytes=reading.whole("size_bytes", f"{place}/size", _SECTOR_BYTES),
        rotational=reading.switch("rotational", f"{queue}/rotational"),
        removable=reading.switch("removable", f"{place}/removable"),
        read_only=reading.switch("read_only", f"{place}/ro"),
        scheduler=reading.choice("scheduler", f"{queue}/scheduler"),
        schedulers_offered=_offered(reading, f"{queue}/scheduler"),
        requests=reading.whole("requests", f"{queue}/nr_requests"),
        read_ahead_bytes=reading.whole("read_ahead_bytes", f"{queue}/read_ahead_kb", 1024),
        write_cache=reading.text("write_cache", f"{queue}/write_cache"),
        force_unit_access=reading.switch("force_unit_access", f"{queue}/fua"),
        logical_block_bytes=reading.whole("logical_block_bytes", f"{queue}/logical_block_size"),
        physical_block_bytes=reading.whole("physical_block_bytes", f"{queue}/physical_block_size"),
        minimum_io_bytes=reading.whole("minimum_io_bytes", f"{queue}/minimum_io_size"),
        optimal_io_bytes=reading.whole("optimal_io_bytes", f"{queue}/optimal_io_size"),
        largest_request_bytes=reading.whole("largest_request_bytes", f"{queue}/max_sectors_kb", 1024),
        discard_bytes=reading.whole("discard_bytes", f"{queue}/discard_max_bytes"),
        queues=len(source.names(f"{place}/mq")) or reading.lacks("queues", "not offered by this device"),
        device_queue_depth=reading.whole("device_queue_depth", f"{place}/device/queue_depth"),
        request_affinity=reading.whole("request_affinity", f"{queue}/rq_affinity"),
        no_merges=reading.whole("no_merges", f"{queue}/nomerges"),
        writeback_throttling_us=reading.whole("writeback_throttling_us", f"{queue}/wbt_lat_usec"),
        polling=reading.switch("polling", f"{queue}/io_poll"),
        statistics=reading.switch("statistics", f"{queue}/iostats"),
        zoned=reading.text("zoned", f"{queue}/zoned"),
        dax=reading.switch("dax", f"{queue}/dax"),
        unknown={field: why for field, why in reading.unknown.items() if described.get(field) is None},
    )


def _offered(reading: SourceReading, path: str) -> str | None:
    text = reading.text("schedulers_offered", path)
    return None if text is None else " ".join(sorted(re.sub(r"[\[\]]", "", text).split()))


def _vendor(reading: SourceReading, place: str) -> str | None:
    """Of SCSI and ATA disks; a PCI number, as of NVMe and virtio, is no name."""
    vendor = reading.text("vendor", f"{place}/device/vendor")
    if vendor is not None and re.fullmatch(r"0x[0-9a-fA-F]{1,8}", vendor):
        return reading.lacks("vendor", "not offered by this device")
    return vendor


def _kind(source: InventorySource, name: str) -> str:
    """How it is attached, from its place among the devices: nvme, usb, ata, virtio, scsi or another."""
    own = re.match(r"(nvme|loop|zram|dm|md|nbd|mmcblk|pmem|bcache|rbd)", name)
    if own:
        return {"dm": "device mapper", "md": "RAID", "mmcblk": "SD or eMMC"}.get(own[1], own[1])
    where = source.target(f"{_BLOCK}/{name}")
    for part, kind in (
        ("/usb", "usb"),
        ("/ata", "ata"),
        ("/virtio", "virtio"),
        ("/vbd-", "xen"),
        ("/session", "iscsi"),
    ):
        if part in where:
            return kind
    return "scsi" if "/target" in where or name.startswith("sd") else "other"


# Mounted file systems with their options.


_KEPT_WITHOUT_DEVICE: Final = frozenset(
    {"tmpfs", "overlay", "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "zfs", "btrfs", "ramfs"}
    | {"hugetlbfs", "bcachefs", "fuse", "lustre", "gpfs", "ocfs2", "afs", "ecryptfs", "squashfs"}
)
"""File systems without a block device that hold files of people. The rest of them (proc, sysfs …) are the kernel's."""
_NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "afs"})
_MOST: Final = 200


class Mount(InventorySection):
    """``device`` is the kernel's name of the block device, ``network`` or ``none``; ``options`` map names to values."""

    type: str = ""
    device: str = "none"
    options: dict[str, str] = Field(default_factory=dict)


def take_mounts(source: InventorySource) -> dict[str, Mount]:
    """By mount point, as far as such points are on every machine. From /proc/self/mountinfo (proc_pid_mountinfo(5)).

    What is mounted on top of another hides it, and only that is named.
    """
    last: dict[str, Mount] = {}
    for line in source.lines("/proc/self/mountinfo", 1 << 20):
        found = _parsed(source, line)
        if found is not None:
            last.pop(found[0], None)
            last[found[0]] = found[1]
    mounts: dict[str, Mount] = {}
    for point, mount in sorted(last.items())[:_MOST]:
        mounts[free_name(published_mount_point(point), mounts)] = mount
    return mounts


def _parsed(source: InventorySource, line: str) -> tuple[str, Mount] | None:
    fields, dash, rest = line.partition(" - ")
    before, after = fields.split(" "), rest.split(" ")
    if not dash or len(before) < 6 or len(after) < 3:
        return None
    kind, (point, own) = _unescaped(after[0]), (_unescaped(before[4]), before[5])
    number = before[2]
    has_device = re.fullmatch(r"[1-9][0-9]{0,5}:[0-9]{1,9}", number) is not None
    if not has_device and kind not in _KEPT_WITHOUT_DEVICE and not kind.startswith("fuse."):
        return None
    device = source.link(f"/sys/dev/block/{number}") if has_device else ""
    if kind in _NETWORK:
        device = "network"
    return point, Mount(
        type=kind,
        device=device or "none",
        options=_options(f"{own},{after[2]}"),
    )


def _options(text: str) -> dict[str, str]:
    """Those of the mount and of the file system, each once."""
    found: dict[str, str] = {}
    for option in text.split(","):
        name, equals, value = _unescaped(option).partition("=")
        if re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", name):
            found[name] = published_value("mount_options", name, value) if equals else ""
        elif name:
            found[LEFT_OUT] = ""
    return dict(sorted(found.items()))


def _unescaped(text: str) -> str:
    r"""Blanks in names are written \040 (octal), as in /proc/mounts."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8) & 0xFF), text)
