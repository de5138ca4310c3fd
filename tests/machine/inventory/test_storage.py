"""Disks against lsblk, mounts against findmnt, and both of machines that are not here."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from ajuste.machine.inventory.devices import take_disks, take_mounts
from ajuste.machine.inventory.inventory import Inventory, take_inventory
from ajuste.machine.inventory.source import InventorySource
from tree import Tree


@pytest.fixture(scope="module")
def here() -> Inventory:
    return take_inventory()


@pytest.mark.skipif(shutil.which("lsblk") is None, reason="lsblk is not installed")
def test_disks_are_as_lsblk_describes_them(here: Inventory) -> None:
    columns = "NAME,SIZE,ROTA,RO,RM,SCHED,RQ-SIZE,RA,LOG-SEC,PHY-SEC,MIN-IO,OPT-IO,DISC-MAX,ZONED,MODEL"
    lsblk = subprocess.run(
        ["lsblk", "-J", "-b", "-d", "-a", "-o", columns], capture_output=True, text=True, check=True
    ).stdout
    judged = {disk["name"]: disk for disk in json.loads(lsblk)["blockdevices"]}
    # Loop devices come and go with what others do meanwhile.
    compared = [name for name in here.disks if name in judged and not name.startswith("loop")]
    assert compared
    for name in compared:
        disk, other = here.disks[name], judged[name]
        assert disk.size_bytes == other["size"]
        assert (disk.rotational, disk.read_only, disk.removable) == (other["rota"], other["ro"], other["rm"])
        assert (disk.scheduler, disk.requests) == (other["sched"], other["rq-size"])
        assert disk.read_ahead_bytes == other["ra"] * 1024
        assert (disk.logical_block_bytes, disk.physical_block_bytes) == (other["log-sec"], other["phy-sec"])
        assert (disk.minimum_io_bytes, disk.optimal_io_bytes) == (other["min-io"], other["opt-io"])
        assert disk.zoned == other["zoned"]
        assert (disk.model or "") == (other["model"] or "").strip()


@pytest.mark.skipif(shutil.which("findmnt") is None, reason="findmnt is not installed")
def test_the_root_is_mounted_as_findmnt_says(here: Inventory) -> None:
    findmnt = subprocess.run(
        ["findmnt", "-J", "--first-only", "-o", "FSTYPE,OPTIONS", "/"], capture_output=True, text=True, check=True
    ).stdout
    judged = json.loads(findmnt)["filesystems"][0]
    mount = here.mounts["/"]
    assert mount.type == judged["fstype"]
    assert set(mount.options) >= {option.partition("=")[0] for option in judged["options"].split(",")}
    assert mount.options["rw" if "rw" in judged["options"].split(",") else "ro"] == ""


def queue(name: str, **files: str) -> dict[str, str]:
    return {f"sys/block/{name}/queue/{file}": content for file, content in files.items()}


def test_an_nvme_disk_says_what_it_is(tree: Tree) -> None:
    real = "sys/devices/pci0000:00/0000:00:1d.0/0000:3c:00.0/nvme/nvme0/nvme0n1"
    tree.write(
        {
            f"{real}/size": "1000215216",
            f"{real}/ro": "0",
            f"{real}/queue/scheduler": "[none] mq-deadline kyber",
            f"{real}/queue/nr_requests": "1023",
            f"{real}/queue/read_ahead_kb": "128",
            f"{real}/queue/write_cache": "write back",
            f"{real}/queue/rotational": "0",
            f"{real}/queue/logical_block_size": "512",
            f"{real}/mq/0/cpu_list": "0",
            f"{real}/mq/1/cpu_list": "1",
            f"{real}/device/model": "SAMSUNG MZVLB512HAJQ-000L7              ",
            f"{real}/device/firmware_rev": "4L2QEXA7",
            f"{real}/device/serial": "S3TNNX0K123456",
            f"{real}/wwid": "eui.0025388881b2b2b2",
        }
    )
    tree.link("sys/block/nvme0n1", "../devices/pci0000:00/0000:00:1d.0/0000:3c:00.0/nvme/nvme0/nvme0n1")
    tree.link(f"{real}/device/device/driver", "../../../bus/pci/drivers/nvme")
    disks = take_disks(InventorySource(tree.root))
    disk = disks["nvme0n1"]
    assert (disk.kind, disk.driver, disk.model) == ("nvme", "nvme", "SAMSUNG MZVLB512HAJQ-000L7")
    assert (disk.scheduler, disk.schedulers_offered) == ("none", "kyber mq-deadline none")
    assert (disk.size_bytes, disk.read_ahead_bytes, disk.queues) == (1000215216 * 512, 128 * 1024, 2)
    assert disk.unknown["device_queue_depth"] == "not offered by this device"
    document = disk.model_dump_json()
    assert "S3TNNX0K123456" not in document
    assert "0025388881b2b2b2" not in document


def test_disks_without_medium_of_their_own_are_told_from_others(tree: Tree) -> None:
    sizes = {"loop0": "0", "loop1": "2048", "ram0": "8192", "dm-0": "4096", "md127": "4096", "zram0": "0"}
    tree.write({f"sys/block/{name}/size": size for name, size in sizes.items()})
    assert {name: disk.kind for name, disk in take_disks(InventorySource(tree.root)).items()} == {
        "dm-0": "device mapper",
        "loop1": "loop",
        "md127": "RAID",
    }


MOUNTINFO = r"""21 1 259:2 / / rw,noatime - ext4 /dev/mapper/bobs--laptop-root rw,errors=remount-ro,data=ordered
22 21 0:5 / /proc rw,nosuid shared:2 - proc proc rw
23 21 0:31 / /home/bob/Cloud rw,relatime - fuse.sshfs bob@server.example.com:/srv rw,user_id=1000,max_read=131072
24 21 0:32 / /mnt/customers rw,relatime - nfs4 10.11.12.13:/export/customers rw,vers=4.2,rsize=1048576,addr=10.11.12.13
25 21 259:2 /@data /media/bob/USB\040STICK rw - btrfs /dev/sdb1 rw,compress=zstd:3,subvol=/@bobs-data
26 21 0:40 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1024k,nr_inodes=1000
27 21 0:41 / /var/lib/docker/overlay2/3f/merged rw - overlay overlay rw,lowerdir=/var/lib/docker/l/ABC,xino=off
28 21 0:42 / /tmp rw - tmpfs tmpfs rw,size=2048k
29 nonsense
"""


def test_mounts_have_their_options_and_no_names_that_people_chose(tree: Tree) -> None:
    tree.write({"proc/self/mountinfo": MOUNTINFO})
    tree.link("sys/dev/block/259:2", "../../devices/pci0000:00/nvme/nvme0/nvme0n1/nvme0n1p2")
    mounts = take_mounts(InventorySource(tree.root))
    assert set(mounts) == {"/", "/home/…", "/mnt/…", "/media/…", "/tmp", "/var/lib/docker/…"}
    root = mounts["/"]
    assert (root.type, root.device) == ("ext4", "nvme0n1p2")
    assert root.options == {"rw": "", "noatime": "", "errors": "remount-ro", "data": "ordered"}
    assert mounts["/tmp"].options["size"] == "2048k", "the later one hides the earlier"
    assert (mounts["/mnt/…"].device, mounts["/mnt/…"].options["rsize"]) == ("network", "1048576")
    assert mounts["/media/…"].options["compress"] == "zstd:3"
    document = json.dumps([mount.model_dump() for mount in mounts.values()]) + json.dumps(list(mounts))
    for name in ("bob", "10.11.12.13", "customers", "server", "USB", "ABC", "laptop"):
        assert name not in document
