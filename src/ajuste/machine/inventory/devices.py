"""Disks and network interfaces, with their queues, as lsblk(8), blockdev(8), hdparm(8) and ethtool(8) show them."""

from __future__ import annotations

import array
import fcntl
import re
import socket
import struct
from typing import Final, Protocol, Self

from pydantic import Field

from ajuste.machine.inventory.source import (
    LEFT_OUT,
    InventorySection,
    InventorySource,
    SourceReading,
    free_name,
    is_publishable,
    published_mount_point,
    published_value,
)

_BLOCK = "/sys/block"
_SECTOR_BYTES = 512
_IGNORED = re.compile(r"(?:ram|fd|sr)[0-9]+")

# File systems without a block device that hold files of people. The rest of them (proc, sysfs …) are the kernel's.
_KEPT_WITHOUT_DEVICE: Final = frozenset(
    {"tmpfs", "overlay", "nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "glusterfs", "zfs", "btrfs", "ramfs"}
    | {"hugetlbfs", "bcachefs", "fuse", "lustre", "gpfs", "ocfs2", "afs", "ecryptfs", "squashfs"}
)

_NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "afs"})
_MOST: Final = 200
_NET = "/sys/class/net"
_SIOCETHTOOL: Final = 0x8946
_GDRVINFO: Final = 0x03
_GCOALESCE: Final = 0x0E
_GRINGPARAM: Final = 0x10
_GSTRINGS: Final = 0x1B
_GSSET_INFO: Final = 0x37
_GFEATURES: Final = 0x3A
_GCHANNELS: Final = 0x3C
_FEATURE_STRINGS: Final = 4  # ETH_SS_FEATURES
_STRING_BYTES: Final = 32
_MOST_FEATURES: Final = 512
_DRIVER_BYTES: Final = 196
_COALESCE_WORDS: Final = 23


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
    """Read disks by the kernel's names, without RAM disks and loop devices that nothing is attached to. Source:
    Documentation/ABI/stable/sysfs-block.
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
    model, vendor = reading.text("model", f"{place}/device/model"), reading.text("vendor", f"{place}/device/vendor")
    # SCSI and ATA disks have the vendor's name here; NVMe and virtio a PCI number.
    if vendor is not None and re.fullmatch(r"0x[0-9a-fA-F]{1,8}", vendor):
        vendor = reading.lacks("vendor", "not offered by this device")
    described = {
        "model": model,
        "vendor": vendor,
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


def _kind(source: InventorySource, name: str) -> str:
    # How it is attached, from its place among the devices: nvme, usb, ata, virtio, scsi or another.
    prefix = re.match(r"(nvme|loop|zram|dm|md|nbd|mmcblk|pmem|bcache|rbd)", name)
    if prefix:
        return {"dm": "device mapper", "md": "RAID", "mmcblk": "SD or eMMC"}.get(prefix[1], prefix[1])
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


class Mount(InventorySection):
    """``device`` is the kernel's name of the block device, ``network`` or ``none``; ``options`` map names to values."""

    type: str = ""
    device: str = "none"
    options: dict[str, str] = Field(default_factory=dict)


def take_mounts(source: InventorySource) -> dict[str, Mount]:
    """Read mounts by mount point, as far as such points are on every machine; of those on top of each other the last.
    Source: /proc/self/mountinfo (proc_pid_mountinfo(5)).
    """
    last: dict[str, Mount] = {}
    for line in source.lines("/proc/self/mountinfo", 1 << 20):
        mounted = _parsed(source, line)
        if mounted is not None:
            last.pop(mounted[0], None)
            last[mounted[0]] = mounted[1]
    mounts: dict[str, Mount] = {}
    for point, mount in sorted(last.items())[:_MOST]:
        mounts[free_name(published_mount_point(point), mounts)] = mount
    return mounts


def _parsed(source: InventorySource, line: str) -> tuple[str, Mount] | None:
    fields, dash, rest = line.partition(" - ")
    before, after = fields.split(" "), rest.split(" ")
    if not dash or len(before) < 6 or len(after) < 3:
        return None
    kind, (point, point_options) = _unescaped(after[0]), (_unescaped(before[4]), before[5])
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
        options=_options(f"{point_options},{after[2]}"),
    )


def _options(text: str) -> dict[str, str]:
    # Those of the mount and of the file system, each once.
    options: dict[str, str] = {}
    for option in text.split(","):
        name, equals, value = _unescaped(option).partition("=")
        if re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", name):
            options[name] = published_value("mount_options", name, value) if equals else ""
        elif name:
            options[LEFT_OUT] = ""
    return dict(sorted(options.items()))


def _unescaped(text: str) -> str:
    # Blanks in names are written \040 (octal), as in /proc/mounts.
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8) & 0xFF), text)


# Network interfaces: driver, speed, queues, rings and offload features, as ethtool(8) shows them.


class Nic(InventorySection):
    """``bus`` is how it is attached (pci, virtio, usb, virtual). ``features`` maps the kernel's names of offloads to
    ``on`` or ``off``, with ``, fixed`` where they cannot be changed. No address of it is read.
    """

    driver: str | None = None
    bus: str | None = None
    state: str | None = None
    speed_mbit_s: int | None = None
    duplex: str | None = None
    mtu_bytes: int | None = None
    receive_queues: int | None = None
    send_queues: int | None = None
    send_queue_length: int | None = None
    channels: int | None = None
    channels_offered: int | None = None
    receive_ring: int | None = None
    receive_ring_offered: int | None = None
    send_ring: int | None = None
    send_ring_offered: int | None = None
    receive_delay_us: int | None = None
    receive_delay_frames: int | None = None
    send_delay_us: int | None = None
    send_delay_frames: int | None = None
    threaded_polling: int | None = None
    features: dict[str, str] = Field(default_factory=dict)


def take_nics(source: InventorySource, ethtool: Ethtool | None) -> dict[str, Nic]:
    """Read interfaces with a device, and the loopback. Without ``ethtool``, what only the kernel knows is missing with
    that reason.
    """
    nics: dict[str, Nic] = {}
    for name in source.names(_NET):
        if name == "lo" or source.is_there(f"{_NET}/{name}/device"):
            label = name if is_publishable("interfaces", name) else "nic"
            nics[free_name(label, nics)] = _nic(source, name, ethtool)
    return nics


def count_virtual(source: InventorySource) -> int:
    """Count interfaces without a device besides the loopback: bridges, tunnels, containers' ends."""
    return sum(
        name != "lo" and source.is_there(f"{_NET}/{name}/uevent") and not source.is_there(f"{_NET}/{name}/device")
        for name in source.names(_NET)
    )


def _nic(source: InventorySource, name: str, ethtool: Ethtool | None) -> Nic:
    place = f"{_NET}/{name}"
    reading = SourceReading(source, absent="not offered by this device")
    queues = source.names(f"{place}/queues")
    answers = _ethtool_values(reading, name, ethtool)
    driver = source.link(f"{place}/device/driver") or (ethtool.driver(name) if ethtool else None)
    speed = reading.whole("speed_mbit_s", f"{place}/speed")
    if speed is not None and speed < 0:
        speed = reading.lacks("speed_mbit_s", "not offered by this device")
    return Nic(
        driver=driver or reading.lacks("driver", "not offered by this device"),
        bus=source.link(f"{place}/device/subsystem") or "virtual",
        state=reading.text("state", f"{place}/operstate"),
        speed_mbit_s=speed,
        duplex=reading.text("duplex", f"{place}/duplex"),
        mtu_bytes=reading.whole("mtu_bytes", f"{place}/mtu"),
        receive_queues=sum(queue.startswith("rx-") for queue in queues),
        send_queues=sum(queue.startswith("tx-") for queue in queues),
        send_queue_length=reading.whole("send_queue_length", f"{place}/tx_queue_len"),
        threaded_polling=reading.whole("threaded_polling", f"{place}/threaded"),
        features=(ethtool.features(name) if ethtool else None) or {},
        unknown=reading.unknown,
        **answers,
    )


def _ethtool_values(reading: SourceReading, name: str, ethtool: Ethtool | None) -> dict[str, int | None]:
    rings = ethtool.rings(name) if ethtool else None
    channels = ethtool.channels(name) if ethtool else None
    delays = ethtool.coalescing(name) if ethtool else None
    values = {
        "receive_ring_offered": rings and rings[0],
        "send_ring_offered": rings and rings[1],
        "receive_ring": rings and rings[2],
        "send_ring": rings and rings[3],
        "channels_offered": channels and channels[0],
        "channels": channels and channels[3],
        "receive_delay_us": delays and delays[0],
        "receive_delay_frames": delays and delays[1],
        "send_delay_us": delays and delays[2],
        "send_delay_frames": delays and delays[3],
    }
    for field, value in values.items():
        if value is None:
            reading.lacks(field, "not offered by this device" if ethtool else "the kernel was not asked")
    return values


# What the kernel says of a network interface through SIOCETHTOOL: offload features, rings, channels, coalescing.
#
# Only commands that read, all of which anybody may give. Source: include/uapi/linux/ethtool.h; the feature's names
# are the kernel's own (``ETH_SS_FEATURES``), of which ethtool(8) shows some under older names.


class Ethtool(Protocol):
    """Answers about interfaces by name. ``None`` where the device does not offer it."""

    def driver(self, name: str) -> str | None: ...

    def features(self, name: str) -> dict[str, str] | None: ...

    def rings(self, name: str) -> tuple[int, int, int, int] | None: ...

    def channels(self, name: str) -> tuple[int, int, int, int] | None: ...

    def coalescing(self, name: str) -> tuple[int, int, int, int] | None: ...


class KernelEthtool:
    """Asks the kernel. A context manager: it holds a socket."""

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def driver(self, name: str) -> str | None:
        """Return the driver's name (ETHTOOL_GDRVINFO)."""
        answer = self._ask(name, struct.pack("I", _GDRVINFO).ljust(_DRIVER_BYTES, b"\0"))
        return answer[4:36].partition(b"\0")[0].decode(errors="replace") or None if answer else None

    def features(self, name: str) -> dict[str, str] | None:
        """Return ``on``, ``off``, and whether it is ``fixed``, by feature (ETHTOOL_GFEATURES)."""
        names = self._feature_names(name)
        blocks = -(-len(names) // 32)
        answer = self._ask(name, struct.pack("II", _GFEATURES, blocks) + bytes(16 * blocks)) if names else None
        if answer is None:
            return None
        states: dict[str, str] = {}
        for number, feature in enumerate(names):
            available, _, active, never_changed = struct.unpack_from("IIII", answer, 8 + 16 * (number // 32))
            bit = 1 << (number % 32)
            fixed = not available & bit or bool(never_changed & bit)
            if feature:
                states[feature] = ("on" if active & bit else "off") + (", fixed" if fixed else "")
        return states

    def rings(self, name: str) -> tuple[int, int, int, int] | None:
        """Return descriptors: most for receiving and sending, now for both (ETHTOOL_GRINGPARAM)."""
        words = self._words(name, _GRINGPARAM, 9)
        return (words[1], words[4], words[5], words[8]) if words else None

    def channels(self, name: str) -> tuple[int, int, int, int] | None:
        """Return channels: most combined ones, and now for receiving, sending, both (ETHTOOL_GCHANNELS)."""
        words = self._words(name, _GCHANNELS, 9)
        return (words[4], words[5], words[6], words[8]) if words else None

    def coalescing(self, name: str) -> tuple[int, int, int, int] | None:
        """Return microseconds and frames before an interrupt, receiving and sending (ETHTOOL_GCOALESCE)."""
        words = self._words(name, _GCOALESCE, _COALESCE_WORDS)
        return (words[1], words[2], words[5], words[6]) if words else None

    def _feature_names(self, name: str) -> list[str]:
        answer = self._ask(name, struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _FEATURE_STRINGS, 0))
        count = struct.unpack_from("I", answer, 16)[0] if answer else 0
        if not 0 < count <= _MOST_FEATURES:
            return []
        request = struct.pack("III", _GSTRINGS, _FEATURE_STRINGS, count) + bytes(_STRING_BYTES * count)
        answer = self._ask(name, request)
        if answer is None:
            return []
        pieces = (answer[12 + _STRING_BYTES * number :][:_STRING_BYTES] for number in range(count))
        return [piece.partition(b"\0")[0].decode(errors="replace") for piece in pieces]

    def _words(self, name: str, command: int, count: int) -> tuple[int, ...] | None:
        answer = self._ask(name, struct.pack("I", command).ljust(4 * count, b"\0"))
        return struct.unpack_from(f"{count}I", answer) if answer else None

    def _ask(self, name: str, request: bytes) -> bytes | None:
        place = array.array("B", request)
        try:
            ifreq = struct.pack("16sP8x", name.encode(), place.buffer_info()[0])
            fcntl.ioctl(self._socket, _SIOCETHTOOL, ifreq)
        except (OSError, ValueError, struct.error):
            return None
        return place.tobytes()
