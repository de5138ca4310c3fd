"""The kernel's counters by the names of samplers' figures; those of a machine that is made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.machine.activity import facts_here, read_figures, read_texts
from ajuste.machine.inventory.source import InventorySource

FILES = {
    "proc/vmstat": "pswpin 3\npswpout 4\nnr_dirtied x\n",
    "proc/meminfo": "MemTotal:        1024 kB\nSwapTotal:          2 kB\nHugePages_Total:       5\n",
    "proc/diskstats": " 8 0 sda 1 0 0 0 2 0 0 0 0 0 0 3 0 0 0 4 0\n 8 16 sdb 9 0 0 0 9\n",
    "sys/block/sdb/queue/iostats": "0\n",
    "proc/schedstat": "version 17\ncpu0 1 0 2 3 4 5 6 70 8\ndomain0 3 1 2\ncpu1 1 0 2 3 4 5 6 7 8\n",
    "proc/softirqs": "          CPU0 CPU1\n  NET_RX:   5    6\n",
    "proc/net/snmp": "Tcp: ActiveOpens OutSegs MaxConn\nTcp: 1 22 -1\nUdp: InDatagrams\nUdp: 7\n",
    "proc/net/snmp6": "Udp6InDatagrams                 \t8\n",
    "proc/net/dev": "Inter-| Receive | Transmit\n face |bytes\n  lo: 100 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\n",
    "sys/devices/system/node/node0/x": "",
    "sys/devices/system/node/node1/x": "",
    "proc/sys/vm/overcommit_memory": "0\n",
}


@pytest.fixture
def machine(tmp_path: Path) -> InventorySource:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return InventorySource(tmp_path)


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("vmstat:pswpout", 4),
        ("meminfo:SwapTotal", 2048),
        ("meminfo:HugePages_Total", 5),
        ("diskstats:sda.writes_completed", 2),
        ("diskstats:sda.discards_completed", 3),
        ("diskstats:sda.flushes_completed", 4),
        ("schedstat:cpu.wait_ns", 77),
        ("softirqs:NET_RX", 11),
        ("snmp:Tcp.OutSegs", 22),
        ("snmp:Udp.InDatagrams", 7),
        ("snmp6:Udp6InDatagrams", 8),
        ("netdev:lo.rx_packets", 2),
        ("netdev:lo.tx_packets", 4),
    ],
)
def test_each_kind_of_file_is_read(machine: InventorySource, figure: str, value: int) -> None:
    assert read_figures([figure], machine) == {figure: value}


@pytest.mark.parametrize(
    "figure",
    ["vmstat:nr_dirtied", "vmstat:gone", "netstat:TcpExt.X", "snmp:Tcp.MaxConn", "diskstats:sdb.reads_completed"],
)
def test_what_is_not_there_or_not_counted_is_left_out(machine: InventorySource, figure: str) -> None:
    assert read_figures([figure], machine) == {}


def test_facts_and_files_are_read(machine: InventorySource) -> None:
    assert facts_here(machine)["nodes"] == 2
    assert read_texts(["/proc/sys/vm/overcommit_memory", "/proc/gone"], machine) == {
        "/proc/sys/vm/overcommit_memory": "0"
    }
