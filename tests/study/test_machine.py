"""A study that names a machine to model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.outputs.base import MODELLED_METRICS
from ajuste.study.command_line.request import Request, split_commands
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.overrides import with_machine
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy, fingerprint
from ajuste.study.schema import Study

STUDY = """
schema = 1
name = "cache"
factor = []
workload = {{ kind = "matrix" }}
target = {{ {target} }}
analysis = {{ metrics = [{metrics}] }}
"""
OWN = """
[[machine]]
name = "own"
title = "a machine of mine"
sources = ["me"]
cores = 1
frequency_mhz = 1000
instructions_per_cycle = 1
memory_ns = 50
walk_cycles = 10
l1i = { size_kib = 8, ways = 2 }
l1d = { size_kib = 8, ways = 2 }
itlb = { entries = 8 }
dtlb = { entries = 8 }
"""


def read(folder: Path, metrics: str = '"l1d-misses"', target: str = 'machine = { model = "textbook" }') -> Study:
    file = folder / "study.toml"
    file.write_text(STUDY.format(metrics=metrics, target=f'kernel = "debian:5.10", {target}'.rstrip(", ")))
    return read_study(file, catalogue(), parse_kernel=parse_spec)


def ask(**options: Any) -> Study:
    request = Request(split_commands(("matrix",)), **{"vm": True, "kernel": "debian:5.10", **options})
    return adhoc_study(request, catalogue(), parse_kernel=parse_spec)


def resolved(study: Study) -> ResolvedStudy:
    return resolve(study, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")


def test_its_metrics_are_those_of_the_model(tmp_path: Path) -> None:
    study = resolved(read(tmp_path))
    assert study.modelled == study.machine_of_trials == catalogue().machines["textbook"]
    assert study.counts_instructions
    (deciding,) = study.deciding
    assert deciding.title == "L1 data cache misses (modelled)"
    described = {metric.name: metric for metric in study.described}
    assert {deciding.name, *described} >= set(MODELLED_METRICS)
    assert all(metric.title.endswith("(modelled)") for name, metric in described.items() if name in MODELLED_METRICS)


def test_a_guest_with_the_machines_time_has_other_trials(tmp_path: Path) -> None:
    timed = resolved(read(tmp_path, '"elapsed"', 'time = "modelled", machine.model = "textbook"'))
    other = resolved(read(tmp_path, '"elapsed"', 'time = "modelled", machine.model = "zen4-8c"'))
    without = resolved(read(tmp_path, '"elapsed"', 'machine.model = "textbook"'))
    assert timed.paced_by == timed.machine_of_trials == catalogue().machines["textbook"]
    assert not timed.counts_instructions
    assert len({fingerprint(timed), fingerprint(other), fingerprint(without)}) == 3
    assert without.paced_by is None
    assert "time" not in without.study.target.model_dump()


def test_trials_that_need_no_model_are_as_without_one(tmp_path: Path) -> None:
    without, named = (resolved(read(tmp_path, '"elapsed"', target)) for target in ("", 'machine.model = "textbook"'))
    assert fingerprint(without) == fingerprint(named)
    assert (without.modelled, named.machine_of_trials) == (None, None)
    assert named.modelled is not None
    assert "modelled" not in without.model_dump_json()
    assert "machine" not in without.study.target.model_dump()
    other = resolved(read(tmp_path, target='machine.model = "zen4-8c"'))
    assert fingerprint(resolved(read(tmp_path))) != fingerprint(other)


def test_a_file_of_ones_own_is_as_good(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN)
    study = resolved(read(tmp_path, target='machine.model = "./own.toml"'))
    assert study.modelled is not None
    assert (study.modelled.name, study.modelled.llc) == ("own", None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[[machine]", "not valid TOML"),
        (b"", "describes 0 machines; expected one"),
        (b"[[machine]]\nname = 'x'\n", "Field required"),
        (OWN.replace("size_kib = 8, ways = 2 }\nl1d", "size_kib = 6, ways = 2 }\nl1d").encode(), "l1i: it has 48 sets"),
        (OWN.replace("cores = 1", "cores = 1\nflavour = 3").encode(), "flavour"),
    ],
)
def test_a_file_that_describes_no_machine_is_one_clear_error(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / "own.toml").write_bytes(content)
    with pytest.raises(RequestError) as refused:
        read(tmp_path, target='machine.model = "own.toml"')
    assert words in str(refused.value)
    assert "own.toml" in str(refused.value)
    with pytest.raises(RequestError, match=r"own\.toml"):
        ask(machine=str(tmp_path / "own.toml"))


@pytest.mark.parametrize(
    ("metrics", "target", "words"),
    [
        ('"l1d-misses"', "", '"l1d-misses" requires a modelled machine'),
        ('"elapsed"', 'machine.model = "zen5"', "machine 'zen5' not found"),
        ('"l1d-misses"', 'machine.model = "textbook", clock = "wall"', "only in a guest with the virtual clock"),
        ('"l1d-misses"', 'machine.model = "textbook", cpus = 2', "it has 1 core, the guest 2 CPUs"),
        ('"elapsed"', "machine = {}", "model"),
        ('"elapsed"', "turn_us = 5", "turn_us requires the virtual clock and at least 2 cpus"),
        ('"elapsed"', 'turn_us = 5, cpus = 2, clock = "wall"', "turn_us requires the virtual clock"),
        ('"elapsed"', "turn_us = 0, cpus = 2", "turn_us"),
        ('"elapsed"', "parallel = true", "parallel requires the virtual clock and at least 2 cpus"),
        ('"elapsed"', 'parallel = true, cpus = 2, clock = "wall"', "parallel requires the virtual clock"),
        ('"elapsed"', "parallel = true, cpus = 17", "16"),
        ('"elapsed"', 'machine.model = "textbook", machine.sockets = 2', "sockets"),
        ('"elapsed"', 'time = "modelled"', 'time = "modelled" requires the virtual clock and a machine to model'),
        ('"elapsed"', 'time = "modelled", machine.model = "textbook", clock = "wall"', "requires the virtual clock"),
        (
            '"elapsed"',
            'time = "modelled", machine.model = "zen4-8c", cpus = 2, parallel = false',
            "conflicts with parallel = false",
        ),
    ],
)
def test_what_cannot_be_modelled_is_refused(tmp_path: Path, metrics: str, target: str, words: str) -> None:
    with pytest.raises(RequestError) as refused:
        read(tmp_path, metrics, target)
    assert words in str(refused.value)
    assert refused.value.exit_code == 2


def test_a_metric_without_a_machine_names_the_option_and_all_machines(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as refused:
        read(tmp_path, target="")
    assert refused.value.hint is not None
    assert "--machine NAME" in refused.value.hint
    assert all(name in refused.value.hint for name in catalogue().machines)


def test_on_the_command_line_the_modelled_time_decides_where_nothing_else_is_named() -> None:
    assert ask(machine="zen4-8c").analysis.metrics[-1] == "modelled-time"
    assert ask(machine="zen4-8c", metric=("llc-misses",)).analysis.metrics == ("llc-misses",)
    with pytest.raises(RequestError, match="--machine zen5"):
        ask(machine="zen5")
    with pytest.raises(RequestError, match="applies only to guests"):
        ask(machine="zen4-8c", vm=False, kernel=None)


def test_a_study_that_names_what_it_describes_describes_the_modelled_time_too(tmp_path: Path) -> None:
    for table, described in (
        ('metrics = ["elapsed"], describe = ["page-faults"]', ("page-faults", "modelled-time")),
        ('metrics = ["modelled-time"], describe = ["page-faults"]', ("page-faults",)),
        ('metrics = ["elapsed"]', None),
    ):
        (tmp_path / "cache.toml").write_text(
            'schema = 1\nname = "cache"\nfactor = []\nworkload = { kind = "matrix" }\n'
            f'target = {{ kernel = "debian:6.1", machine = {{ model = "textbook" }} }}\nanalysis = {{ {table} }}\n'
        )
        study = read_study(tmp_path / "cache.toml", catalogue(), parse_kernel=parse_spec)
        assert with_machine(study, "zen4-8c", catalogue()).analysis.describe == described


def test_a_study_gets_another_machine(tmp_path: Path) -> None:
    study = read(tmp_path)
    assert resolved(with_machine(study, "zen4-8c", catalogue())).modelled == catalogue().machines["zen4-8c"]
    with pytest.raises(RequestError, match="--machine zen5: machine 'zen5' not found"):
        with_machine(study, "zen5", catalogue())
