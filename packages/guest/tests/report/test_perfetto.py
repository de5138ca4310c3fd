"""Traces for Perfetto: all that was followed of both trials is in them, at the right time."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.decision import KINDS, Divergence, NamedDecisions
from ajuste.model.error import RequestError
from ajuste_guest.analysis.divergence import divergence
from ajuste_guest.report.perfetto import Followed, write_trace
from decisions import AGENT, FIRST, KERNEL, Said, Step, calling, on_cpus, steps, stream
from traces import Trial, read, sort

EVENTS = {"switch": "sched_switch", "wakeup": "sched_wakeup", "new": "sched_wakeup_new"}
SLEEPS, PREEMPTED = 1, 0x100
"""States of who leaves the CPU as Linux shows them since 4.14 (``prev_state`` of ``sched_switch``)."""
SHELL = shutil.which("trace_processor_shell")
COMMON: list[Step] = [("new", 0), ("new", 0), ("wakeup", 4), ("timer", 0), ("switch", 4), ("switch", 3)]


def written(path: Path, baseline: NamedDecisions, changed: NamedDecisions) -> tuple[Divergence, Trial, Trial]:
    parting = divergence(baseline, changed)
    write_trace(path, Followed("1 ms", "5.10.0-46", baseline), Followed("16 ms", "6.1.0-9", changed), parting)
    return parting, *read(path)


def traced(baseline: NamedDecisions, changed: NamedDecisions) -> tuple[Divergence, Trial, Trial]:
    with TemporaryDirectory() as directory:
        return written(Path(directory) / "trace", baseline, changed)


@given(steps(), steps(), st.integers(1, 1_000), st.integers(0, 5))
def test_the_counts_are_those_of_the_divergence(
    first_steps: list[Step], second_steps: list[Step], each: int, moved: int
) -> None:
    streams = stream(first_steps), stream(second_steps, each=each, moved=moved)
    parting, *trials = traced(*streams)
    for lane, followed, trial in zip((parting.baseline, parting.own), streams, trials, strict=True):
        kinds = Counter(KINDS[kind] for kind in followed.kinds)
        assert trial.kinds() == kinds
        assert sum(kinds.values()) - kinds["timer"] == lane.decisions
        assert trial.counts() == Counter(
            sched_switch=kinds["switch"],
            sched_wakeup=kinds["wakeup"],
            sched_wakeup_new=kinds["new"],
            sched_waking=kinds["wakeup"] + kinds["new"],
        )


@given(steps(), steps())
def test_every_event_is_about_its_tasks(first_steps: list[Step], second_steps: list[Step]) -> None:
    baseline, changed = stream(first_steps), stream(second_steps, moved=3)
    _, *trials = traced(baseline, changed)
    for followed, trial in zip((baseline, changed), trials, strict=True):
        places = [place for place, kind in enumerate(followed.kinds) if KINDS[kind] in EVENTS]
        seen = [event for event in trial.events if sort(event) != "sched_waking"]
        assert [sort(event) for event in seen] == [EVENTS[KINDS[followed.kinds[place]]] for place in places]
        assert in_order(chain.from_iterable((event.pid, about(event)) for event in seen)) == in_order(
            chain.from_iterable((followed.running[place], followed.others[place]) for place in places)
        )
        roles = {task.number: task.role for task in followed.tasks}
        assert [trial.processes.get(about(event), "idle") for event in seen] == [
            roles[followed.others[place]] for place in places
        ]
        switches = [event.sched_switch for event in seen if event.HasField("sched_switch")]
        assert [switch.prev_state for switch in switches] == [
            PREEMPTED if followed.stays[place] else SLEEPS
            for place in places
            if KINDS[followed.kinds[place]] == "switch"
        ]


def about(event: Any) -> int:
    return int(event.sched_switch.next_pid if event.HasField("sched_switch") else getattr(event, sort(event)).pid)


def in_order(items: Iterable[int]) -> list[int]:
    """Return the number of each item, counted by first occurrence."""
    order: dict[int, int] = {}
    return [order.setdefault(item, len(order)) for item in items]


def test_a_decision_has_its_words_its_path_and_the_instructions_before_it(tmp_path: Path) -> None:
    baseline = stream([*COMMON, ("resched", 3)])
    _, trial, _ = written(tmp_path / "trace", baseline, stream(COMMON))
    at_ns, kind, words, path, instructions = trial.decisions[-1]
    assert (kind, words) == ("resched", "workload #1 is preempted")
    assert path == baseline.path(len(COMMON)) != ()
    assert instructions == baseline.at[-1]
    assert trial.decisions[3][1:3] == ("timer", "the timer interrupts workload #1")
    begin_ns = at_ns - baseline.time_ns(len(COMMON))
    assert trial.instructions[0] == (begin_ns, 0)
    assert trial.instructions[-1] == (begin_ns + 2 * baseline.instructions, baseline.instructions)


def test_system_calls_are_on_their_threads(tmp_path: Path) -> None:
    of_both = [(FIRST, 10, 20), (AGENT, 25, 100), (FIRST, 40, 7), (FIRST, 51, None)]
    baseline, changed = stream(COMMON, calls=calling(of_both)), stream(COMMON, calls=calling(of_both[1:]), each=999)
    _, *trials = written(tmp_path / "trace", baseline, changed)
    begin_ns = trials[0].instructions[0][0]
    assert trials[0].calls == [
        ("workload #1", "read", begin_ns + 20, begin_ns + 60),
        ("agent", "write", begin_ns + 50, begin_ns + 250),
        ("workload #1", "read", begin_ns + 80, begin_ns + 94),
        ("workload #1", "write", begin_ns + 102, None),
    ]
    assert len(trials[1].calls) == 3


def test_a_decision_on_several_cpus_says_where_its_task_was(tmp_path: Path) -> None:
    # Task 3 makes way for task 4 twice: the first time 4 comes from the same CPU, the second time from another one.
    events: list[Said] = [("switch", 0, 3, 4), ("switch", 0, 4, 3), ("switch", 1, 5, 4), ("switch", 0, 3, 4)]
    _, trial, _ = written(tmp_path / "trace", on_cpus(events), on_cpus(events[:2]))
    moves = ["continues on CPU" in words for _, _, words, *_ in trial.decisions]
    assert moves == [False, False, True, True]
    assert trial.decisions[2][2].endswith("continues on CPU 1")
    assert trial.decisions[3][2].endswith("continues on CPU 0")


def test_both_part_at_one_time_and_a_task_has_one_number(tmp_path: Path) -> None:
    baseline = stream([*COMMON, ("wakeup", KERNEL), ("switch", 4)])
    changed = stream([*COMMON, ("timer", 0), ("new", 0), ("switch", 4)], each=70, moved=2)
    difference, first, second = written(tmp_path / "trace", baseline, changed)
    assert (first.name, second.name) == ("baseline: 1 ms", "configuration: 16 ms")
    assert (first.kernel, second.kernel) == ("5.10.0-46", "6.1.0-9")
    assert first.threads == second.threads
    (parting,) = first.parting
    assert not second.parting
    assert first.decisions[len(COMMON)][:2] == (parting.timestamp, "wakeup")
    assert second.decisions[len(COMMON) + 1][:2] == (parting.timestamp, "new")
    (why,) = parting.track_event.debug_annotations
    assert tuple(value.string_value for value in why.array_values) == difference.sentences
    assert {at_ns for event in first.events for at_ns in (event.timestamp,)} <= {at_ns for at_ns, *_ in first.decisions}


def test_where_one_decides_nothing_more_the_last_decision_in_common_is_at_one_time(tmp_path: Path) -> None:
    _, first, second = written(tmp_path / "trace", stream([*COMMON, ("switch", 4)]), stream(COMMON, each=999))
    assert first.decisions[len(COMMON) - 1][0] == second.decisions[-1][0] == first.parting[0].timestamp


@pytest.mark.parametrize("common", [COMMON, []])
def test_those_that_never_part_begin_together(tmp_path: Path, common: list[Step]) -> None:
    _, first, second = written(tmp_path / "trace", stream(common), stream(common, each=999))
    assert first.instructions[0] == second.instructions[0]
    assert first.parting == []


def test_two_traces_of_the_same_have_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        written(tmp_path / name, stream(COMMON), stream(COMMON[:3]))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_only_the_first_machine_sets_the_clock(tmp_path: Path) -> None:
    """Perfetto loses what comes later of the first machine where both set the clock."""
    _, *trials = written(tmp_path / "trace", stream(COMMON), stream(COMMON[:3]))
    assert [trial.clocks for trial in trials] == [1, 0]


@pytest.mark.skipif(SHELL is None, reason="Perfetto's trace_processor_shell is not in PATH")
def test_perfettos_own_trace_processor_counts_the_same(tmp_path: Path) -> None:
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    baseline = stream([*COMMON * 20, ("wakeup", KERNEL), ("switch", 4), *COMMON])
    changed = stream([*COMMON * 20, ("timer", 0), ("new", 0), ("switch", 4)], each=70, moved=2)
    _, *trials = written(tmp_path / "trace", baseline, changed)
    settings = TraceProcessorConfig(bin_path=SHELL, ingest_ftrace_in_raw=True)
    with TraceProcessor(trace=str(tmp_path / "trace"), config=settings) as processor:

        def rows(query: str) -> list[tuple[Any, ...]]:
            answer = processor.query(query)
            return [tuple(getattr(row, name) for name in answer.column_names) for row in answer]

        assert rows("SELECT name FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0") == []
        assert [name for (name,) in rows("SELECT name FROM machine ORDER BY raw_id")] == [
            trial.name for trial in trials
        ]
        for number, trial in enumerate(trials, 1):
            of_it = f"JOIN machine ON machine.id = machine_id WHERE raw_id = {number}"
            events = "SELECT f.name AS event, COUNT(*) AS n FROM ftrace_event f JOIN cpu USING (ucpu)"
            assert dict(rows(f"{events} {of_it} GROUP BY event")) == trial.counts()
            assert rows(f"SELECT COUNT(*) AS n FROM sched JOIN cpu USING (ucpu) {of_it}") == [
                (trial.counts()["sched_switch"],)
            ]
            track = f"JOIN track ON track.id = track_id WHERE track.name = 'Decisions ({trial.name})'"
            kinds = f"SELECT category, COUNT(*) AS n FROM slice {track} GROUP BY category"
            assert dict(rows(kinds)) == trial.kinds()
            track = f"JOIN track ON track.id = track_id WHERE track.name = 'Instructions ({trial.name})'"
            assert rows(f"SELECT COUNT(*) AS n, MAX(value) AS most FROM counter {track}") == [
                (len(trial.instructions), trial.instructions[-1][1])
            ]
        ((at_ns,),) = rows("SELECT ts FROM slice WHERE name = 'The decisions part here'")
        assert at_ns == trials[0].parting[0].timestamp
        assert rows(f"SELECT COUNT(*) AS n FROM slice WHERE ts = {at_ns}") == [(3,)]


def test_a_path_without_functions_is_none(tmp_path: Path) -> None:
    _, trial, _ = written(tmp_path / "trace", stream(COMMON, paths=((), (), ())), stream(COMMON))
    assert {path for *_, path, _ in trial.decisions} == {()}


def test_what_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"--perfetto .*: Is a directory"):
        written(tmp_path, stream(COMMON), stream(COMMON))
