"""The built-in studies with small budgets, in real guests: what their pages claim."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ajuste.analysis.prediction import nice_weight
from ajuste.study.builtin import find_study
from shell import Shell

pytestmark = [pytest.mark.slow, pytest.mark.vm, pytest.mark.timeout(900)]

Results = dict[str, Any]
Run = Callable[..., Results]


@pytest.fixture
def run(tmp_path: Path, ajuste_home: Path) -> Run:
    """``run(NAME, old=new, …)``: the results of one block of a built-in study, after replacing parts of its text."""

    def running(name: str, *replaced: tuple[str, str]) -> Results:
        text = find_study(name).read_text()
        for old, new in (*replaced, (r"min_blocks = \d+", "min_blocks = 1"), (r"max_blocks = \d+", "max_blocks = 1")):
            text, count = re.subn(old, lambda _, new=new: new, text, flags=re.DOTALL)  # type: ignore[misc]
            assert count, f"nothing like {old} in {name}"
        (tmp_path / "study.toml").write_text(text)
        results: Results = Shell(tmp_path, ajuste_home).json("run", "study.toml", "--quiet")
        assert {trial["status"] for trial in results["trials"]} == {"ok"}, results["notes"]
        return results

    return running


def means(results: Results, metric: str) -> dict[str, float]:
    return {c["name"]: c["metrics"][metric]["mean"] for c in results["configurations"]}


@pytest.mark.parametrize("kernel", ["debian:5.10", "debian:6.12"])
def test_shares_are_what_the_weights_say_within_one_percentage_point(run: Run, kernel: str) -> None:
    results = run("nice-share", ("debian:5.10", kernel))
    assert len(results["predictions"]) == len(results["configurations"]) == 17
    assert all(abs(prediction["residual"]) < 1 for prediction in results["predictions"])
    assert results["rule"]["name"] == "nice-weights"


def test_what_was_written_reaches_the_disk_when_the_flusher_finds_it_expired(run: Run) -> None:
    results = run("writeback-delay")
    delays = means(results, "written-after")
    assert 30 <= delays["vm.dirty_expire_centisecs=3000 vm.dirty_writeback_centisecs=500"] <= 35.5
    assert 10 <= delays["vm.dirty_expire_centisecs=1000 vm.dirty_writeback_centisecs=500"] <= 15.5
    # The writing itself takes a moment, and is looked at every quarter of a second.
    assert all(abs(prediction["residual"]) < 0.6 for prediction in results["predictions"])


def test_with_data_in_the_journal_twice_as_much_is_written(run: Run) -> None:
    written = means(run("journal-mode"), "written")
    assert written["fs.data=journal"] / written["fs.data=ordered"] == pytest.approx(2, abs=0.05)
    assert written["fs.data=writeback"] == pytest.approx(written["fs.data=ordered"], rel=0.02)
    assert written["fs.data=ordered"] >= 8 * 2048  # sectors of 512 bytes


def test_small_synced_writes_need_fewer_writes_where_the_journal_takes_the_data_too(run: Run) -> None:
    results = run("journal-sync")
    writes = means(results, "writes")
    assert writes["fs.data=journal"] < 0.8 * writes["fs.data=ordered"]


def test_a_film_is_smooth_beside_a_build_only_with_autogroup(run: Run) -> None:
    results = run("autogroup", ("milliseconds = 3000", "milliseconds = 2000"))
    missed, rate = means(results, "frames.missed"), means(results, "frames.rate")
    assert missed["sched_autogroup_enabled=0 processes=32"] > 90
    assert missed["sched_autogroup_enabled=1 processes=32"] < 2
    assert rate["sched_autogroup_enabled=1 processes=32"] > 5 * rate["sched_autogroup_enabled=0 processes=32"]


def test_priority_matters_beside_a_load_and_not_alone(run: Run) -> None:
    results = run("linpack-priority", (r"levels = \[0, -20, -10, 10, 19\]", "levels = [0, 10]"))
    elapsed, speed = means(results, "elapsed"), means(results, "linpack.kflops")
    assert elapsed["nice=10 load=alone"] == pytest.approx(elapsed["nice=0 load=alone"], rel=0.05)
    assert elapsed["nice=10 load=disturbed"] > 1.7 * elapsed["nice=10 load=alone"]
    assert max(speed.values()) < 1.05 * min(speed.values())
    assert results["three_sigma"]


def test_an_isolated_cpu_keeps_the_load_away_and_the_kernel_even_interrupts(run: Run) -> None:
    results = run("linpack-isolation")
    switches = means(results, "involuntary-switches")
    assert switches["isolation=fifo on an isolated CPU"] == 0
    assert switches["isolation=plain"] > 10
    assert any("isolcpus=1" in name for name in results["environment"])
    in_kernel = "isolation=in the kernel, interrupts off"
    interrupts, elapsed = means(results, "linpack.interrupts"), means(results, "elapsed")
    assert interrupts.pop(in_kernel) == 0
    assert min(interrupts.values()) > 10
    assert elapsed[in_kernel] < 0.9 * elapsed["isolation=plain"]


def test_the_same_study_gives_the_same_digest(run: Run, tmp_path: Path, ajuste_home: Path) -> None:
    first = run("journal-mode")
    again = Shell(tmp_path, ajuste_home).json("run", "study.toml", "--quiet", "--fresh")
    assert again["digest"] == first["digest"]


def test_the_table_of_weights_is_the_running_kernels(tmp_path: Path, ajuste_home: Path) -> None:
    levels = [-20, -10, -1, 0, 1, 10, 19]
    (tmp_path / "weights.toml").write_text(WEIGHTS_STUDY % levels)
    results = Shell(tmp_path, ajuste_home).json("run", "weights.toml", "--quiet")
    weights = means(results, "weight")
    # The kernel scales a weight by 1024 (scale_load of kernel/sched/sched.h).
    assert weights == {f"nice={nice}": 1024 * nice_weight(nice) for nice in levels}


WEIGHTS_STUDY = """\
schema = 1
name = "weights"
question = "What does a task weigh?"

[[factor]]
name = "nice"
levels = %s

[workload]
command = ["/bin/cat", "/proc/self/sched"]

[[workload.metric]]
name = "weight"
pattern = '^se\\.load\\.weight\\s*:\\s*(\\d+)'
direction = "none"

[target]
kernel = "debian:6.1"
instruction_ns = 16

[analysis]
metrics = ["weight"]
describe = []

[budget]
min_blocks = 1
max_blocks = 1
"""


def test_of_many_requests_the_mean_does_not_depend_on_their_order_and_of_a_single_readers_it_does(run: Run) -> None:
    small = ("size_mib = 512, milliseconds = 500", "size_mib = 64, milliseconds = 200")
    results = run("io-scheduler", ('"none", "mq-deadline", "kyber", "bfq"', '"none", "mq-deadline"'), small)
    many = means(results, "fio.reads.read.latency")
    single = means(results, "fio.reader.read.latency")
    none, deadline = many
    # 32 requests under way, 4 served at a time in 2 ms: 16 ms each, but for the first and the last of them.
    assert all(13_000 < latency < 17_000 for latency in many.values())
    assert 2_000 < single[none] < 2_200
    assert single[deadline] > 1.3 * single[none]


def test_memory_is_where_the_policy_says(run: Run) -> None:
    local = means(run("numa-placement", ("mib = 32", "mib = 8")), "pages.local")
    assert local == {
        "workload.policy=local": 100,
        "workload.policy=remote": 0,
        "workload.policy=interleave": 50,
        "workload.policy=default": 100,
    }


def test_a_kernel_without_nodes_has_one_place_for_all_memory(run: Run) -> None:
    results = run("numa-kernel", ("mib = 32", "mib = 8"))
    assert means(results, "pages.nodes") == {"nodes=known": 2, "nodes=off": 1}
    fill = means(results, "pages.fill")
    assert 0.95 < fill["nodes=off"] / fill["nodes=known"] < 1.05


def test_multipath_tcp_uses_the_second_link_and_outlives_the_first(run: Run) -> None:
    results = run("mptcp-paths", ("milliseconds = 6000", "milliseconds = 3000"), ("= 2000 }", "= 1000 }"))
    goodput, stall = means(results, "paths.goodput"), means(results, "paths.stall")
    assert goodput["links=two workload.protocol=mptcp"] > 1.2 * goodput["links=two workload.protocol=tcp"]
    assert 0.95 < goodput["links=one workload.protocol=mptcp"] / goodput["links=one workload.protocol=tcp"] < 1.02
    assert stall["links=lost workload.protocol=tcp"] > 1900, "until the end"
    assert stall["links=lost workload.protocol=mptcp"] < 500
