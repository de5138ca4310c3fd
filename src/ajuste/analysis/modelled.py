"""What a modelled machine makes of two trials: misses and modelled time, by task and by function. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

from ajuste.model.cost import ROLES, CostFunction, NamedCosts, function_words
from ajuste.model.modelled import Missed, ModelledComparison, ModelledMachine, ModelledRow
from ajuste.model.wording import amount, listed, number, percent, signed

MOST_FUNCTIONS: Final = 25

MOST_NAMED: Final = 3

Key = TypeVar("Key")

_Done = tuple[int, Missed]
"""Instructions, and what they missed."""
_NOTHING: Final[_Done] = (0, Missed())


def compare_modelled(baseline: NamedCosts, other: NamedCosts) -> ModelledComparison | None:
    """Return both trials on the machine they were modelled on; ``None`` if the machines differ."""
    machine = other.machine
    if machine is None or baseline.machine != machine:
        return None
    parts = tuple(_part_rows(baseline, other))
    both = (_by_function(baseline), _by_function(other))
    rows = [_row(function.name, function.file, function, both) for function in dict.fromkeys((*both[0], *both[1]))]

    def most(row: ModelledRow) -> tuple[float, str, str]:
        return -abs(row.difference(machine)), row.name, row.file

    functions = tuple(sorted(rows, key=most)[:MOST_FUNCTIONS])
    sentences = (*_sentences(machine, parts), *_of_functions(machine, functions))
    return ModelledComparison(machine=machine, sentences=sentences, parts=parts, functions=functions)


def _part_rows(baseline: NamedCosts, other: NamedCosts) -> Iterator[ModelledRow]:
    both = [{part.role: (part.user + part.kernel, part.missed) for part in costs.parts} for costs in (baseline, other)]
    for role in sorted({*both[0], *both[1]}, key=list(ROLES).index):
        yield _row(role, "", role, (both[0], both[1]))


def _row(name: str, file: str, key: Key, both: tuple[Mapping[Key, _Done], Mapping[Key, _Done]]) -> ModelledRow:
    before, after = (side.get(key, _NOTHING) for side in both)
    return ModelledRow(
        name=name,
        file=file,
        baseline_instructions=before[0],
        own_instructions=after[0],
        baseline=before[1],
        own=after[1],
    )


def _by_function(costs: NamedCosts) -> dict[CostFunction, _Done]:
    totals: dict[CostFunction, _Done] = {}
    for part in costs.parts:
        for place, which in enumerate(part.functions):
            function = costs.functions[which]
            instructions, missed = totals.get(function, _NOTHING)
            more = part.misses.get(place)
            totals[function] = (instructions + part.instructions[place], missed.plus(more) if more else missed)
    return totals


def _sentences(machine: ModelledMachine, parts: tuple[ModelledRow, ...]) -> Iterator[str]:
    """On the workload only, which the metrics measure too."""
    row = next((part for part in parts if part.name == "workload"), None)
    if row is None:
        return
    before, after = row.seconds(machine)
    change = f", {signed(100 * (after / before - 1))} %" if before else ""
    waits = (
        _waits(machine, row.baseline_instructions, row.baseline),
        _waits(machine, row.own_instructions, row.own),
    )
    times = f"{amount(after, 's')} instead of {amount(before, 's')}{change}"
    yield f"Modelled on {machine.title}, the workload takes {times}."
    yield (f"{percent(waits[1])} of that are waits for caches, memory and branches, instead of {percent(waits[0])}.")
    levels = {
        "L1 caches": (row.own.l1i + row.own.l1d, row.baseline.l1i + row.baseline.l1d),
        **({"L2 caches": (row.own.l2, row.baseline.l2)} if machine.l2 else {}),
        "LLC": (row.own.llc, row.baseline.llc),
        "TLBs": (row.own.walks, row.baseline.walks),
    }
    misses = [f"its {level} {number(after)} instead of {number(before)}" for level, (after, before) in levels.items()]
    yield f"Misses of the model: {', '.join(misses)}."
    if row.own.lost or row.baseline.lost:
        yield (
            f"{number(row.own.lost)} of the lines that it misses were there until another CPU stored to them, "
            f"instead of {number(row.baseline.lost)}."
        )
    if row.own.remote or row.baseline.remote:
        yield (
            f"{number(row.own.remote)} lines come from the memory of another node, instead of "
            f"{number(row.baseline.remote)}."
        )


def _of_functions(machine: ModelledMachine, functions: tuple[ModelledRow, ...]) -> Iterator[str]:
    differing = [(row, row.difference(machine)) for row in functions if row.difference(machine)][:MOST_NAMED]
    if differing:
        names = [
            f"{function_words(row.name, row.file)} ({'+' if more > 0 else ''}{amount(more, 's')})"
            for row, more in differing
        ]
        yield f"The functions whose modelled time differs most are {listed(names)}."


def _waits(machine: ModelledMachine, instructions: int, missed: Missed) -> float:
    """Return the share of the modelled time that is not the instructions' own."""
    parts = machine.parts(instructions, missed)
    whole = sum(part.seconds for part in parts)
    return round(1 - parts[0].seconds / whole, 3) if whole else 0.0
