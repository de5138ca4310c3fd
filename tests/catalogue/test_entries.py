"""The entries themselves: complete, consistent with each other and, for the workloads, with the real programs."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatchcase
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import get_args

import pytest

from ajuste.catalogue.level import check_level
from ajuste.catalogue.loader import catalogue, load
from ajuste.catalogue.place import kernels
from ajuste.model.cause import CAUSES, Cause
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable
from ajuste.model.workload import ServiceKind, WorkloadKind
from ajuste.outputs.programs import parsers
from looped import each
from workloads import run_workload

TUNABLES = list(catalogue().tunables.values())
WORKLOADS = load(files("ajuste.catalogue") / "workloads", "workload", WorkloadKind)
RUNNING_KINDS = [kind for kind in WORKLOADS.values() if not kind.endless]


def every_version() -> list[KernelVersion]:
    majors = {5: range(10, 20), 6: range(20), 7: range(4)}
    return [KernelVersion(major=major, minor=minor) for major, minors in majors.items() for minor in minors]


@each(TUNABLES, name=attrgetter("name"))
def test_a_reference_to_another_tunable_names_one_that_there_is(tunable: Tunable) -> None:
    names = [name for name in tunable.see if "(" not in name]
    names += [name for name in (tunable.successor, tunable.predecessor) if name]
    assert [name for name in names if name not in catalogue().tunables] == []
    assert tunable.name not in names


@each(TUNABLES, name=attrgetter("name"))
def test_every_entry_explains_itself_in_whole_sentences(tunable: Tunable) -> None:
    for text in (tunable.what, tunable.risk_note, tunable.removed, *(where.note for where in tunable.where)):
        assert text == text.strip()
        assert not text or text.endswith((".", ":"))
        assert "  " not in text
    assert len(tunable.what) > 60
    assert tunable.default
    assert tunable.source.startswith(("kernel/", "mm/", "fs/", "block/", "net/", "drivers/", "lib/", "ipc/", "arch/"))


@each([t for t in TUNABLES if t.successor], name=attrgetter("name"))
def test_a_successor_can_take_the_levels_and_is_there_when_its_forerunner_is_gone(tunable: Tunable) -> None:
    assert tunable.successor is not None
    heir = catalogue().tunables[tunable.successor]
    assert (heir.type, heir.unit) == (tunable.type, tunable.unit)
    assert (heir.minimum, heir.maximum) == (tunable.minimum, tunable.maximum)
    gone = [version for version in every_version() if not tunable.place_in(version)]
    assert gone
    assert all(catalogue().counterpart(tunable, version) for version in gone)


@each(TUNABLES, name=attrgetter("name"))
def test_what_went_says_why_and_what_is_there_does_not(tunable: Tunable) -> None:
    assert bool(tunable.removed) == (tunable.where[-1].before is not None)
    if tunable.removed:
        assert re.search(r"\d\.\d+", tunable.removed)


@each(TUNABLES, name=attrgetter("name"))
def test_initial_special_and_per_kernel_values_are_levels_that_can_be_asked_for(tunable: Tunable) -> None:
    for where in tunable.where:
        for value in (where.initial, *where.choices):
            assert not value or check_level(tunable, value) == value
    for word in tunable.special:
        value = " ".join([word] * (tunable.count or 1))
        assert check_level(tunable, value) == value


@each(TUNABLES, name=attrgetter("name"))
def test_levels_worth_trying_are_valid_in_every_kernel_that_has_it_and_none_is_always_the_default(
    tunable: Tunable,
) -> None:
    places = [(tunable.place_in(version), version) for version in every_version()]
    initial = [where.initial for where, _ in places if where]
    for text in tunable.tries:
        levels = [check_level(tunable, text, version) for where, version in places if where]
        assert levels != initial
    values = [check_level(tunable, text) for text in tunable.tries]
    assert len(set(values)) == len(values)


def test_of_what_can_hang_the_machine_only_harmless_levels_are_worth_trying() -> None:
    assert {tunable.name: tunable.tries for tunable in TUNABLES if tunable.risk == "hang" and tunable.tries} == {
        "ext_server_runtime_ns": ("10ms", "100ms"),
        "fair_server_runtime_ns": ("10ms", "100ms"),
        "lru_gen.min_ttl_ms": ("1s",),
        "policy": ("batch",),
    }


def test_most_of_the_catalogue_says_what_it_acts_on_and_every_cause_has_settings() -> None:
    acting = [tunable for tunable in TUNABLES if tunable.acts_on]
    assert len(acting) > 350
    assert len([tunable for tunable in acting if tunable.tries]) > 280
    assert {cause for tunable in acting for cause in tunable.acts_on} == set(get_args(Cause)) == set(CAUSES)


@each([kind for kind in catalogue().services.values() if kind.running], name=attrgetter("name"))
def test_the_facts_of_a_servers_settings_are_of_settings_that_vary(kind: ServiceKind) -> None:
    assert [pattern for pattern in kind.acts_on if not any(matching(pattern, other) for other in kind.running)] == []
    for name, levels in kind.tries.items():
        tunable = catalogue().find_tunable(f"{kind.name}.{name}")
        assert (tunable.tries, tunable.risk) == (levels, "none")
        assert tunable.acts_on
        assert [check_level(tunable, level) for level in levels]


def matching(pattern: str, other: str) -> bool:
    return fnmatchcase(other, pattern) or fnmatchcase(pattern, other)


def test_there_is_one_entry_a_path_and_flag_in_every_kernel() -> None:
    for version in every_version():
        places = [(w.kind, w.path, w.flag, w.attribute) for t in TUNABLES if (w := t.place_in(version))]
        assert len(places) == len(set(places)), version


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sched_min_granularity_ns", "up to 6.5"),
        ("idle_min_granularity_ns", "5.16 to 6.5"),
        ("base_slice_ns", "6.6 and later"),
        ("sched_feat_hz_bw", "6.6 to 6.11"),
        ("sched_feat_ni_random", "6.1, 6.12, 6.18 and later"),
        ("nice", "all"),
    ],
)
def test_kernels_are_said_in_words(name: str, words: str) -> None:
    assert kernels(catalogue().tunables[name]) == words


def test_every_file_of_the_catalogue_was_read() -> None:
    for folder, table, entries in (
        ("tunables", "tunable", catalogue().tunables),
        ("workloads", "workload", WORKLOADS),
    ):
        named = [
            entry["name"]
            for file in (files("ajuste.catalogue") / folder).iterdir()
            for entry in tomllib.loads(file.read_text())[table]
        ]
        assert sorted(named) == sorted(entries)


def test_the_metrics_are_those_that_the_design_names() -> None:
    assert set(catalogue().metrics) == {
        *("elapsed", "task-clock", "user-time", "system-time", "cpus-utilized", "peak-rss"),
        *("voluntary-switches", "involuntary-switches", "context-switches", "cpu-migrations"),
        *("minor-faults", "major-faults", "page-faults"),
        *("cycles", "instructions", "ipc", "cache-references", "cache-misses", "branches", "branch-misses"),
    }
    for metric in catalogue().metrics.values():
        assert metric.what.endswith(".")
        # Counts can be 0, and then there is no ratio.
        assert metric.scale == "difference" or metric.resolution != 1 or metric.name in ("cycles", "instructions")


ASKED_FOR = {"linpack": {"interrupts": "1"}}
"""Parameters without which some metrics are not measured."""


@pytest.mark.parametrize("kind", RUNNING_KINDS, ids=lambda kind: kind.name)
def test_the_real_program_takes_the_defaults_and_its_parser_gives_the_metrics(
    kind: WorkloadKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {metric.name for metric in kind.metrics}
    monkeypatch.chdir(tmp_path)
    assert run_workload(kind, ASKED_FOR.get(kind.name, {}), leaves=()) == expected


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        (name, choice)
        for name, parameter in catalogue().workloads["hackbench"].parameters.items()
        for choice in parameter.choices
    ],
)
def test_hackbench_takes_every_choice(name: str, choice: str) -> None:
    kind = catalogue().workloads["hackbench"]
    assert run_workload(kind, {"groups": "1", "loops": "2", "fds": "2", name: choice}) == {"hackbench.time"}


def test_every_parser_belongs_to_a_workload() -> None:
    assert set(parsers()) == {kind.parser for kind in catalogue().workloads.values() if kind.parser}
