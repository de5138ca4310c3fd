"""Samplers and timelines of a study file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.catalogue.loader import Catalogue, figure_sources
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy, fingerprint
from ajuste.study.schema import Study

STUDY = """\
schema = 1
name = "timed"
factor = []
[workload]
command = ["true"]
observe_s = 40
[[workload.sampler]]
source = "vmstat"
keys = ["nr_dirty", "nr_w*"]
interval_ms = 250
[[workload.timeline]]
name = "write-delay"
source = "vmstat"
key = "nr_written"
take = "delay"
direction = "lower"
[[workload.timeline]]
name = "write-rate"
source = "vmstat"
key = "nr_written"
take = "rate"
direction = "none"
[target]
kernel = "debian:5.10"
[analysis]
metrics = ["write-delay"]
"""


Read = Callable[[str], Study]


@pytest.fixture
def read(tmp_path: Path, catalogue: Catalogue) -> Read:
    def write(text: str) -> Study:
        file = tmp_path / "study.toml"
        file.write_text(text, encoding="utf-8")
        return read_study(file, catalogue)

    return write


@pytest.fixture
def resolved(read: Read, catalogue: Catalogue) -> Callable[[str], ResolvedStudy]:
    kernels = {"debian:5.10": KernelVersion.parse("5.10")}
    return lambda text: resolve(read(text), catalogue, kernels, lambda name: f"/bin/{name}")


def test_a_timeline_is_a_metric_of_its_figures_unit(resolved: Callable[[str], ResolvedStudy]) -> None:
    study = resolved(STUDY)
    (delay,) = study.deciding
    assert (delay.name, delay.unit, delay.direction, delay.resolution) == ("write-delay", "s", "lower", 0.25)
    assert delay.what == "the delay of vmstat nr_written until 90 % of its change since the workload's start"
    rate = next(metric for metric in study.described if metric.name == "write-rate")
    assert (rate.unit, rate.resolution) == ("pages/s", 0)
    (sampler,) = study.samplers
    assert (sampler.source, sampler.keys, sampler.interval_ns) == ("vmstat", ("nr_dirty", "nr_w*"), 250_000_000)
    assert [(line.name, line.take, line.counter) for line in study.timelines] == [
        ("write-delay", "delay", True),
        ("write-rate", "rate", True),
    ]


def test_other_timelines_are_another_measurement(resolved: Callable[[str], ResolvedStudy]) -> None:
    other = STUDY.replace('direction = "lower"', 'direction = "lower"\nfraction = 0.5')
    assert fingerprint(resolved(other)) != fingerprint(resolved(STUDY))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('key = "nr_written"\ntake = "d', 'key = "nr_dirtied"\ntake = "d', 14, 'does not read "nr_dirtied"'),
        ('source = "vmstat"\nkeys', 'source = "stat"\nkeys', 9, 'stat has no figure "nr_dirty"'),
        ('"nr_w*"', '"nr_*n"', 9, "has a * before its end"),
        ('"nr_w*"', '""', 9, "is empty"),
        ('name = "write-rate"', 'name = "write-delay"', 18, 'the metric "write-delay" already exists'),
        ('name = "write-rate"', 'name = "elapsed"', 18, 'the metric "elapsed" already exists'),
        ('metrics = ["write-delay"]', 'metrics = ["write-dely"]', 26, "did you mean write-delay"),
        ('take = "delay"', 'take = "lateness"', 15, "expected 'delay', 'growth'"),
        ('source = "vmstat"\nkeys', 'source = "cpuinfo"\nkeys', 8, "expected 'vmstat', 'meminfo'"),
        ("interval_ms = 250", "interval_ms = 0.5", 10, "expected at least 1"),
        ("observe_s = 40", "observe_s = -1", 6, "expected at least 0"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(read: Read, old: str, new: str, line: int, words: str) -> None:
    text = STUDY.replace(old, new, 1)
    assert text != STUDY
    with pytest.raises(RequestError) as failure:
        read(text)
    error = failure.value
    assert words in error.message
    assert error.place is not None
    assert error.place.line == line


def test_a_source_that_nobody_samples_and_a_process_that_is_gone(read: Read) -> None:
    text = STUDY.replace('source = "vmstat"\nkey ', 'source = "process"\nsince = "end"\nkey ', 1)
    with pytest.raises(RequestError, match=r"(?s)does not exist after its end.*no sampler reads process"):
        read(text)


@pytest.mark.parametrize(
    ("source", "name", "kind"),
    [
        ("vmstat", "nr_dirtied", "counter"),
        ("vmstat", "nr_anon_pages", "level"),
        ("vmstat", "pgfault", "counter"),
        ("meminfo", "Active(anon)", "level"),
        ("diskstats", "nvme0n1p2.ios_in_progress", "level"),
        ("diskstats", "cciss!c0d0.sectors_written", "counter"),
        ("schedstat", "cpu.wait_ns", "counter"),
        ("stat", "cpu15.steal_ticks", "counter"),
        ("softirqs", "NET_RX.cpu0", "counter"),
        ("interrupts", "24", "counter"),
        ("process", "status.VmRSS", "level"),
        ("process", "status.voluntary_ctxt_switches", "counter"),
    ],
)
def test_a_figure_is_known_by_the_form_of_its_name(source: str, name: str, kind: str) -> None:
    figure = figure_sources()[source].find(name)  # type: ignore[index]
    assert figure is not None
    assert figure.kind == kind


@pytest.mark.parametrize(("source", "name"), [("diskstats", "sda"), ("stat", "cpux.user_ticks"), ("pressure", "cpu")])
def test_what_a_source_cannot_have_is_not_found(source: str, name: str) -> None:
    assert figure_sources()[source].find(name) is None  # type: ignore[index]
