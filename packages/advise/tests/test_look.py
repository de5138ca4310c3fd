"""Shares of the time, and causes, from the kernel's figures, against machines whose time is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ajuste_advise.answer import main_part, where_sentence
from ajuste_advise.look import Usage, causes, time_shares
from ajuste_advise.model import Look

# One CPU for ten seconds, on which nothing happened.
IDLE = Usage(10.0, 0.0, 0.0, 0, 1, {"stat:cpu.idle_ticks": 1000.0})


def shares_of(usage: Usage) -> dict[str, float]:
    return {part.where: part.share for part in time_shares(usage)}


def test_a_program_that_computes_spends_its_time_in_its_own_code() -> None:
    usage = replace(
        IDLE, user_s=9.0, system_s=0.5, figures={"schedstat:cpu.run_ns": 9.5e9, "stat:cpu.idle_ticks": 50.0}
    )
    assert shares_of(usage) == {"user": 0.9, "kernel": 0.05, "idle": 0.05}
    assert set(causes(usage)) == {"user", "kernel"}


def test_what_others_run_is_not_the_workloads() -> None:
    usage = replace(IDLE, user_s=5.0, figures={"schedstat:cpu.run_ns": 1e10, "schedstat:cpu.wait_ns": 1e10})
    shares = shares_of(usage)
    assert shares["other-programs"] == pytest.approx(0.5)
    assert shares["cpu-wait"] == 1.0
    assert "cpu-wait" in causes(usage)


def test_time_is_counted_by_the_cpus_that_a_parallel_workload_uses() -> None:
    alone = replace(IDLE, cpus=4, user_s=9.0, figures={})
    parallel = replace(IDLE, cpus=4, user_s=36.0, figures={})
    assert shares_of(alone)["user"] == shares_of(parallel)["user"] == pytest.approx(0.9)


def test_pressure_says_how_long_the_disk_was_waited_for() -> None:
    usage = replace(IDLE, figures={"pressure:io.some.total_us": 6.2e6, "diskstats:sda.sectors_written": 4096.0})
    assert shares_of(usage)["disk-wait"] == pytest.approx(0.62)
    assert {"disk-write", "sync"} <= set(causes(usage))


@pytest.mark.parametrize(
    ("figures", "cause"),
    [
        ({"vmstat:pswpout": 3.0}, "swap"),
        ({"vmstat:pgscan_direct": 3.0}, "reclaim"),
        ({"vmstat:nr_dirtied": 1000.0}, "writeback"),
        ({"vmstat:pgpgin": 64.0}, "disk-read"),
        ({"softirqs:NET_RX": 500.0}, "network"),
        ({"vmstat:pgfault": 1e5}, "faults"),
    ],
)
def test_each_figure_that_moves_is_a_cause(figures: dict[str, float], cause: str) -> None:
    assert cause not in causes(IDLE)
    assert cause in causes(replace(IDLE, figures=figures))


def test_waits_count_only_where_the_cpus_are_not_busy() -> None:
    busy = replace(IDLE, user_s=4.0, system_s=6.0, figures={"schedstat:cpu.wait_ns": 5e10})
    waiting = replace(IDLE, user_s=1.0, figures={"pressure:io.some.total_us": 5e6})
    for usage, where in ((busy, "kernel"), (waiting, "disk-wait"), (IDLE, "idle")):
        part = main_part(time_shares(usage))
        assert part is not None
        assert part.where == where


def test_on_a_machine_with_other_programs_a_job_that_sleeps_is_not_blamed_on_them() -> None:
    sleeps = replace(IDLE, user_s=0.1, alone=False, figures={"schedstat:cpu.run_ns": 1e10})
    shares = shares_of(sleeps)
    assert "other-programs" not in shares
    assert shares["waiting"] == pytest.approx(0.99)
    reads = replace(sleeps, figures={"pressure:io.some.total_us": 7e6, "pressure:cpu.some.total_us": 1e7})
    for usage, where in ((sleeps, "waiting"), (reads, "disk-wait")):
        part = main_part(time_shares(usage))
        assert part is not None
        assert part.where == where


def test_a_job_that_does_not_run_may_wait_for_a_cpu_that_others_have() -> None:
    look = Look(run="r", metric="elapsed", elapsed_s=1.0, spread=0.0, trial_s=1.0, shares=(), causes={})
    for pressure, contended in ((1e7, True), (1e6, False)):
        usage = replace(IDLE, user_s=3.8, alone=False, figures={"pressure:cpu.some.total_us": pressure})
        sentence = where_sentence(look.model_copy(update={"shares": time_shares(usage)}))
        assert sentence.startswith("62 % of the time is not running")
        assert ("some task waited for a CPU in 100 %" in sentence) is contended
