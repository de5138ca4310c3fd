"""Timelines of what samplers read, as a report has them."""

from __future__ import annotations

from typing import Any

import pytest

from ajuste.analysis.record import sort_trials
from ajuste.analysis.timelines import MOST_CONFIGURATIONS, MOST_FIGURES, timelines
from ajuste.model.event import Exited, Sample, Sampled, Started
from ajuste.model.plan import Command, Sampler
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste.outputs.timeline_metrics import Timeline
from ajuste.study.read import parse_study
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy

SECOND = 1_000_000_000
START_NS = 5 * SECOND
DELAY = Timeline(name="delay", source="vmstat", key="nr_written", take="delay", since="end", counter=True)
RATE = Timeline(name="rate", source="stat", key="ctxt", take="rate", counter=True)
STUDY = parse_study(
    {
        "name": "timed",
        "factor": [{"name": "nice", "levels": [0, 1]}],
        "workload": {"command": ["true"]},
        "target": {"kernel": "debian:5.10"},
        "analysis": {"metrics": ["elapsed"]},
    }
)


def study(names: tuple[str, ...] = ("a", "b"), baseline: str = "a", **more: Any) -> ResolvedStudy:
    fields: dict[str, Any] = {
        "study": STUDY,
        "factors": (Factor(name="f", levels=names, baseline=baseline),),
        "configurations": tuple(
            ResolvedConfiguration(
                configuration=Configuration(name=name, levels={"f": name}, baseline=name == baseline),
                kernel="k",
                workload=Command(argv=("true",)),
            )
            for name in names
        ),
        "deciding": (),
        "described": (),
        "counters": (),
        "samplers": (
            Sampler(source="vmstat", keys=("nr_*",), interval_ns=SECOND),
            Sampler(source="stat", keys=("ctxt",), interval_ns=SECOND),
        ),
        "timelines": (DELAY, RATE),
    }
    return ResolvedStudy(**(fields | more))


def trial(name: str, block: int, written_at_s: int, **more: Any) -> Trial:
    """A workload of 2 s, of which 8 pages are written ``written_at_s`` seconds after its start."""
    exited = {"wall_ns": 2 * SECOND, "exit_code": 0, "user_ns": 0, "system_ns": 0, "peak_rss_bytes": 0}
    zeros = dict.fromkeys(("voluntary_switches", "involuntary_switches", "minor_faults", "major_faults"), 0)
    events: list[Any] = [
        Started(at_ns=START_NS, role="workload", index=0, pid=1),
        Exited.model_validate({"at_ns": 9, "role": "workload", "index": 0, **exited, **zeros}),
    ]
    for second in range(41):
        at_ns = START_NS + second * SECOND - (1000 if second == 0 else 0)
        written = 100 + 8 * (second >= written_at_s)
        values = {"nr_written": written, "nr_dirty": 108 - written, "nr_free_pages": 7}
        events.append(Sample(at_ns=at_ns, source="vmstat", values=values))
        events.append(Sample(at_ns=at_ns, source="stat", values={"ctxt": 50 * second}))
    events.append(Sampled(at_ns=9, index=0, source="vmstat", readings=41))
    metrics = {"delay": float(written_at_s - 2), "rate": 50.0, "elapsed": 2.0}
    lines = "".join(event.model_dump_json() + "\n" for event in events)
    slot = Slot(block=block, position=0, configuration=name, seed=1)
    return Trial(**({"slot": slot, "status": "ok", "metrics": metrics, "events": lines} | more))


def test_the_trial_in_the_middle_stands_for_its_configuration() -> None:
    trials = [trial("a", block, 30 + block) for block in range(5)] + [trial("b", 0, 10)]
    written = timelines(study(), sort_trials(trials))[0]
    assert (written.source, written.key, written.shown, written.unit) == ("vmstat", "nr_written", "growth", "pages")
    assert [(line.configuration, line.block, line.representative) for line in written.lines] == [
        ("a", 2, True),
        ("a", 0, False),
        ("a", 1, False),
        ("b", 0, True),
    ]
    assert (written.lines[0].at_s, written.lines[0].values) == ((0, 31, 32, 40), (0, 0, 8, 8))
    assert written.lines[0].end_s == 2
    assert [(mark.metric, mark.configuration, mark.at_s) for mark in written.marks] == [
        ("delay", "a", 32),
        ("delay", "b", 10),
    ]


def test_a_rate_is_shown_as_such_and_a_level_as_it_is() -> None:
    written, rate, dirty = timelines(study(), sort_trials([trial("a", 0, 30)]))
    assert (rate.key, rate.shown, rate.unit) == ("ctxt", "rate", "/s")
    assert rate.lines[0].values == pytest.approx([50] * len(rate.lines[0].values), rel=1e-5)
    assert (dirty.key, dirty.shown, dirty.lines[0].values) == ("nr_dirty", "value", (8, 8, 0, 0))
    assert written.lines[0].configuration == dirty.lines[0].configuration


def test_what_never_changed_is_not_shown_unless_it_was_asked_for() -> None:
    requested = Timeline(name="free", source="vmstat", key="nr_free_pages", take="last")
    assert [figure.key for figure in timelines(study(timelines=(requested,)), sort_trials([trial("a", 0, 30)]))] == [
        "nr_free_pages",
        "nr_dirty",
        "nr_written",
        "ctxt",
    ]


@pytest.mark.parametrize("spoilt", [{"status": "flagged"}, {"status": "failed", "events": ""}])
def test_trials_that_were_not_clean_are_not_shown(spoilt: dict[str, Any]) -> None:
    assert timelines(study(), sort_trials([trial("a", 0, 30, **spoilt)])) == ()
    assert timelines(study(samplers=()), sort_trials([trial("a", 0, 30)])) == ()


def test_of_many_configurations_some_are_shown_and_always_the_baseline() -> None:
    names = tuple(f"c{n:02}" for n in range(30))
    figures = timelines(study(names, baseline="c11"), sort_trials(trial(name, 0, 30) for name in names))
    drawn = [line.configuration for line in figures[0].lines]
    assert len(figures) <= MOST_FIGURES
    assert len(drawn) == MOST_CONFIGURATIONS
    assert {"c00", "c11", "c29"} <= set(drawn)
