"""Relevance of settings: what moved, against the conditions of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ajuste.analysis.relevance import Activity, difference, factors_without_chance, unrefuted, without_more_blocks
from ajuste.catalogue.loader import catalogue
from ajuste.model.kernel import KernelVersion
from ajuste.model.relevance import NoChance, explains_all
from ajuste.model.trial import Factor
from ajuste.study.read import read_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from verdicts import verdict

RECLAIM = ("vmstat:pgscan_anon", "vmstat:pgscan_file", "vmstat:pgscan_kswapd", "vmstat:pgscan_direct")
SWAP = {"meminfo:SwapTotal": 1 << 30, "vmstat:pswpin": 0, "vmstat:pswpout": 0}
STILL = dict.fromkeys(RECLAIM, 0)
HOST = """\
schema = 1
name = "asked"
{}
[workload]
command = ["true"]
[target]
kind = "host"
clock = "wall"
[analysis]
metrics = ["elapsed"]
"""
Asked = Callable[..., ResolvedStudy]


@pytest.fixture
def resolve_study(tmp_path: Path) -> Asked:
    """A study of this machine that varies these factors."""

    def asking(*factors: str) -> ResolvedStudy:
        path = tmp_path / "asked.toml"
        tables = "\n".join(f"[[factor]]\n{factor}" for factor in factors)
        path.write_text(HOST.format(tables))
        study = read_study(path, catalogue())
        return resolve(study, catalogue(), {HOST_KERNEL: KernelVersion(major=6, minor=12)}, lambda name: f"/bin/{name}")

    return asking


def varied(name: str, levels: str = "[0, 1]") -> str:
    return f'name = "{name}"\nlevels = {levels}'


def saw(study: ResolvedStudy, **seen: Any) -> list[tuple[str, str]]:
    return [
        (no_chance.factor, no_chance.saw) for no_chance in factors_without_chance(study, catalogue(), Activity(**seen))
    ]


def test_without_swap_swappiness_has_no_chance(resolve_study: Asked) -> None:
    reasons = saw(resolve_study(varied("vm.swappiness", "[10, 60]")), figures={"meminfo:SwapTotal": 0, **STILL})
    assert reasons == [("vm.swappiness", "no swap is on")]


def test_with_swap_it_has_none_if_nothing_was_reclaimed_and_one_if_something_was(resolve_study: Asked) -> None:
    study = resolve_study(varied("vm.swappiness", "[10, 60]"))
    assert saw(study, figures={**SWAP, **STILL}) == [
        ("vm.swappiness", "memory never became short: no page was scanned for reclaim")
    ]
    assert saw(study, figures={**SWAP, **STILL, "vmstat:pgscan_direct": 1}) == []


def test_what_cannot_be_read_says_nothing(resolve_study: Asked) -> None:
    assert saw(resolve_study(varied("vm.swappiness", "[10, 60]"))) == []
    without_the_first = {"vmstat:pgscan_kswapd": 0, "vmstat:pgscan_direct": 0}
    assert saw(resolve_study(varied("vm.swappiness", "[10, 60]")), figures={**SWAP, **without_the_first}) == []


def test_facts_and_files_tell_too(resolve_study: Asked) -> None:
    assert saw(resolve_study(varied("sched_migration_cost_ns", "[0, 500000]")), facts={"cpus": 1}) == [
        ("sched_migration_cost_ns", "there is one CPU only")
    ]
    overcommit = resolve_study(varied("vm.overcommit_ratio", "[50, 80]"))
    assert saw(overcommit, files={"/proc/sys/vm/overcommit_memory": "0"})[0][1] == "vm.overcommit_memory is not 2"
    assert saw(overcommit, files={"/proc/sys/vm/overcommit_memory": "2"}) == []


def test_a_file_that_the_trials_write_says_nothing(resolve_study: Asked) -> None:
    study = resolve_study(varied("vm.overcommit_ratio", "[50, 80]"), varied("vm.overcommit_memory", "[2]"))
    assert saw(study, files={"/proc/sys/vm/overcommit_memory": "0"}) == []


def test_a_disk_whose_counters_the_trials_turn_off_says_nothing(resolve_study: Asked) -> None:
    still = {"diskstats:sda.reads_completed": 0}
    assert len(saw(resolve_study(varied("block.nr_requests[sda]", "[64, 128]")), figures=still)) == 1
    fixed = varied("block.iostats[sda]", "[0]")
    assert saw(resolve_study(varied("block.nr_requests[sda]", "[64, 128]"), fixed), figures=still) == []


def test_functions_that_never_ran_are_the_stronger_reason(resolve_study: Asked) -> None:
    study = resolve_study(varied("net.ipv4.tcp_sack"))
    functions = frozenset(catalogue().conditions["tcp"].functions)
    (no_chance,) = factors_without_chance(study, catalogue(), Activity(ran=frozenset(), has=functions))
    assert no_chance.never_ran == catalogue().conditions["tcp"].functions
    assert "The kernel never ran the code that reads it" in no_chance.note
    assert saw(study, ran=frozenset({"tcp_connect"}), has=functions) == []
    assert saw(study, ran=frozenset(), has=functions - {"tcp_connect"}) == [], "one may have another name there"
    assert saw(study, ran=None, has=functions) == []


def test_a_little_waiting_leaves_hardly_a_chance(resolve_study: Asked) -> None:
    study = resolve_study(varied("base_slice_ns", "[1000000, 3000000]"))
    (no_chance,) = factors_without_chance(study, catalogue(), Activity({"schedstat:cpu.wait_ns": 9e6}, seconds=1.0))
    assert no_chance.hardly
    assert no_chance.sentence == (
        "base_slice_ns had hardly a chance to matter: tasks waited for a CPU for less than 1 % of the time"
    )
    assert saw(study, figures={"schedstat:cpu.wait_ns": 2e7}, seconds=1.0) == []


def test_several_settings_have_no_chance_only_if_none_of_them_has(resolve_study: Asked) -> None:
    settings = '[factor.settings.a]\n"vm.swappiness" = 10\n"{}" = {}\n[factor.settings.b]\n'
    both = f'name = "both"\nlevels = ["a", "b"]\n{settings}'
    other = both.format("vm.overcommit_memory", 0)
    alike = both.format("vm.page-cluster", 3)
    swap = {"meminfo:SwapTotal": 0}
    assert saw(resolve_study(other), figures=swap) == []
    assert saw(resolve_study(alike), figures=swap) == [("both", "no swap is on")]


def test_only_standing_conditions_are_told_before_measuring(resolve_study: Asked) -> None:
    study = resolve_study(varied("vm.swappiness", "[10, 60]"))
    before = Activity({"meminfo:SwapTotal": 1 << 30, **STILL})
    assert factors_without_chance(study, catalogue(), before, standing=True) == ()
    (no_chance,) = factors_without_chance(study, catalogue(), Activity({"meminfo:SwapTotal": 0}), standing=True)
    assert no_chance.warning.startswith("vm.swappiness cannot matter here: no swap is on. To see an effect, turn")


def test_counters_are_compared_and_levels_are_as_high_as_they_were() -> None:
    before = {"vmstat:pswpin": 5, "meminfo:SwapTotal": 100, "vmstat:nr_dirtied": 9, "snmp:Tcp.OutSegs": 1}
    after = {"vmstat:pswpin": 7, "meminfo:SwapTotal": 0, "vmstat:nr_dirtied": 8, "vmstat:new": 1, "snmp:Tcp.OutSegs": 1}
    assert difference(before, after) == {
        "vmstat:pswpin": 2,
        "meminfo:SwapTotal": 100,
        "vmstat:nr_dirtied": 1,
        "snmp:Tcp.OutSegs": 0,
    }


def test_trials_together_have_moved_what_any_of_them_has() -> None:
    first = Activity({"vmstat:pswpin": 0}, 1.0, ran=frozenset("a"), has=frozenset("ab"))
    second = Activity({"vmstat:pswpin": 2}, 2.0, ran=frozenset("b"), has=frozenset("bc"))
    both = first.with_more(second)
    assert (both.figures, both.seconds) == ({"vmstat:pswpin": 2}, 3.0)
    assert (both.ran, both.has) == (frozenset("ab"), frozenset("b"))
    assert first.with_more(Activity()).ran is None


def test_only_if_nothing_that_varies_had_a_chance_it_explains_all() -> None:
    factors = [Factor(name=name, levels=("0", "1"), baseline="0") for name in "ab"]
    fixed = Factor(name="c", levels=("0",), baseline="0")
    a, b = (NoChance(factor=name, saw="x") for name in "ab")
    assert explains_all([a, b], [*factors, fixed]) == (a, b)
    assert explains_all([a], factors) == ()
    assert explains_all([a, b.model_copy(update={"hardly": True})], factors) == ()
    assert explains_all([], [fixed]) == ()


def test_a_verdict_that_is_certain_refutes_it(resolve_study: Asked) -> None:
    study = resolve_study(varied("vm.swappiness", "[10, 60]"))
    claims = (NoChance(factor="vm.swappiness", saw="no swap is on"),)
    undecided = verdict("vm.swappiness=60", "undecided").model_copy(update={"more_blocks": 1804})
    assert unrefuted(claims, [undecided], study) == claims
    assert unrefuted(claims, [verdict("vm.swappiness=60", "worsens")], study) == ()
    assert [verdict.more_blocks for verdict in without_more_blocks([undecided], claims, study)] == [None]
    assert [verdict.more_blocks for verdict in without_more_blocks([undecided], (), study)] == [1804]
