"""A setting that cannot matter here: said at once, in a plan, on this machine and in a guest."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from guests import in_guests
from shell import Shell

WRITES = """\
schema = 1
name = "writes"
[[factor]]
name = "vm.dirty_ratio"
levels = [10, 40]
[workload]
command = ["dd", "if=/dev/zero", "of=file", "bs=64k", "count=16", "conv=fsync"]
[scratch]
filesystem = "ext4"
device = "/dev/nullb0"
options = { lazy_init = 0 }
[target]
kernel = "debian:6.12"
modules = ["null_blk gb=1 memory_backed=1", "ext4"]
[analysis]
metrics = ["elapsed"]
[budget]
max_blocks = 3
"""
HAS_SWAP = len(Path("/proc/swaps").read_text().splitlines()) > 1
SWAPPINESS = ("--set", "vm.swappiness=10,60")
WHY = "vm.swappiness had no chance to matter: no swap is on"
on_a_machine_without_swap = pytest.mark.skipif(HAS_SWAP, reason="this machine has swap")


@on_a_machine_without_swap
@pytest.mark.skipif(os.geteuid() != 0, reason="changing a setting of this machine takes root")
@pytest.mark.usefixtures("machine_lock")
def test_swappiness_without_swap_is_answered_after_three_blocks(ajuste: Shell) -> None:
    output, complained = ajuste("compare", *SWAPPINESS, "--min-effect", "0.01%", "--", "true")
    assert complained.startswith("vm.swappiness cannot matter here: no swap is on. To see an effect, turn swap")
    words = " ".join(output.split())
    assert words.startswith(f"{WHY}. 2 configurations · 3 blocks · 6 trials and 2 warm-ups")
    assert "stopped: what varies had no chance to matter in 3 blocks" in words
    assert "more block" not in words
    assert "To see an effect, turn swap on with swapon(8)." in words
    results = ajuste.json("report", "compare")
    assert (results["stopped"], results["no_chance"][0]["factor"]) == ("irrelevant", "vm.swappiness")


@in_guests
@on_a_machine_without_swap
def test_a_plan_says_so_before_anything_is_measured(ajuste: Shell) -> None:
    output, _ = ajuste("compare", *SWAPPINESS, "--dry-run", "--", "true")
    assert "Note: vm.swappiness cannot matter here: no swap is on." in " ".join(output.split())
    output, _ = ajuste("compare", "--vm", "--set", "sched_migration_cost_ns=0,1ms", "--dry-run", "--", "true")
    assert "sched_migration_cost_ns cannot matter here: there is one CPU only." in " ".join(output.split())


def test_what_a_guest_cannot_answer_is_refused_before_anything_runs(ajuste: Shell) -> None:
    setting = ("--set", "cpu.governor[cpu0]=powersave,performance")
    _, complained = ajuste("compare", "--vm", *setting, "--", "true", expect=2)
    assert "cpu.governor: a guest's CPU has no frequency to govern" in complained
    assert "measure on a host" in complained


def test_the_sheet_of_a_tunable_says_when_it_matters(ajuste: Shell) -> None:
    sheet = " ".join(ajuste("tunables", "show", "net.ipv4.tcp_sack")[0].split())
    assert "Matters if TCP segments are sent or received" in sheet
    assert "Counters Tcp.OutSegs, Tcp.InSegs" in sheet


@pytest.mark.vm
@pytest.mark.slow
def test_in_a_guest_the_kernels_counters_and_functions_tell(ajuste: Shell) -> None:
    matrix = ("--json", "--", "matrix", "size=50", "repetitions=1")
    results = json.loads(ajuste("compare", "--vm", *SWAPPINESS, *matrix)[0])
    assert [factor["saw"] for factor in results["no_chance"]] == ["no swap is on"]
    results = json.loads(ajuste("compare", "--vm", "--set", "net.ipv4.tcp_sack=0,1", *matrix)[0])
    assert results["no_chance"][0]["never_ran"] == ["tcp_rcv_established", "tcp_rcv_state_process", "tcp_connect"]


@pytest.mark.vm
@pytest.mark.slow
def test_where_pages_are_written_nothing_is_said_of_when(ajuste: Shell) -> None:
    (ajuste.directory / "writes.toml").write_text(WRITES)
    assert "no_chance" not in ajuste.json("run", "writes.toml")
