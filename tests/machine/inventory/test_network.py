"""Network interfaces against ethtool, and those of machines that are not here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ajuste.machine.inventory.devices import count_virtual, take_nics
from ajuste.machine.inventory.inventory import take_inventory
from ajuste.machine.inventory.source import InventorySource
from tree import Tree

OLDER_NAMES = {
    "rx-checksumming": "rx-checksum",
    "generic-segmentation-offload": "tx-generic-segmentation",
    "generic-receive-offload": "rx-gro",
    "large-receive-offload": "rx-lro",
    "rx-vlan-offload": "rx-vlan-hw-parse",
    "tx-vlan-offload": "tx-vlan-hw-insert",
    "ntuple-filters": "rx-ntuple-filter",
    "receive-hashing": "rx-hashing",
}
"""Names of ethtool(8) for some features that have another name in the kernel."""

needs_ethtool = pytest.mark.skipif(shutil.which("ethtool") is None, reason="ethtool is not installed")


def ethtool(*words: str) -> str:
    return subprocess.run(["ethtool", *words], capture_output=True, text=True, check=False).stdout


@needs_ethtool
@pytest.mark.parametrize("name", sorted(path.name for path in Path("/sys/class/net").iterdir()))
def test_features_are_as_ethtool_shows_them(name: str) -> None:
    nics = take_inventory().nics
    if name not in nics:
        pytest.skip("no device, or a name that is not published")
    features = re.findall(r"^\t?([\w-]+): (on|off)( \[fixed\])?", ethtool("-k", name), re.MULTILINE)
    judged = {OLDER_NAMES.get(f, f): state + (", fixed" if fixed else "") for f, state, fixed in features}
    ours = nics[name].features
    compared = ours.keys() & judged.keys()
    assert len(compared) > 30
    assert {feature: ours[feature] for feature in compared} == {feature: judged[feature] for feature in compared}


@needs_ethtool
def test_rings_and_channels_are_as_ethtool_shows_them() -> None:
    for name, nic in take_inventory().nics.items():
        rings = [int(n) for n in re.findall(r"^(?:RX|TX):\s+(\d+)$", ethtool("-g", name), re.MULTILINE)]
        ours = (nic.receive_ring_offered, nic.send_ring_offered, nic.receive_ring, nic.send_ring)
        assert ours == (tuple(rings) if rings else (None,) * 4)
        combined = [int(n) for n in re.findall(r"^Combined:\s+(\d+)$", ethtool("-l", name), re.MULTILINE)]
        assert (nic.channels_offered, nic.channels) == (tuple(combined) if combined else (None, None))


def test_what_the_kernel_was_not_asked_is_not_guessed(tree: Tree) -> None:
    tree.write({"sys/class/net/lo/mtu": "65536"})
    nic = take_nics(InventorySource(tree.root), None)["lo"]
    assert nic.mtu_bytes == 65536
    assert nic.features == {}
    assert nic.unknown["receive_ring"] == "the kernel was not asked"


def test_interfaces_that_people_named_have_no_name_here(tree: Tree) -> None:
    for name in ("eth0", "enx0011223344ff", "bobs-uplink", "enp3s0f1"):
        tree.write({f"sys/class/net/{name}/device/uevent": "", f"sys/class/net/{name}/address": "00:11:22:33:44:ff"})
    tree.write({"sys/class/net/vpn-acme/uevent": "", "sys/class/net/veth1/uevent": "", "sys/class/net/lo/uevent": ""})
    tree.write({"sys/class/net/bonding_masters": ""})
    source = InventorySource(tree.root)
    nics = take_nics(source, None)
    assert set(nics) == {"eth0", "enp3s0f1", "nic", "nic (2)", "lo"}
    assert count_virtual(source) == 2
    assert "ff" not in "".join(nic.model_dump_json() for nic in nics.values()).replace("off", "")
