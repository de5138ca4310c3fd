"""Divergence of two streams of decisions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.decision import DecisionLane
from ajuste_guest.analysis.divergence import common_blocks, divergence, in_words
from decisions import CPUS, FIRST, KERNEL, Said, Step, on_cpus, steps, stream


def decisions(taken: list[Step]) -> int:
    return sum(kind != "timer" for kind, _ in taken)


@given(steps(), st.integers(1, 1_000), st.integers(0, 5))
def test_the_same_decisions_never_part_whenever_they_are_taken(taken: list[Step], each: int, moved: int) -> None:
    comparison = divergence(stream(taken), stream(taken, each=each, moved=moved))
    assert comparison.alike == comparison.baseline.decisions == comparison.own.decisions == decisions(taken)
    assert (comparison.spread, comparison.baseline.first, comparison.own.first) == (None, None, None)
    assert "never part" in comparison.sentences[0]


@given(steps(), steps())
def test_interrupts_of_the_timer_are_no_decisions(taken: list[Step], others: list[Step]) -> None:
    timers = [("timer", 2)] * len(others)
    comparison = divergence(stream(taken), stream([*timers, *taken, *timers]))
    assert comparison.spread is None


@given(steps(), steps(), steps())
def test_the_first_decision_that_differs_is_found(
    common: list[Step], first_steps: list[Step], second_steps: list[Step]
) -> None:
    """A task of the kernel is woken here, and a new one made there."""
    baseline = stream([*common, ("wakeup", KERNEL), *first_steps])
    changed = stream([*common, ("new", 0), *second_steps], each=70)
    comparison = divergence(baseline, changed)
    assert comparison.alike == decisions(common)
    first, second = comparison.baseline.first, comparison.own.first
    assert first is not None
    assert second is not None
    assert (first.kind, first.other, second.kind) == ("wakeup", "rcu_gp_kthread", "new")
    assert first.instructions == 100 * (len(common) + 1)
    assert second.time_ns == 2 * 70 * (len(common) + 1)
    assert len(comparison.before) == min(4, comparison.alike)
    spread = comparison.spread
    assert spread is not None
    assert 1 <= spread.differ <= spread.after == decisions(first_steps) + 1
    assert spread.differ_soon <= spread.soon <= spread.after
    run_tasks = {run.task for lane in (comparison.baseline, comparison.own) for run in lane.runs}
    assert run_tasks <= {task.called for task in comparison.tasks}


@given(steps(), steps(1), steps())
def test_to_part_is_mutual(common: list[Step], first_steps: list[Step], second_steps: list[Step]) -> None:
    first, second = stream([*common, *first_steps]), stream([*common, *second_steps])
    there, back = divergence(first, second), divergence(second, first)
    assert there.alike == back.alike >= decisions(common)
    assert (there.baseline.first is None, there.own.first is None) == (
        back.own.first is None,
        back.baseline.first is None,
    )


@given(steps(1), steps())
def test_lanes_have_no_gaps_and_no_overlaps(first_steps: list[Step], second_steps: list[Step]) -> None:
    comparison = divergence(stream([("wakeup", KERNEL), *first_steps]), stream([("new", 0), *second_steps]))

    def check(lane: DecisionLane) -> None:
        for run, later in zip(lane.runs, lane.runs[1:], strict=False):
            assert run.begin_ns < run.end_ns == later.begin_ns

    check(comparison.baseline)
    check(comparison.own)


CYCLE = [("new", 0), ("switch", 4), ("wakeup", 3), ("switch", 3), ("resched", 3), ("switch", 2), ("switch", 3)]


def test_one_decision_more_is_no_more_than_that() -> None:
    common = CYCLE * 3
    comparison = divergence(stream([*common, *CYCLE * 5]), stream([*common, ("resched", KERNEL), *CYCLE * 5]))
    spread = comparison.spread
    assert spread is not None
    assert (spread.differ, spread.alike_again, spread.for_good) == (0, 0, True)
    assert "At the end they decide alike." in comparison.sentences[-1]


def test_a_switch_to_another_task_is_said_in_words() -> None:
    base = [("new", 0), ("new", 0), ("wakeup", KERNEL)]
    comparison = divergence(stream([*base, ("switch", 4)]), stream([*base, ("switch", 5)]))
    first, second = comparison.baseline.first, comparison.own.first
    assert first is not None
    assert second is not None
    assert in_words(first) == "workload #1 makes way for workload #2"
    assert in_words(second) == "workload #1 waits, and workload #3 comes"
    assert comparison.sentences[0].startswith(
        "They part 800 ns after the workload's start, on CPU 0, while workload #1 runs"
    )
    assert "entry_SYSCALL_64 → try_to_wake_up → check_preempt_wakeup → resched_curr" in " ".join(
        comparison.sentences
    ) or (first.path[-1] == "try_to_wake_up")


def test_what_was_cut_is_no_difference() -> None:
    """The lens had no room for more of one trial."""
    comparison = divergence(stream(CYCLE * 2, left_out=9), stream(CYCLE * 3))
    assert comparison.alike == len(CYCLE) * 2
    assert comparison.spread is None
    assert "were kept" in comparison.notes[0]
    assert divergence(stream(CYCLE * 2), stream(CYCLE * 3)).baseline.first is None


@given(st.lists(st.integers(0, 9), max_size=80), st.lists(st.integers(0, 9), max_size=80))
def test_common_blocks_are_alike_in_order_and_apart(first_kinds: list[int], second_kinds: list[int]) -> None:
    first, second = ([(kind, 0, 0, 0) for kind in kinds] for kinds in (first_kinds, second_kinds))
    ends = (0, 0)
    for at, there, length in common_blocks(first, second):
        assert length > 0
        assert (at, there) >= ends
        assert at >= ends[0]
        assert there >= ends[1]
        assert first[at : at + length] == second[there : there + length]
        ends = (at + length, there + length)


def test_tasks_with_the_same_role_are_told_apart_by_who_made_them() -> None:
    """Two tasks make a task each; only in one stream they run in this order."""
    made = [("new", 0), ("switch", 4), ("new", 0), ("switch", FIRST)]
    comparison = divergence(stream([*made, ("switch", 5)]), stream([*made, ("switch", 4)]))
    assert comparison.alike == len(made)


BUSY: list[Said] = [("switch", cpu, cpu, CPUS + cpu) for cpu in range(CPUS)]
"""Start of a stream: each CPU begins with a task of the workload, which are #1, #2 and #3."""


def test_a_task_that_comes_to_another_cpu_is_said_to_continue_there() -> None:
    leaves: list[Said] = [*BUSY, ("switch", 0, 3, 6)]
    comparison = divergence(on_cpus([*leaves, ("switch", 1, 4, 3)]), on_cpus([*leaves, ("switch", 0, 6, 3)]))
    first, second = comparison.baseline.first, comparison.own.first
    assert first is not None
    assert second is not None
    assert (first.cpu, first.other_cpu, second.cpu, second.other_cpu) == (1, 0, 0, None)
    assert in_words(first) == "workload #2 waits, and workload #1 continues on CPU 1"
    assert in_words(second) == "workload #4 waits, and workload #1 comes"
    assert comparison.sentences[0] == "They part 1 µs after the workload's start."
    assert comparison.sentences[1].startswith("Under the baseline, on CPU 1, ")
    assert comparison.cpus == CPUS


def test_a_task_of_another_cpu_has_to_make_way_there() -> None:
    comparison = divergence(on_cpus([*BUSY, ("resched", 0, 3, 5)]), on_cpus([*BUSY, ("resched", 0, 3, 3)]))
    assert "Under the baseline workload #3 on CPU 2 is preempted." in comparison.sentences
    assert "Under the configuration workload #1 is preempted." in comparison.sentences


def test_what_two_cpus_decide_in_another_order_is_said_to_be_no_more() -> None:
    first, second = ("wakeup", 0, 3, 6), ("wakeup", 1, 4, 7)
    comparison = divergence(on_cpus([*BUSY, first, second]), on_cpus([*BUSY, second, first]))
    assert comparison.alike == len(BUSY)
    assert "Both decide both, in another order." in comparison.sentences
    assert not any(
        "order" in words for words in divergence(on_cpus([*BUSY, first]), on_cpus([*BUSY, second])).sentences
    )


def test_idle_tasks_of_two_cpus_are_not_the_same() -> None:
    """Idle tasks of both CPUs were marked before they were seen to run, in the same place."""
    parting = [[("resched", 0, 3, idle), ("switch", 1, 1, 4), ("switch", 2, 2, 5)] for idle in (1, 2)]
    first, second = (on_cpus([("switch", 0, 0, 3), *rest]) for rest in parting)
    comparison = divergence(first, second)
    assert comparison.alike == 1
    assert divergence(first, first).spread is None
    assert {task.called for task in comparison.tasks} >= {"idle"}


@given(st.lists(st.tuples(st.integers(0, CPUS - 1), st.integers(CPUS, CPUS + 5)), max_size=40))
def test_every_cpu_has_a_lane_without_gaps(switches: list[tuple[int, int]]) -> None:
    runs = {cpu: CPUS + cpu for cpu in range(CPUS)}
    events = list(BUSY)
    for cpu, task in switches:
        if task not in runs.values():
            events.append(("switch", cpu, runs[cpu], task))
            runs[cpu] = task
    comparison = divergence(
        on_cpus([*events, ("resched", 0, runs[0], runs[0])]), on_cpus([*events, ("new", 0, runs[0], 20)])
    )
    for lane in (comparison.baseline, comparison.own):
        last = {run.cpu: run for run in lane.runs}
        assert sorted(last) == list(range(CPUS))
        assert len({run.end_ns for run in last.values()}) == 1
        for cpu in range(CPUS):
            cpu_runs = [run for run in lane.runs if run.cpu == cpu]
            assert all(run.end_ns == later.begin_ns for run, later in pairwise(cpu_runs))
