"""A small catalogue, and study files written on the spot."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.catalogue.loader import Catalogue
from ajuste.model.metric import Metric
from ajuste.model.tunable import Tunable, Where
from ajuste.model.workload import Parameter, WorkloadKind
from ajuste.study.read import read_study
from ajuste.study.schema import Study


def _tunable(name: str, *where: Where, **more: object) -> Tunable:
    fields = {
        "title": name.replace("_", " "),
        "subsystem": "scheduler",
        "what": f"What {name} does.",
        "type": "integer",
        "minimum": 100_000,
        "maximum": 1_000_000_000,
        "default": "0.75 ms",
        "where": where,
        **more,
    }
    return Tunable.model_validate({"name": name, **fields})


def _process(name: str, **more: object) -> Tunable:
    return _tunable(name, Where(kind="process", attribute=name), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    tunables = [
        _tunable(
            "sched_min_granularity_ns",
            Where(kind="sysctl", path="/proc/sys/kernel/sched_min_granularity_ns", before="5.13"),
            Where(kind="debugfs", path="/sys/kernel/debug/sched/min_granularity_ns", since="5.13", before="6.6"),
            unit="ns",
            successor="base_slice_ns",
            removed="Linux 6.6 replaced CFS.",
        ),
        _tunable(
            "base_slice_ns",
            Where(kind="debugfs", path="/sys/kernel/debug/sched/base_slice_ns", since="6.6"),
            unit="ns",
            predecessor="sched_min_granularity_ns",
            maximum=500_000_000,
        ),
        _tunable(
            "sched_feat_hrtick",
            Where(kind="flag", path="/sys/kernel/debug/sched_features", flag="HRTICK", before="5.13"),
            type="boolean",
        ),
        _process("nice", minimum=-20, maximum=19),
        _process("cgroup_weight", minimum=1, maximum=10_000),
        _process("policy", type="choice", choices=("other", "batch", "idle", "fifo", "rr")),
        _process("affinity", type="cpu-list"),
    ]
    workloads = [
        WorkloadKind(
            name="matrix",
            title="matrix product",
            what="A product.",
            program="ajuste-workloads",
            arguments=("matrix", "--size", "{size}", "--repetitions={repetitions}"),
            parameters={
                "size": Parameter(what="Rows.", default="100", minimum=1, maximum=2000),
                "repetitions": Parameter(what="Times.", default="10", minimum=1, maximum=10_000),
            },
            parser="matrix",
        ),
        WorkloadKind(
            name="spin", title="spin", what="Endless.", program="ajuste-workloads", arguments=("spin",), endless=True
        ),
        WorkloadKind(
            name="hackbench",
            title="hackbench",
            what="Messages.",
            program="hackbench",
            package="rt-tests",
            arguments=("{mode}", "-g", "{groups}"),
            parameters={
                "groups": Parameter(what="Groups.", default="10", minimum=1, maximum=100),
                "mode": Parameter(
                    what="What they are.",
                    type="choice",
                    default="processes",
                    choices={"processes": (), "threads": ("-T",)},
                ),
            },
            parser="hackbench",
            metrics=(Metric(name="hackbench.time", title="time", unit="s", direction="lower"),),
        ),
    ]
    metrics = [
        Metric(name="elapsed", title="elapsed time", unit="s", direction="lower"),
        Metric(name="task-clock", title="task clock", unit="ms", direction="lower"),
        Metric(
            name="involuntary-switches", title="switches", unit="", direction="none", scale="difference", resolution=1
        ),
        Metric(name="ipc", title="instructions a cycle", unit="", direction="none"),
    ]
    return Catalogue({t.name: t for t in tunables}, {w.name: w for w in workloads}, {m.name: m for m in metrics})


MINIMAL = """\
schema = 1
name = "example"

[[factor]]
name = "sched_min_granularity_ns"
levels = [750000, 7500000]

[workload]
kind = "matrix"

[target]
kernel = "debian:5.10"

[analysis]
metrics = ["elapsed"]
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """``write(TEXT)``, or ``write((OLD, NEW), …)`` for the minimal study with replacements; the path of the file."""

    def written(*parts: str | tuple[str, str]) -> Path:
        text = MINIMAL
        for part in parts:
            if isinstance(part, str):
                text = textwrap.dedent(part)
            else:
                assert part[0] in text
                text = text.replace(*part)
        path = tmp_path / "study.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


@pytest.fixture
def read(write: Callable[..., Path], catalogue: Catalogue) -> Callable[..., Study]:
    def reading(*parts: str | tuple[str, str]) -> Study:
        return read_study(write(*parts), catalogue)

    return reading
