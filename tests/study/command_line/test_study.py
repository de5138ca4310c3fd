"""The way from the options of ``ajuste compare`` to a study."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.saving import study_text
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.study.command_line.request import Request, split_commands
from ajuste.study.command_line.study import adhoc_document, adhoc_study, settings
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study

VERSIONS = {"debian:5.10": (5, 10), "debian:6.1": (6, 1), "debian:6.12": (6, 12)}


def ask(*words: str, **options: Any) -> Study:
    request = Request(split_commands(words), **{"vm": True, **options})
    return adhoc_study(request, catalogue(), parse_kernel=parse_spec)


def resolved(*words: str, **options: Any) -> ResolvedStudy:
    kernels = {spec: KernelVersion(major=a, minor=b) for spec, (a, b) in VERSIONS.items()}
    return resolve(ask(*words, **options), catalogue(), kernels, lambda name: f"/bin/{name}")


def names(*words: str, **options: Any) -> tuple[str, ...]:
    return resolved(*words, **options).names


def test_without_options_one_command_is_described() -> None:
    study = ask("sleep", "0.1")
    assert study.factors == ()
    assert study.analysis.metrics == ("elapsed",)
    assert (study.target.kind, study.target.clock, study.target.kernel) == ("vm", "virtual", "debian:6.12")
    assert study.question == "How does sleep 0.1 perform?"


def test_on_the_host_it_warms_up_and_takes_ten_runs_and_three_seconds_at_least() -> None:
    study = ask("sleep", "0.1", vm=False)
    assert study.target.kind == "host"
    assert (study.design.warm_up, study.budget.min_blocks, study.budget.min_seconds) == (1, 10, 3.0)


def test_several_commands_are_compared_with_the_first() -> None:
    study = resolved("sleep", "1", "--", "sleep", "2", "--", "true")
    assert study.names == ("sleep 1", "sleep 2", "true")
    assert [c.workload.argv for c in study.configurations] == [("/bin/sleep", "1"), ("/bin/sleep", "2"), ("/bin/true",)]
    assert study.configurations[0].configuration.baseline
    assert ask("true", "--", "true").factors[0].levels == ("true", "true (2)"), "a command can be compared with itself"


def test_many_settings_are_screened_with_few_combinations_of_them() -> None:
    many = tuple(f"{name}={low},{high}" for name, low, high in MANY)
    study = resolved("linpack", set=many, screen=True)
    assert len(study.configurations) == 16
    assert study.study.design.combine == "screening"
    assert study.configurations[0].configuration.baseline
    assert all(len({c.configuration.levels[f.name] for c in study.configurations}) == 2 for f in study.factors)
    with pytest.raises(RequestError, match=r"--set nice=0,5,10: nice has 3 levels; screening requires two levels"):
        ask("linpack", set=(*many, "nice=0,5,10"), screen=True)
    with pytest.raises(RequestError, match=r"--screen: screening is for 5 factors or more"):
        ask("linpack", set=many[:2], screen=True)
    with pytest.raises(RequestError, match=r"--screen and --one-at-a-time: these options are mutually exclusive"):
        ask("linpack", set=many, screen=True, one_at_a_time=True)


MANY = (
    ("base_slice_ns", "3ms", "12ms"),
    ("vm.swappiness", "60", "10"),
    ("vm.dirty_ratio", "20", "40"),
    ("vm.dirty_background_ratio", "10", "5"),
    ("vm.vfs_cache_pressure", "100", "50"),
)


def test_levels_of_several_options_make_every_combination_or_one_at_a_time() -> None:
    options: Any = {"set": ("sched_min_granularity_ns=1ms,2ms",), "nice": "0,10", "kernel": "debian:5.10"}
    assert names("linpack", **options) == (
        "sched_min_granularity_ns=1000000 nice=0",
        "sched_min_granularity_ns=1000000 nice=10",
        "sched_min_granularity_ns=2000000 nice=0",
        "sched_min_granularity_ns=2000000 nice=10",
    )
    assert names("linpack", one_at_a_time=True, **options) == (
        "sched_min_granularity_ns=1000000 nice=0",
        "sched_min_granularity_ns=2000000 nice=0",
        "sched_min_granularity_ns=1000000 nice=10",
    )


def test_single_levels_alone_are_compared_with_the_machine_as_it_is() -> None:
    study = resolved("linpack", set=("sched_min_granularity_ns=2ms",), nice="5", kernel="debian:5.10")
    assert study.names == ("as it is", "sched_min_granularity_ns=2ms nice=5")
    plain, changed = study.configurations
    assert plain.configuration.baseline
    assert (plain.writes, plain.workload.attributes.nice) == ((), None)
    assert ([w.value for w in changed.writes], changed.workload.attributes.nice) == (["2000000"], 5)


def test_a_single_level_beside_others_is_the_same_everywhere() -> None:
    study = resolved("true", "--", "false", nice="5")
    assert [c.workload.attributes.nice for c in study.configurations] == [5, 5]
    assert study.names == ("true", "false")


def test_kernels_are_a_factor_or_the_place_to_run() -> None:
    assert ask("true", kernel="debian:6.1", vm=False).target.kernel == "debian:6.1"
    study = ask("true", kernel="debian:6.1,debian:6.12", vm=False)
    assert (study.kernels, study.target.kernel) == (("debian:6.1", "debian:6.12"), None)


def test_lists_of_cpus_have_a_plus_and_the_guest_gets_the_cpus_it_needs() -> None:
    study = resolved("linpack", cpus="0,0+2,0-1")
    assert [c.workload.attributes.affinity for c in study.configurations] == [(0,), (0, 2), (0, 1)]
    assert study.study.target.cpus == 3
    assert ask("linpack", cpus="1").target.cpus == 2


def test_a_workload_of_the_catalogue_brings_its_metric() -> None:
    assert ask("linpack").analysis.metrics == ("elapsed", "linpack.kflops")  # no waiting shows in kflop/s of CPU time
    assert ask("hackbench", "groups=2").analysis.metrics == ("hackbench.time", "elapsed")
    assert ask("jitter").analysis.metrics == ("jitter.p99", "elapsed")
    assert ask("linpack", metric=("task-clock",)).analysis.metrics == ("task-clock",)


def test_metrics_loads_and_commands_around_are_those_of_the_study() -> None:
    study = ask(
        "true",
        metric=("rate,MB/s,higher=regex:(.*) MB", "elapsed"),
        background=("spin", "dd if=/dev/zero of=/dev/null"),
        setup="mkdir x",
        prepare="sync",
        cleanup="rmdir x",
        ignore_failure=True,
    )
    assert study.analysis.metrics == ("rate", "elapsed")
    assert study.workload.metrics[0].unit == "MB/s"
    assert [(load.kind, load.command) for load in study.workload.background] == [
        ("spin", None),
        (None, ("dd", "if=/dev/zero", "of=/dev/null")),
    ]
    assert (study.workload.setup, study.workload.prepare) == (("mkdir", "x"), ("sync",))
    assert study.workload.ignore_failure


def test_amounts_become_the_budget() -> None:
    study = ask(
        "true",
        min_effect="1%",
        confidence="99%",
        max_time="90s",
        blocks="7..70",
        warm_up=2,
        timeout="5m",
        seed=3,
        name="mine",
        memory="1GiB",
        clock="wall",
    )
    assert (study.analysis.smallest_effect, study.analysis.confidence) == (0.01, 0.99)
    assert (study.budget.min_blocks, study.budget.max_blocks, study.budget.max_minutes) == (7, 70, 1.5)
    assert (study.design.warm_up, study.design.seed, study.workload.timeout_s, study.name) == (2, 3, 300, "mine")
    assert (study.target.memory_mib, study.target.clock) == (1024, "wall")


@pytest.mark.parametrize("text", ["10", "nice=10"])
def test_any_level_can_be_the_baseline(text: str) -> None:
    study = resolved("linpack", nice="0,10", baseline=(text,))
    assert [c.configuration.baseline for c in study.configurations] == [False, True]


def test_the_saved_file_is_the_same_study(tmp_path: Any) -> None:
    request = Request(
        split_commands(("dd", "if=/dev/zero", "--", "sleep", "1")),
        kernel="debian:5.10",
        nice="0,10",
        set=("sched_min_granularity_ns=750us",),
        background=("spin",),
        prepare="sync",
        metric=("rate,higher=json:/a~1b", "elapsed"),
    )
    document, _ = adhoc_document(request, catalogue())
    path = tmp_path / "saved.toml"
    path.write_text(study_text(document, "ajuste compare …\nkind = 'host'"))
    read = read_study(path, parse_kernel=parse_spec)
    assert read.model_dump() == adhoc_study(request, catalogue(), parse_kernel=parse_spec).model_dump()


def test_no_factor_is_saved_too(tmp_path: Any) -> None:
    document, _ = adhoc_document(Request((("true",),)), catalogue())
    (tmp_path / "saved.toml").write_text(study_text(document, "ajuste compare -- true"))
    assert read_study(tmp_path / "saved.toml").factors == ()


def test_loads_have_copies_and_say_when_they_are_ready() -> None:
    words = ("3x spin", "sh -c '10x true'", "cat --show-all", "spin")
    ready = ("settled", "log:up and running", "command:test -e there", "none")
    loads = ask("true", background=words, background_ready=ready).workload.background
    assert [load.count for load in loads] == [3, 1, 1, 1]
    assert [load.command for load in loads] == [None, ("sh", "-c", "10x true"), ("cat", "--show-all"), None]
    assert [load.ready for load in loads] == ["settled", "log:up and running", ("test", "-e", "there"), "none"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown tunable": (
        {"set": ("sched_min_granularty_ns=1,2",)},
        r"^--set sched_min_granularty_ns=1,2: tunable 'sched_min_granularty_ns' not found",
    ),
    "level out of range": ({"nice": "0,40"}, r"^--nice 0,40: nice = 40 is out of range"),
    "level given twice": ({"nice": "5,5"}, r'^--nice 5,5: the level "5" is given twice'),
    "missing level": ({"nice": "5,"}, r"^--nice 5,: found an empty level between commas"),
    "no level": ({"set": ("nice",)}, r"^--set nice: expected NAME=LEVEL or NAME=LEVEL,LEVEL"),
    "one thing in two options": (
        {"nice": "0", "set": ("nice=1",)},
        r"^--nice 0: nice is given twice; the first is --set nice=1",
    ),
    "unknown policy": ({"policy": "other,batsh"}, r"^--policy other,batsh: policy = 'batsh': expected one of"),
    "no list of CPUs": ({"cpus": "0,x"}, r"^--cpus 0,x: affinity = 'x' is not a list of CPUs"),
    "a CPU that no guest has": ({"cpus": "0,99", "vm": True}, r"^CPU 99 is not available; expected CPUs among 0-15"),
    "unknown kernel": ({"kernel": "debian:4.4"}, r"^--kernel debian:4.4: .*5.10"),
    "unknown clock": ({"clock": "sun"}, r"^--clock sun: found \"sun\"; expected 'virtual' or 'wall'"),
    "unknown metric": ({"metric": ("elapsd",)}, r'^--metric elapsd: metric "elapsd" not found; did you mean elapsed'),
    "not a regular expression": (
        {"metric": ("a,none=regex:(",)},
        r"^--metric a,none=regex:\(: not a regular expression",
    ),
    "no pointer": ({"metric": ("a,none=json:a",)}, r'^--metric a,none=json:a: "a" is not a JSON pointer'),
    "a metric of a known name": (
        {"metric": ("elapsed,none=json:/a",)},
        r'^--metric .*the metric "elapsed" already exists',
    ),
    "no load to wait for": (
        {"background_ready": ("settled",)},
        r"^--background-ready settled: found 1 --background-ready for 0 --background; expected one for each, or none",
    ),
    "an unknown way to be ready": (
        {"background": ("spin",), "background_ready": ("soon",)},
        r"^--background-ready soon: .*settled",
    ),
    "no copies": ({"background": ("0x spin",)}, r"^--background 0x spin: "),
    "unknown load": ({"background": ("spin threads=2",)}, r'^--background spin threads=2: "spin" has no parameter'),
    "no baseline": ({"nice": "0,5", "baseline": ("7",)}, r"^--baseline 7: expected one of the levels \(nice: 0, 5\)"),
    "a baseline of nothing": ({"baseline": ("7",)}, r"^--baseline 7: expected no --baseline"),
    "an empty name": ({"name": "Mine!"}, r"^--name Mine!: .*expected text that matches"),
    "blocks": ({"blocks": "many"}, r"^--blocks many: expected a number of blocks"),
    "effect": ({"min_effect": "0%"}, r"^--min-effect 0%: "),
    "confidence": ({"confidence": "120%"}, r"^--confidence 120%: "),
    "a file that is not there": ({"file": ("no.txt",)}, r'^--file no.txt: file "no.txt" not found'),
    "a guest's clock on the host": ({"vm": False, "clock": "virtual"}, r"^--clock: applies only to guests"),
    "an endless workload": ({}, r'^spin: "spin" never ends'),
}


@pytest.mark.parametrize(("options", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_with_the_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        ask("true" if options else "spin", **options)
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "the command to measure is missing"),
        (("true", "--"), "the command after one of the -- is missing"),
        (("linpack", "--", "true"), "linpack is a workload of the catalogue; when comparing several commands"),
    ],
)
def test_commands_that_are_missing_are_told(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        ask(*words)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(RequestError) as caught:
        ask("true", nice="0,40", metric=("elapsd",))
    assert "--nice 0,40" in str(caught.value)
    assert "--metric elapsd" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("2ms..10ms:3", (2, 6, 10)),
        ("1ms..16ms:5:log", (1, 2, 4, 8, 16)),
        ("1ms..16ms:log:5", (1, 2, 4, 8, 16)),
        ("1ms..8ms:step=3ms", (1, 4, 7)),
    ],
)
def test_a_range_as_levels(text: str, levels: tuple[int, ...]) -> None:
    study = ask("hackbench", kernel="debian:5.10", set=(f"sched_min_granularity_ns={text}",), baseline=())
    assert study.factors[0].levels == tuple(str(level * 1_000_000) for level in levels)
    assert "sched_min_granularity_ns" in study.question


@pytest.mark.parametrize("file", ["../a", "a..b", "../..", "/data/..x"])
def test_a_file_whose_name_has_two_dots_is_no_range(file: str) -> None:
    (setting,) = settings(Request((("fio",),), set=(f"workload.file={file}",)), catalogue())
    assert setting.levels == (file,)
    assert setting.table["levels"] == [file]


def test_one_of_the_levels_of_a_range_can_be_the_baseline() -> None:
    chosen = ("sched_min_granularity_ns=6ms",)
    study = resolved("hackbench", kernel="debian:5.10", set=("sched_min_granularity_ns=2ms..10ms:3",), baseline=chosen)
    assert study.baseline == "sched_min_granularity_ns=6000000"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9ms..2ms", "a reversed range"),
        ("2ms..9ms:fast", 'found "fast" after a range'),
        ("2ms..9ms:3:4", 'found "4"'),
        ("2ms..9ms:1", "found 1"),
    ],
)
def test_a_wrong_range_names_the_option(text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        ask("hackbench", kernel="debian:5.10", set=(f"sched_min_granularity_ns={text}",))
    assert "--set sched_min_granularity_ns" in str(caught.value.place)
