"""Network interfaces: driver, speed, queues, rings and offload features, as ethtool(8) shows them."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from typing import Final, Protocol, Self

from pydantic import Field

from ajuste.machine.inventory.source import InventorySection, InventorySource, SourceReading, free_name, is_publishable

_NET = "/sys/class/net"


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
    """Interfaces with a device, and the loopback; of the other virtual ones nothing but ``count_virtual``.

    Without ``ethtool`` what only the kernel knows is missing with that reason.
    """
    found: dict[str, Nic] = {}
    for name in source.names(_NET):
        if name == "lo" or source.is_there(f"{_NET}/{name}/device"):
            shown = name if is_publishable("interfaces", name) else "nic"
            found[free_name(shown, found)] = _nic(source, name, ethtool)
    return found


def count_virtual(source: InventorySource) -> int:
    """How many interfaces without a device there are besides the loopback: bridges, tunnels, containers' ends."""
    return sum(
        name != "lo" and source.is_there(f"{_NET}/{name}/uevent") and not source.is_there(f"{_NET}/{name}/device")
        for name in source.names(_NET)
    )


def _nic(source: InventorySource, name: str, ethtool: Ethtool | None) -> Nic:
    place = f"{_NET}/{name}"
    reading = SourceReading(source, absent="not offered by this device")
    queues = source.names(f"{place}/queues")
    asked = _asked(reading, name, ethtool)
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
        **asked,
    )


def _asked(reading: SourceReading, name: str, ethtool: Ethtool | None) -> dict[str, int | None]:
    """What only the kernel can be asked for."""
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
        self._strings: dict[str, list[str]] = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def driver(self, name: str) -> str | None:
        """The driver's name (ETHTOOL_GDRVINFO)."""
        answer = self._ask(name, struct.pack("I", _GDRVINFO).ljust(_DRIVER_BYTES, b"\0"))
        return answer[4:36].partition(b"\0")[0].decode(errors="replace") or None if answer else None

    def features(self, name: str) -> dict[str, str] | None:
        """``on``, ``off``, and whether it is ``fixed``, by feature (ETHTOOL_GFEATURES)."""
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
        """Descriptors: most for receiving and sending, now for receiving and sending (ETHTOOL_GRINGPARAM)."""
        words = self._words(name, _GRINGPARAM, 9)
        return (words[1], words[4], words[5], words[8]) if words else None

    def channels(self, name: str) -> tuple[int, int, int, int] | None:
        """Channels: most combined ones, and now for receiving, sending, both (ETHTOOL_GCHANNELS)."""
        words = self._words(name, _GCHANNELS, 9)
        return (words[4], words[5], words[6], words[8]) if words else None

    def coalescing(self, name: str) -> tuple[int, int, int, int] | None:
        """Microseconds and frames before an interrupt, for receiving and for sending (ETHTOOL_GCOALESCE)."""
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
        """The answer, which the kernel writes in the place of the request."""
        place = array.array("B", request)
        try:
            ifreq = struct.pack("16sP8x", name.encode(), place.buffer_info()[0])
            fcntl.ioctl(self._socket, _SIOCETHTOOL, ifreq)
        except (OSError, ValueError, struct.error):
            return None
        return place.tobytes()
