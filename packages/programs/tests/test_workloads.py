"""The workloads, with the real programs."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue, load
from ajuste.model.plugins import problems
from ajuste.model.workload import WorkloadKind
from ajuste.outputs.programs import parser
from tiers import slow
from workloads import printed, run_workload

FOLDER = files("ajuste_programs") / "workloads"
KINDS = load(FOLDER, "workload", WorkloadKind)
LONG = ("fio", "fio-patterns", "glxgears", "h2load", "pgbench", "wrk")
QUICK_KINDS = [kind for kind in KINDS.values() if kind.name not in LONG]
"""Kinds of workloads that need no file, server or display, and not long."""
OF_OTHERS = {
    "stress-ng": {f"stress-ng.{name}" for name in ("clone-time", "context-switch", "mutex-time")}
    | {f"stress-ng.{name}" for name in ("pipe-write-rate", "pthread-start", "swapcontext-calls", "yield-time")}
}
"""Metrics that only other choices of a parameter print."""
INSTALLED = ("cyclictest",)
"""Programs that come with Ajuste; each other one is a Debian package, of the purpose ``test-all``."""


def test_every_file_is_read_and_in_the_catalogue() -> None:
    named = [entry["name"] for file in FOLDER.iterdir() for entry in tomllib.loads(file.read_text())["workload"]]
    assert sorted(named) == sorted(KINDS)
    assert {name: catalogue().workloads[name] for name in KINDS} == KINDS
    assert [problem for problem in problems() if "ajuste_programs" in problem] == []


@pytest.mark.parametrize(
    "kind",
    [kind for kind in QUICK_KINDS if kind.program in INSTALLED]
    + slow(*(kind for kind in QUICK_KINDS if kind.program not in INSTALLED)),
    ids=lambda kind: kind.name,
)
def test_the_real_program_takes_the_defaults_and_its_parser_gives_the_metrics(
    kind: WorkloadKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {metric.name for metric in kind.metrics}
    parameters: dict[str, str] = {
        name: str(Path(kind.parameters[name].default).resolve())
        for name in ("source", "directory")
        if name in kind.parameters
    }
    monkeypatch.chdir(tmp_path)
    metrics = run_workload(kind, parameters, leaves=())
    assert metrics | OF_OTHERS.get(kind.name, set()) == expected


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("fio", {"pattern": "mixed", "block_kib": "16", "size_mib": "1"}),
        ("fio-patterns", {"size_mib": "1", "milliseconds": "50"}),
        ("wrk", {"seconds": "1", "port": "18791"}),
        ("h2load", {"seconds": "1", "port": "18792"}),
        ("pgbench", {"seconds": "1"}),
    ],
)
@pytest.mark.slow
def test_what_needs_files_has_all_metrics(
    name: str, parameters: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kind = KINDS[name]
    assert run_workload(kind, parameters, () if name == "pgbench" else None) >= {metric.name for metric in kind.metrics}


@pytest.mark.parametrize("name", ["dbench", "tbench"])
@pytest.mark.slow
def test_the_shortest_run_that_is_taken_has_a_throughput(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dbench 4 itself prints 0 MB/sec after one second."""
    monkeypatch.chdir(tmp_path)
    kind = KINDS[name]
    values = parser(kind.parser)(printed(kind, {"seconds": str(kind.parameters["seconds"].minimum)}))
    assert values["dbench.throughput"] > 0
