"""An export to render, with text that would be harmful if it were not made harmless."""

from __future__ import annotations

import pytest

from ajuste.model.plan import Attributes, Choice, Coalesce, DeviceFeature, FileLocation, Flag, Ring
from ajuste_profiles.export import Export, ExportSetting

HOSTILE = "is it quicker?\nrm -rf / # {{ lookup('pipe', 'id') }} ${f:exec:id} $(id) `id` %n '\" \x1b[2J"


@pytest.fixture
def network() -> Export:
    """Settings of a network namespace, so that real programs can be let loose on them."""
    return Export(
        name="ajuste-network",
        configuration="all",
        evidence=("elapsed: improves, −12.3 %", HOSTILE),
        settings=(
            sysctl("net.ipv4.tcp_fin_timeout", "/proc/sys/net/ipv4/tcp_fin_timeout", "33", "60"),
            sysctl("net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem", "4096\t100000\t200000", "4096\t131072\t6291456"),
            sysctl("net.mtu[lo]", "/sys/class/net/lo/mtu", "9000", "65536"),
        ),
    )


@pytest.fixture
def everything(network: Export) -> Export:
    """Return an export with one of each kind of place."""
    return Export(
        name="ajuste-everything",
        configuration="all",
        evidence=(HOSTILE,),
        settings=(
            *network.settings,
            sysctl("dots", "/proc/sys/net/ipv4/conf/eth0.100/rp_filter", "1", "0"),
            ExportSetting("sched_feature.X", Flag(path="/sys/kernel/debug/sched/features", name="X"), "0", "0", "1"),
            ExportSetting("block.scheduler[sda]", Choice(path="/sys/block/sda/queue/scheduler"), "bfq", "bfq", "none"),
            ExportSetting("net.gso[eth0]", DeviceFeature(device="eth0", name="tx-generic-segmentation"), "0", "0", "1"),
            ExportSetting("net.ring.rx[eth0]", Ring(device="eth0", name="rx"), "512", "512", "256"),
            ExportSetting("net.coalesce.rx-usecs[eth0]", Coalesce(device="eth0", name="rx-usecs"), "50", "50", "3"),
        ),
        attributes=Attributes(
            nice=-5, policy="fifo", priority=10, affinity=(0, 2), cgroup_limits={"cpu.max": "50000 100000"}
        ),
        kernel_arguments=("isolcpus=1",),
    )


def sysctl(name: str, path: str, became: str, before: str) -> ExportSetting:
    return ExportSetting(name, FileLocation(path=path), became, became, before)
