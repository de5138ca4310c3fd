"""Network interfaces: driver, speed, queues, rings and offload features, as ethtool(8) shows them."""

from __future__ import annotations

from pydantic import Field

from ajuste.inventory.ethtool import Ethtool
from ajuste.inventory.published import free_name, is_publishable
from ajuste.inventory.section import Section
from ajuste.inventory.source import Reading, Source

_NET = "/sys/class/net"


class Nic(Section):
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


def take_nics(source: Source, ethtool: Ethtool | None) -> dict[str, Nic]:
    """Interfaces with a device, and the loopback; of the other virtual ones nothing but ``count_virtual``.

    Without ``ethtool`` what only the kernel knows is missing with that reason.
    """
    found: dict[str, Nic] = {}
    for name in source.names(_NET):
        if name == "lo" or source.is_there(f"{_NET}/{name}/device"):
            shown = name if is_publishable("interfaces", name) else "nic"
            found[free_name(shown, found)] = _nic(source, name, ethtool)
    return found


def count_virtual(source: Source) -> int:
    """How many interfaces without a device there are besides the loopback: bridges, tunnels, ends of containers …"""
    return sum(
        name != "lo" and source.is_there(f"{_NET}/{name}/uevent") and not source.is_there(f"{_NET}/{name}/device")
        for name in source.names(_NET)
    )


def _nic(source: Source, name: str, ethtool: Ethtool | None) -> Nic:
    place = f"{_NET}/{name}"
    reading = Reading(source, absent="not offered by this device")
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


def _asked(reading: Reading, name: str, ethtool: Ethtool | None) -> dict[str, int | None]:
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
