"""Placing of the lines of a profile on a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable
from ajuste.study.profile import Placed, Profile, profile_notes
from ajuste_profiles.meanings import wishes
from ajuste_profiles.placing import Reading, place

Write = Callable[..., Path]
Read = Callable[..., Profile]

NOW = {
    "vm.swappiness": "60",
    "vm.dirty_ratio": "20",
    "net.core.somaxconn": "4096",
    "net.ipv4.tcp_rmem": "4096\t131072\t6291456",
    "thp.enabled": "madvise",
    "sched_min_granularity_ns": "750000",
    "cpu.dma_latency_us": "2000000000",
    "ksm.run": "0",
    **{f"block.read_ahead_kb[{disk}]": "128" for disk in ("sda", "sdb")},
    **{f"block.scheduler[{disk}]": "mq-deadline" for disk in ("sda", "sdb")},
    **{f"cpu.governor[cpu{cpu}]": "schedutil" for cpu in (0, 1)},
    **{f"net.tso[{name}]": "1" for name in ("eth0", "lo")},
    **{f"net.gro[{name}]": "1" for name in ("eth0", "lo")},
}
THERE = {"disk": ["sda", "sdb", "loop0"], "cpu": ["cpu0", "cpu1"], "interface": ["eth0", "lo"]}


def there(tunable: Tunable) -> list[str]:
    return THERE.get(tunable.instances, [])


def placed(profile: Profile, version: str = "5.10", now: Mapping[str, str] = NOW) -> Placed:
    known, kernel = catalogue(), KernelVersion.parse(version)
    wanted, unmapped = wishes(profile, known, kernel, there)
    read = {name: Reading(value) for name, value in now.items()}
    return place(profile, wanted, unmapped, read, known, kernel)


def levels(placing: Placed) -> dict[str, str]:
    return {name: level for setting in placing.settings for name, level in setting.levels.items()}


def reasons(placing: Placed) -> dict[str, str]:
    return {unmapped.line.name: unmapped.reason for unmapped in placing.unmapped}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[sysctl]\nvm.swappiness=10", {"vm.swappiness": "10"}),
        ("[sysctl]\nkernel.sched_min_granularity_ns=10000000", {"sched_min_granularity_ns": "10000000"}),
        ("[scheduler]\nsched_min_granularity_ns=10000000", {"sched_min_granularity_ns": "10000000"}),
        ('[sysctl]\nnet.ipv4.tcp_rmem="4096 87380 16777216"', {"net.ipv4.tcp_rmem": "4096 87380 16777216"}),
        ("[vm]\ntransparent_hugepages=never", {"thp.enabled": "never"}),
        ("[sysfs]\n/sys/kernel/mm/ksm/run=1", {"ksm.run": "1"}),
        ("[sysfs]\n/sys/kernel/mm/ksm/ru*=1", {"ksm.run": "1"}),
        (
            "[cpu]\ngovernor=nonsense|performance",
            {"cpu.governor[cpu0]": "performance", "cpu.governor[cpu1]": "performance"},
        ),
        ("[cpu]\nforce_latency=cstate.id:1|3", {"cpu.dma_latency_us": "3"}),
        ("[disk]\nreadahead=>4096", {"block.read_ahead_kb[sda]": "4096", "block.read_ahead_kb[sdb]": "4096"}),
        ("[disk]\ndevices=sda\nreadahead=8192 s", {"block.read_ahead_kb[sda]": "4096"}),
        ("[disk]\ndevices=!sda\nreadahead_multiply=2", {"block.read_ahead_kb[sdb]": "256"}),
        ("[disk]\ndevices=sda,nvme*\nelevator=none", {"block.scheduler[sda]": "none"}),
        ("[net]\ndevices=eth*\nfeatures=tso off gro off", {"net.tso[eth0]": "0", "net.gro[eth0]": "0"}),
        ("[sysctl]\nvm.swappiness=<70", {}),
        ("[sysctl]\nvm.swappiness=<30", {"vm.swappiness": "30"}),
    ],
)
def test_a_line_means_tunables_with_levels(write: Write, read: Read, text: str, expected: dict[str, str]) -> None:
    write("one", f"{text}\n")
    assert levels(placed(read("one"))) == expected


def test_what_is_so_already_is_no_change(write: Write, read: Read) -> None:
    write("one", "[sysctl]\nvm.swappiness=60\nnet.core.somaxconn=>2048\nnet.ipv4.tcp_rmem=4096 131072 6291456\n")
    placing = placed(read("one"))
    assert not placing.settings
    assert [unchanged.line.option for unchanged in placing.unchanged] == [
        "vm.swappiness",
        "net.core.somaxconn",
        "net.ipv4.tcp_rmem",
    ]


@pytest.mark.parametrize(
    ("text", "version", "reason"),
    [
        ("[script]\nscript=a.sh", "5.10", "is a program"),
        ("[bootloader]\ncmdline=quiet", "5.10", "kernel argument"),
        ("[modules]\nkvm=x", "5.10", "kernel module"),
        ("[sysctl]\nkernel.nothing=1", "5.10", "not in the catalogue"),
        ("[cpu]\nload_threshold=0.2", "5.10", "not in the catalogue"),
        ("[cpu]\nforce_latency=cstate.id:1", "5.10", "idle states"),
        (
            "[sysctl]\nkernel.sched_min_granularity_ns=1000000",
            "6.1",
            "is at /sys/kernel/debug/sched/min_granularity_ns",
        ),
        ("[scheduler]\nsched_min_granularity_ns=1000000", "6.12", "is not supported by this kernel"),
        ("[disk]\ndevices=nvme*\nreadahead=0", "5.10", "no block device"),
        ("[vm]\ntransparent_hugepage.defrag=never", "5.10", "was not read"),
        ("[sysfs]\n/sys/module/*/parameters/x=1", "5.10", "matches no catalogue setting"),
        ("[net]\nfeatures=nonsense on", "5.10", "has nonsense"),
    ],
)
def test_what_cannot_be_is_left_out_with_the_reason(
    write: Write, read: Read, text: str, version: str, reason: str
) -> None:
    write("one", f"{text}\n")
    placing = placed(read("one"), version)
    assert not placing.settings
    assert reason in next(iter(reasons(placing).values()))


def test_of_two_lines_that_set_the_same_the_later_one_holds(write: Write, read: Read) -> None:
    text = "[scheduler]\nsched_min_granularity_ns=1000000\n[sysctl]\nkernel.sched_min_granularity_ns=2000000\n"
    write("one", text)
    placing = placed(read("one"))
    assert levels(placing) == {"sched_min_granularity_ns": "2000000"}
    assert [setting.line.plugin for setting in placing.settings] == ["sysctl"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("[sysctl]\nvm.swappiness=ten", "whole number"), ("[net]\nfeatures=tso", "expected pairs")],
)
def test_a_value_that_cannot_be_is_refused_with_file_and_line(
    write: Write, read: Read, text: str, message: str
) -> None:
    write("one", f"{text}\n")
    with pytest.raises(RequestError, match=message) as raised:
        placed(read("one"))
    assert raised.value.place is not None
    assert raised.value.place.line == 2


def test_notes_say_what_is_set_what_is_so_already_and_what_is_left_out(write: Write, read: Read) -> None:
    write("one", "[sysctl]\nvm.swappiness=10\nvm.dirty_ratio=20\n[disk]\nreadahead=>4096\n[script]\nscript=x\n")
    sets, same, left = profile_notes([placed(read("one"))])
    assert sets == (
        "The profile one, from here, sets here: disk readahead = >4096 (2 places); vm.swappiness = 10 (was 60)."
        if sets.index("disk") < sets.index("vm.")
        else "The profile one, from here, sets here: vm.swappiness = 10 (was 60); disk readahead = >4096 (2 places)."
    )
    assert "vm.dirty_ratio = 20" in same
    assert "is a program" in left
