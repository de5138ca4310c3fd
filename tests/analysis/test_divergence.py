"""Where two streams of decisions part."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ajuste.analysis.divergence import divergence, in_words
from ajuste.analysis.pairing import common_blocks
from ajuste.model.decision import DecisionLane
from decisions import FIRST, KERNEL, Step, steps, stream


def decisions(taken: list[Step]) -> int:
    return sum(kind != "timer" for kind, _ in taken)


@given(steps(), st.integers(1, 1_000), st.integers(0, 5))
def test_the_same_decisions_never_part_whenever_they_are_taken(taken: list[Step], each: int, moved: int) -> None:
    found = divergence(stream(taken), stream(taken, each=each, moved=moved))
    assert found.alike == found.baseline.decisions == found.own.decisions == decisions(taken)
    assert (found.spread, found.baseline.first, found.own.first) == (None, None, None)
    assert "never part" in found.sentences[0]


@given(steps(), steps())
def test_interrupts_of_the_timer_are_no_decisions(taken: list[Step], others: list[Step]) -> None:
    timers = [("timer", 2)] * len(others)
    found = divergence(stream(taken), stream([*timers, *taken, *timers]))
    assert found.spread is None


@given(steps(), steps(), steps())
def test_the_first_decision_that_differs_is_found(common: list[Step], one: list[Step], other: list[Step]) -> None:
    """A task of the kernel is woken here, and a new one made there."""
    baseline = stream([*common, ("wakeup", KERNEL), *one])
    own = stream([*common, ("new", 0), *other], each=70)
    found = divergence(baseline, own)
    assert found.alike == decisions(common)
    first, second = found.baseline.first, found.own.first
    assert first is not None
    assert second is not None
    assert (first.kind, first.other, second.kind) == ("wakeup", "rcu_gp_kthread", "new")
    assert first.instructions == 100 * (len(common) + 1)
    assert second.time_ns == 2 * 70 * (len(common) + 1)
    assert len(found.before) == min(4, found.alike)
    spread = found.spread
    assert spread is not None
    assert 1 <= spread.differ <= spread.after == decisions(one) + 1
    assert spread.differ_soon <= spread.soon <= spread.after
    shown = {run.task for lane in (found.baseline, found.own) for run in lane.runs}
    assert shown <= {task.called for task in found.tasks}


@given(steps(), steps(1), steps())
def test_to_part_is_mutual(common: list[Step], one: list[Step], other: list[Step]) -> None:
    first, second = stream([*common, *one]), stream([*common, *other])
    there, back = divergence(first, second), divergence(second, first)
    assert there.alike == back.alike >= decisions(common)
    assert (there.baseline.first is None, there.own.first is None) == (
        back.own.first is None,
        back.baseline.first is None,
    )


@given(steps(1), steps())
def test_lanes_have_no_gaps_and_no_overlaps(one: list[Step], other: list[Step]) -> None:
    found = divergence(stream([("wakeup", KERNEL), *one]), stream([("new", 0), *other]))

    def check(lane: DecisionLane) -> None:
        for run, later in zip(lane.runs, lane.runs[1:], strict=False):
            assert run.begin_ns < run.end_ns == later.begin_ns

    check(found.baseline)
    check(found.own)


CYCLE = [("new", 0), ("switch", 4), ("wakeup", 3), ("switch", 3), ("resched", 3), ("switch", 2), ("switch", 3)]


def test_one_decision_more_is_no_more_than_that() -> None:
    common = CYCLE * 3
    found = divergence(stream([*common, *CYCLE * 5]), stream([*common, ("resched", KERNEL), *CYCLE * 5]))
    spread = found.spread
    assert spread is not None
    assert (spread.differ, spread.alike_again, spread.for_good) == (0, 0, True)
    assert "At the end they decide alike." in found.sentences[-1]


def test_a_switch_to_another_task_is_said_in_words() -> None:
    base = [("new", 0), ("new", 0), ("wakeup", KERNEL)]
    found = divergence(stream([*base, ("switch", 4)]), stream([*base, ("switch", 5)]))
    first, second = found.baseline.first, found.own.first
    assert first is not None
    assert second is not None
    assert in_words(first) == "workload #1 makes way for workload #2"
    assert in_words(second) == "workload #1 waits, and workload #3 comes"
    assert found.sentences[0].startswith(
        "They part 800 ns after the workload's start, on CPU 0, while workload #1 runs"
    )
    assert "entry_SYSCALL_64 → try_to_wake_up → check_preempt_wakeup → resched_curr" in " ".join(found.sentences) or (
        first.path[-1] == "try_to_wake_up"
    )


def test_what_was_cut_is_no_difference() -> None:
    """The lens had no room for more of one trial."""
    found = divergence(stream(CYCLE * 2, left_out=9), stream(CYCLE * 3))
    assert found.alike == len(CYCLE) * 2
    assert found.spread is None
    assert "were kept" in found.notes[0]
    assert divergence(stream(CYCLE * 2), stream(CYCLE * 3)).baseline.first is None


@given(st.lists(st.integers(0, 9), max_size=80), st.lists(st.integers(0, 9), max_size=80))
def test_common_blocks_are_alike_in_order_and_apart(one: list[int], other: list[int]) -> None:
    first, second = ([(kind, 0, 0, 0) for kind in kinds] for kinds in (one, other))
    ends = (0, 0)
    for at, there, length in common_blocks(first, second):
        assert length > 0
        assert (at, there) >= ends
        assert at >= ends[0]
        assert there >= ends[1]
        assert first[at : at + length] == second[there : there + length]
        ends = (at + length, there + length)


def test_tasks_with_the_same_role_are_told_apart_by_who_made_them() -> None:
    """Each of the two made a task; only in one stream they run in this order."""
    made = [("new", 0), ("switch", 4), ("new", 0), ("switch", FIRST)]
    found = divergence(stream([*made, ("switch", 5)]), stream([*made, ("switch", 4)]))
    assert found.alike == len(made)
