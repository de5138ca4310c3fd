"""Costs by function, file and entry: every sum is the whole, to the instruction."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from ajuste.model.cost import (
    CostComparison,
    CostFunction,
    CostGraph,
    CostPart,
    CostRow,
    Costs,
    CostTask,
    NamedCosts,
    Space,
)
from ajuste_guest.analysis.costs import MOST_ROWS, Namer, compare_costs, entry_costs, function_costs, named_costs
from costs import costs

NAMES = {
    0x401000: ("main", "/bin/program"),
    0x401100: ("compute", "/bin/program"),
    0x402000: ("compute", "/lib/libc.so.6"),
    0xFFFFFFFF81000000: ("__x64_sys_read", ""),
    0xFFFFFFFF81000100: ("asm_exc_page_fault", ""),
}


def namer(space: Space, address: int) -> CostFunction:
    name, file = NAMES[address]
    return CostFunction(name=name, file=file, space=space)


def naming(_: CostTask) -> Namer:
    return namer


def named() -> st.SearchStrategy[NamedCosts]:
    return costs().map(lambda recorded: named_costs(recorded, naming))


def wholes(graph: CostGraph, trial: str) -> list[int]:
    whole = list(getattr(graph, trial))
    for place in range(len(whole) - 1, 0, -1):
        whole[graph.parents[place]] += whole[place]
    return whole


@given(costs())
def test_the_functions_add_up_to_the_whole(recorded: Costs) -> None:
    resolved = named_costs(recorded, naming)
    assert resolved.instructions == recorded.instructions
    assert sum(cost.itself for cost in function_costs(resolved).values()) == recorded.instructions
    frames = [(NAMES[f.address], f.calls, f.instructions) for task in recorded.tasks for f in task.frames]
    for function, cost in function_costs(resolved).items():
        matches = [(calls, count) for name, calls, count in frames if name == (function.name, function.file)]
        assert (cost.calls, cost.itself) == (sum(calls for calls, _ in matches), sum(count for _, count in matches))
        assert cost.itself <= cost.caused <= recorded.instructions


@given(named())
def test_files_that_are_called_alike_are_one_and_nothing_is_lost(original: NamedCosts) -> None:
    merged = original.with_files(lambda path: "/bin/program" if path else "")
    assert merged.instructions == original.instructions
    assert len(set(merged.functions)) == len(merged.functions)
    before = Counter[str]()
    for function, cost in function_costs(original).items():
        before[function.name] += cost.itself
    assert {function.name: cost.itself for function, cost in function_costs(merged).items()} == before
    assert original.with_files(lambda path: path) == original


@given(named(), named())
def test_a_difference_adds_up_to_the_whole_difference(baseline: NamedCosts, other: NamedCosts) -> None:
    comparison = compare_costs(baseline, other)
    assert (comparison.baseline, comparison.total) == (baseline.instructions, other.instructions)
    rows = [*comparison.functions, comparison.others]
    assert sum(row.difference for row in rows) == other.instructions - baseline.instructions
    assert sum(row.difference for row in comparison.parts) == other.instructions - baseline.instructions
    calls = [sum(sum(part.calls) for part in side.parts) for side in (baseline, other)]
    assert calls == [sum(row.baseline_calls for row in rows), sum(row.own_calls for row in rows)]


@given(named(), named())
def test_a_graph_has_all_instructions_of_both(baseline: NamedCosts, other: NamedCosts) -> None:
    graph = compare_costs(baseline, other).graph
    assert (sum(graph.baseline), sum(graph.own)) == (baseline.instructions, other.instructions)
    kernel = compare_costs(baseline, other).kernel_graph
    in_kernel = [sum(part.kernel for part in side.parts) for side in (baseline, other)]
    assert in_kernel == [sum(kernel.baseline), sum(kernel.own)]
    assert graph.parents[0] == -1
    assert all(0 <= parent < place for place, parent in enumerate(graph.parents[1:], start=1))
    roles = {graph.names[graph.labels[place]]: place for place, parent in enumerate(graph.parents) if parent == 0}
    for part in other.parts:
        if part.role in roles:
            assert wholes(graph, "own")[roles[part.role]] == part.user + part.kernel
    assert len(roles) > 0 or not any(wholes(graph, "own"))


@given(named(), named())
def test_a_difference_turns_its_sign_with_the_sides(first: NamedCosts, second: NamedCosts) -> None:
    there, back = compare_costs(first, second), compare_costs(second, first)
    for rows in ("functions", "parts", "entries"):
        assert turned(getattr(there, rows)) == [(row.name, row.file, -row.difference) for row in getattr(back, rows)]
    assert there.others.difference == -back.others.difference
    assert (there.graph.baseline, there.graph.own) == (back.graph.own, back.graph.baseline)
    assert (there.graph.names, there.graph.parents) == (back.graph.names, back.graph.parents)


def turned(rows: Sequence[CostRow]) -> list[tuple[str, str, int]]:
    return [(row.name, row.file, row.difference) for row in rows]


@given(costs(), named(), st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(recorded: Costs, baseline: NamedCosts, order: random.Random) -> None:
    tasks = list(recorded.tasks)
    order.shuffle(tasks)
    other = recorded.model_copy(update={"tasks": tuple(tasks)})
    assert compare_costs(baseline, named_costs(other, naming)) == compare_costs(baseline, named_costs(recorded, naming))


@given(named())
def test_nothing_differs_from_itself(side: NamedCosts) -> None:
    comparison = compare_costs(side, side)
    assert comparison.functions == ()
    assert comparison.others.difference == 0
    assert NamedCosts.model_validate_json(side.model_dump_json()) == side
    assert CostComparison.model_validate_json(comparison.model_dump_json()) == comparison


def made(*frames: tuple[int, str, str, int, int]) -> NamedCosts:
    """Return costs of one task: for each frame its parent, function, way of entry, calls and instructions."""
    addresses = {name: address for address, (name, _) in NAMES.items() if address != 0x402000}
    listed = [
        {
            "parent": parent,
            "space": "kernel" if addresses[name] > 2**63 else "user",
            "address": addresses[name],
            "kind": kind,
            "calls": calls,
            "instructions": instructions,
        }
        for parent, name, kind, calls, instructions in frames
    ]
    counted = Counter({str(frame["space"]): 0 for frame in listed})
    for frame in listed:
        counted[str(frame["space"])] += int(frame["instructions"])
    task = {
        **{"number": 0, "parent": None, "role": "workload", "entry": None, "code": [], "switches_in": 1},
        **{"loads": 0, "stores": 0, "branches": 0, "user": counted["user"], "kernel": counted["kernel"]},
        "frames": listed,
    }
    totals = {"user": counted["user"], "kernel": counted["kernel"], "faulted": 0}
    return named_costs(Costs.model_validate({"version": 1, "depth": "functions", **totals, "tasks": [task]}), naming)


RECURSION = made(
    (-1, "main", "start", 1, 10),
    (0, "compute", "call", 3, 20),
    (1, "compute", "call", 2, 30),
    (2, "__x64_sys_read", "syscall", 4, 40),
    (3, "asm_exc_page_fault", "exception", 5, 50),
    (3, "asm_exc_page_fault", "interrupt", 6, 60),
)


def test_recursion_is_counted_once_and_an_interrupt_is_nobodys() -> None:
    by_function = {function.name: cost for function, cost in function_costs(RECURSION).items()}
    assert (by_function["compute"].calls, by_function["compute"].itself, by_function["compute"].caused) == (5, 50, 140)
    assert by_function["main"].caused == 150
    assert by_function["__x64_sys_read"].caused == 90
    assert by_function["asm_exc_page_fault"].caused == 110


def test_system_calls_exceptions_and_interrupts_have_rows_of_their_own() -> None:
    by_entry = {name: (cost.calls, cost.itself, cost.caused) for name, cost in entry_costs(RECURSION).items()}
    assert by_entry == {
        "read": (4, 40, 90),
        "page_fault (exception)": (5, 50, 50),
        "page_fault (interrupt)": (6, 60, 60),
    }


@settings(max_examples=20)
@given(st.lists(st.integers(0, 99), min_size=MOST_ROWS + 5, max_size=60))
def test_what_is_not_told_by_name_is_told_together(figures: list[int]) -> None:
    names = [f"function_{number}" for number in range(len(figures))]
    many = RECURSION.model_copy(
        update={
            "functions": tuple(CostFunction(name=name, file="", space="kernel") for name in names),
            "parts": tuple(
                part.model_copy(
                    update={
                        "parents": (-1,) * len(figures),
                        "functions": tuple(range(len(figures))),
                        "kinds": (0,) * len(figures),
                        "calls": (1,) * len(figures),
                        "instructions": tuple(figures),
                        "user": 0,
                        "kernel": sum(figures),
                    }
                )
                for part in RECURSION.parts
            ),
        }
    )
    comparison = compare_costs(made(), many)
    assert [row.own for row in comparison.functions] == [count for count in sorted(figures)[::-1][:MOST_ROWS] if count]
    assert comparison.others.name == str(len(figures) - len(comparison.functions))
    assert comparison.others.own == sum(figures) - sum(row.own for row in comparison.functions)


def test_a_planted_change_is_told_from_more_calls() -> None:
    """More calls of two functions, and a few instructions more in each of one."""
    before = made(
        (-1, "main", "start", 1, 10), (0, "compute", "call", 100, 2_000), (0, "__x64_sys_read", "syscall", 10, 700)
    )
    after = made(
        (-1, "main", "start", 1, 10), (0, "compute", "call", 900, 18_000), (0, "__x64_sys_read", "syscall", 50, 4_000)
    )
    comparison = compare_costs(before, after)
    assert [row.name for row in comparison.functions] == ["compute", "__x64_sys_read"]
    assert [(row.name, row.by_each) for row in comparison.changed] == [("__x64_sys_read", 500.0)]
    assert "Each call of __x64_sys_read carries out 80 instead of 70 itself." in comparison.sentences


@given(named(), named())
def test_what_each_call_makes_is_part_of_the_difference(baseline: NamedCosts, other: NamedCosts) -> None:
    for row in compare_costs(baseline, other).changed:
        more_calls = (row.own_calls - row.baseline_calls) * row.baseline / row.baseline_calls
        assert round(row.by_each + more_calls, 3) == row.difference


def test_new_code_stands_before_what_varies_a_little() -> None:
    before = made((-1, "main", "start", 10, 1_000_000), (0, "__x64_sys_read", "syscall", 100, 4_000))
    after = made((-1, "main", "start", 10, 1_010_000), (0, "__x64_sys_read", "syscall", 100, 7_000))
    assert [row.name for row in compare_costs(before, after).changed] == ["__x64_sys_read", "main"]


def test_events_of_the_kernel_are_told_by_what_they_mean() -> None:
    """The scheduler knows nothing of BBR's losses and PREEMPT_RT's locks."""

    def calling(**calls: int) -> NamedCosts:
        names = {name.replace("__dot__", "."): count for name, count in calls.items()}
        return NamedCosts(
            faulted=0,
            functions=tuple(CostFunction(name=name, file="", space="kernel") for name in names),
            parts=(
                CostPart(
                    role="workload",
                    tasks=1,
                    user=0,
                    kernel=len(names),
                    switches_in=1,
                    **dict.fromkeys(("loads", "stores", "branches"), 0),
                    parents=(-1,) * len(names),
                    functions=tuple(range(len(names))),
                    kinds=(0,) * len(names),
                    calls=tuple(names.values()),
                    instructions=(1,) * len(names),
                ),
            ),
        )

    cubic = calling(__tcp_retransmit_skb=400, tcp_enter_recovery=90, tcp_enter_loss=10, tcp_pace_kick=0)
    bbr = calling(__tcp_retransmit_skb=410, tcp_enter_recovery=20, tcp_enter_loss=10, tcp_pace_kick=700)
    (text,) = (sentence for sentence in compare_costs(cubic, bbr).sentences if sentence.startswith("In the kernel"))
    assert "700 waits for TCP's pacing instead of 0; 20 TCP loss recoveries instead of 90; 30 reductions" in text
    assert "retransmitted" not in text
    locks = compare_costs(calling(rt_mutex_slowlock__dot__constprop=3), calling(rt_spin_lock=9_000)).sentences
    assert "In the kernel: 9,000 sleeping locks taken instead of 0." in locks
