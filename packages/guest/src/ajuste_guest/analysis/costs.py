"""Costs of the functions of a trial, and where those of two trials differ. Pure and exact: sums are of integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ajuste.model.cost import (
    KINDS,
    ROLES,
    CostComparison,
    CostFunction,
    CostGraph,
    CostPart,
    CostRow,
    Costs,
    CostTask,
    Kind,
    NamedCosts,
    Role,
    Space,
    function_words,
)
from ajuste.model.modelled import Missed, ModelledComparison, ModelledMachine, ModelledRow
from ajuste.model.wording import amount, listed, number, percent, signed

MOST_ROWS: Final = 25
"""Functions that are listed by name; the others are summed up."""
MOST_CHANGED: Final = 10
MOST_FRAMES: Final = 1_500
"""Frames that a graph has."""

MOST_NAMED: Final = 3

_INTERRUPT: Final = KINDS.index("interrupt")
# The least share of a difference that is named.
_MOSTLY: Final = 0.5
# Smaller fractions of a graph are hardly visible.
_FINEST: Final = 2_000
_REST: Final = ("", "")

# What a call of a function of the kernel means; the compiler adds to some names behind a dot.
# Source: net/ipv4/tcp_output.c, tcp_input.c and tcp_bbr.c, kernel/locking/rtmutex.c and spinlock_rt.c of Linux.
_EVENTS: Final = {
    "retransmitted TCP segments": ("__tcp_retransmit_skb",),
    "TCP loss recoveries": ("tcp_enter_recovery",),
    "TCP retransmission timeouts": ("tcp_enter_loss",),
    "reductions of TCP's congestion window": ("tcp_enter_recovery", "tcp_enter_loss", "tcp_enter_cwr"),
    "waits for TCP's pacing": ("tcp_pace_kick",),
    "sleeping locks taken": ("rt_spin_lock", "rt_read_lock", "rt_write_lock", "rt_mutex_lock"),
    "waits for a sleeping lock": ("rtlock_slowlock_locked", "rt_mutex_slowlock", "rwbase_write_lock"),
}
_LEAST_EVENTS: Final = 5
_LEAST_RATIO: Final = 1.1

Namer = Callable[[Space, int], CostFunction]
"""Returns the function at an address of a space."""

KeyT = TypeVar("KeyT")

# Instructions, and what they missed.
_Done = tuple[int, Missed]
_NOTHING: Final[_Done] = (0, Missed())


@dataclass(frozen=True)
class Cost:
    """The cost of one function: how often it was entered, what it carried out ``itself``, and what it ``caused``.

    That is itself and all that it called. A function that calls itself is counted once, and interrupts are nobody's.
    """

    calls: int
    itself: int
    caused: int


NO_COST: Final = Cost(0, 0, 0)
# A frame by its parent, its function and how it was entered.
_Key = tuple[int, int, int]


def named_costs(costs: Costs, find_namer: Callable[[CostTask], Namer]) -> NamedCosts:
    """Merge the call trees of each role by function names; tasks of one program have the same namer."""
    functions = _Functions()
    merging: dict[Role, _Merging] = {}
    for task in costs.tasks:
        merging.setdefault(task.role, _Merging()).add(task, find_namer(task), functions)
    parts = tuple(merged.part(role) for role, merged in sorted(merging.items()))
    return NamedCosts(faulted=costs.faulted, functions=tuple(functions.all), parts=parts, machine=costs.machine)


@dataclass
class _Functions:
    # All functions and their places; `known` are those that were looked up.
    all: dict[CostFunction, int] = field(default_factory=dict)
    known: dict[tuple[Namer, Space, int], int] = field(default_factory=dict)

    def place(self, namer: Namer, space: Space, address: int) -> int:
        key = (namer, space, address)
        if (number := self.known.get(key)) is None:
            number = self.known[key] = self.all.setdefault(namer(space, address), len(self.all))
        return number


@dataclass
class _Merging:
    # The tasks of one role, and of each frame of their merged tree its place, its calls and its instructions.
    tasks: list[CostTask] = field(default_factory=list)
    frames: dict[_Key, list[int]] = field(default_factory=dict)
    misses: dict[int, Missed] = field(default_factory=dict)

    def add(self, task: CostTask, namer: Namer, functions: _Functions) -> None:
        self.tasks.append(task)
        at: list[int] = []
        for frame in task.frames:
            parent = at[frame.parent] if frame.parent >= 0 else -1
            function = functions.place(namer, frame.space, frame.address)
            merged = self.frames.setdefault((parent, function, KINDS.index(frame.kind)), [len(self.frames), 0, 0])
            at.append(merged[0])
            merged[1] += frame.calls
            merged[2] += frame.instructions
            if any(frame.misses):
                self.misses[merged[0]] = self.misses.get(merged[0], Missed()).plus(frame.misses)

    def part(self, role: Role) -> CostPart:
        def total(name: str) -> int:
            return sum(getattr(task, name) for task in self.tasks)

        return CostPart(
            role=role,
            tasks=len(self.tasks),
            user=total("user"),
            kernel=total("kernel"),
            loads=total("loads"),
            stores=total("stores"),
            branches=total("branches"),
            switches_in=total("switches_in"),
            parents=tuple(parent for parent, _, _ in self.frames),
            functions=tuple(function for _, function, _ in self.frames),
            kinds=tuple(kind for _, _, kind in self.frames),
            calls=tuple(calls for _, calls, _ in self.frames.values()),
            instructions=tuple(instructions for _, _, instructions in self.frames.values()),
            misses=self.misses,
        )


def function_costs(costs: NamedCosts) -> dict[CostFunction, Cost]:
    """Return the costs of every function; what they carried out themselves adds up to the whole."""
    calls, itself, caused = ([0] * len(costs.functions) for _ in range(3))
    for part in costs.parts:
        with_calls = _caused(part)
        for place, function in enumerate(part.functions):
            calls[function] += part.calls[place]
            itself[function] += part.instructions[place]
            caused[function] += 0 if _is_within_itself(part, place) else with_calls[place]
    return dict(zip(costs.functions, map(Cost, calls, itself, caused), strict=True))


def _caused(part: CostPart) -> list[int]:
    # Return what each frame and those that it called carried out, without interrupts that came meanwhile.
    totals = list(part.instructions)
    for place in range(len(totals) - 1, -1, -1):
        if part.parents[place] >= 0 and part.kinds[place] != _INTERRUPT:
            totals[part.parents[place]] += totals[place]
    return totals


def _is_within_itself(part: CostPart, place: int) -> bool:
    function, at = part.functions[place], place
    while part.parents[at] >= 0 and part.kinds[at] != _INTERRUPT:
        at = part.parents[at]
        if part.functions[at] == function:
            return True
    return False


def compare_costs(baseline: NamedCosts, other: NamedCosts) -> CostComparison:
    """Compare two trials of one study, to the instruction."""
    both = (function_costs(baseline), function_costs(other))
    rows = [
        _row(function.name, function.file, (side.get(function, NO_COST) for side in both), "itself")
        for function in dict.fromkeys((*both[0], *both[1]))
    ]
    ranked = sorted(rows, key=lambda row: (-abs(row.difference), -max(row.own, row.baseline), row.name, row.file))
    top = [row for row in ranked[:MOST_ROWS] if row.difference]
    greatest = sorted(rows, key=lambda row: (-row.own, -row.baseline, row.name, row.file))[:MOST_ROWS]
    by_each = sorted(rows, key=lambda row: (-_change(row), row.name, row.file))[:MOST_CHANGED]
    changed = tuple(row for row in by_each if abs(row.by_each) >= 1)
    parts, entries = tuple(_part_rows(baseline, other)), _entry_rows(baseline, other)
    first, *more = _sentences(parts, top, changed, entries)
    return CostComparison(
        sentences=(first, *_events(*both), *more),
        parts=parts,
        functions=tuple(top),
        others=_together(ranked[len(top) :]),
        most=tuple(greatest),
        changed=changed,
        entries=tuple(entries),
        graph=_graph(_laid_over(baseline, other)),
        kernel_graph=_graph(_laid_over(baseline, other, of_kernel=True)),
        notes=tuple(dict.fromkeys((*baseline.notes, *other.notes))),
        modelled=compare_modelled(baseline, other),
    )


def _change(row: CostRow) -> float:
    # Return the squared change by what was to be expected (Pearson's statistic): new code stands out from loops.
    return row.by_each**2 / max(1.0, row.own - row.by_each)


def _row(name: str, file: str, both: Iterable[Cost], what: str) -> CostRow:
    before, after = both
    return CostRow(
        name=name,
        file=file,
        baseline_calls=before.calls,
        own_calls=after.calls,
        baseline=getattr(before, what),
        own=getattr(after, what),
    )


def _together(rows: Iterable[CostRow]) -> CostRow:
    every = list(rows)
    return CostRow(
        name=str(len(every)),
        baseline_calls=sum(row.baseline_calls for row in every),
        own_calls=sum(row.own_calls for row in every),
        baseline=sum(row.baseline for row in every),
        own=sum(row.own for row in every),
    )


def _part_rows(baseline: NamedCosts, other: NamedCosts) -> Iterator[CostRow]:
    # Yield a row for each role; it was entered as often as its tasks were switched to.
    both = [
        {part.role: Cost(part.switches_in, part.user + part.kernel, 0) for part in costs.parts}
        for costs in (baseline, other)
    ]
    for role in sorted({*both[0], *both[1]}, key=list(ROLES).index):
        yield _row(role, "", (side.get(role, NO_COST) for side in both), "itself")


def entry_costs(costs: NamedCosts) -> dict[str, Cost]:
    """Return the costs of every system call, exception and interrupt by name."""
    entries: dict[str, Cost] = {}
    for part in costs.parts:
        caused = _caused(part)
        for place, (which, kind, calls) in enumerate(zip(part.functions, part.kinds, part.calls, strict=True)):
            name = _entry_name(costs.functions[which], KINDS[kind])
            if name:
                before = entries.get(name, NO_COST)
                itself = part.instructions[place]
                entries[name] = Cost(before.calls + calls, before.itself + itself, before.caused + caused[place])
    return entries


def _entry_name(function: CostFunction, kind: Kind) -> str:
    # Exceptions and interrupts begin in assembly. Source: arch/x86/include/asm/idtentry.h.
    if kind in ("exception", "interrupt"):
        name = function.name.removeprefix("asm_")
        return f"{name.removeprefix('exc_').removeprefix('sysvec_')} ({kind})" if name != function.name else ""
    return function.system_call


def _entry_rows(baseline: NamedCosts, other: NamedCosts) -> list[CostRow]:
    both = [entry_costs(costs) for costs in (baseline, other)]
    rows = [
        _row(name, "", (side.get(name, NO_COST) for side in both), "caused")
        for name in dict.fromkeys((*both[0], *both[1]))
    ]
    return sorted(rows, key=lambda row: (-max(row.baseline, row.own), row.name))[:MOST_ROWS]


def _sentences(
    parts: Sequence[CostRow], functions: Sequence[CostRow], changed: Sequence[CostRow], entries: Sequence[CostRow]
) -> Iterator[str]:
    baseline, total = sum(row.baseline for row in parts), sum(row.own for row in parts)
    if baseline == total:
        yield f"Both trials carry out {_in_words(total)} instructions, not one more or less."
    else:
        what = f"{_in_words(abs(total - baseline))} {'more' if total > baseline else 'fewer'} instructions"
        change = f", {signed(100 * (total / baseline - 1))} %" if baseline else ""
        counts = f"{_in_words(total)} instead of {_in_words(baseline)}{change}"
        yield f"This configuration carries out {what} than the baseline ({counts})."
        shares = [f"{ROLES[row.name]} {signed(row.difference)}" for row in parts if row.difference]
        if len(shares) > 1:
            yield f"By task: {', '.join(shares)}."
    if functions:
        named = functions[:MOST_NAMED]
        share = sum(row.difference for row in named) / (total - baseline) if total != baseline else 0
        together = f": together {percent(round(share, 2))} of the whole" if _MOSTLY <= share <= 1 else ""
        names = listed([f"{function_words(row.name, row.file)} ({signed(row.difference)})" for row in named])
        yield f"The functions that differ most are {names}{together}."
    for row in changed[:1]:
        each = [
            number(count / calls) for count, calls in ((row.own, row.own_calls), (row.baseline, row.baseline_calls))
        ]
        yield f"Each call of {function_words(row.name, row.file)} carries out {each[0]} instead of {each[1]} itself."
    differing = sorted((row for row in entries if row.difference), key=lambda row: (-abs(row.difference), row.name))
    for row in differing[:MOST_NAMED]:
        times = "once" if row.own_calls == 1 else f"{number(row.own_calls)} times"
        if row.own_calls != row.baseline_calls:
            times += f" instead of {number(row.baseline_calls)}"
        yield f"{row.name}: {times}, {signed(row.difference)} instructions with all that it calls."


def _events(baseline: Mapping[CostFunction, Cost], other: Mapping[CostFunction, Cost]) -> Iterator[str]:
    # Yield which events of the kernel became more or fewer, the greatest change first.
    changes = []
    for event, names in _EVENTS.items():
        before, now = (_calls(costs, names) for costs in (baseline, other))
        if abs(now - before) >= _LEAST_EVENTS and max(now, before) >= _LEAST_RATIO * min(now, before):
            changes.append(
                (max(now, before) / max(1, min(now, before)), f"{number(now)} {event} instead of {number(before)}")
            )
    if changes:
        yield f"In the kernel: {'; '.join(words for _, words in sorted(changes, key=lambda change: -change[0]))}."


def _calls(costs: Mapping[CostFunction, Cost], names: Sequence[str]) -> int:
    return sum(
        cost.calls
        for function, cost in costs.items()
        if function.space == "kernel" and function.name.partition(".")[0] in names
    )


def _in_words(count: int) -> str:
    for power, word in ((9, "billion"), (6, "million")):
        if count >= 10**power:
            return f"{count / 10**power:.3g} {word}"
    return number(count)


@dataclass
class _Frame:
    # `itself` and `whole`: what it carried out, and what all below it did too, in each of the trials.
    parent: int
    path: tuple[tuple[str, str], ...]
    itself: list[int]
    whole: list[int]

    @property
    def weight(self) -> int:
        return max(self.whole)


def _graph(frames: list[_Frame]) -> CostGraph:
    # Return the greatest frames; the others below each of them are one frame without a name.
    for frame in reversed(frames[1:]):
        for trial, whole in enumerate(frame.whole):
            frames[frame.parent].whole[trial] += whole
    heaviest = sorted(frames, key=lambda frame: (-frame.weight, frame.path))[:MOST_FRAMES]
    least = frames[0].weight / _FINEST
    visible = {frame.path: frame for frame in heaviest if frame.weight >= least}
    for frame in frames[1:]:
        if frame.path not in visible and frame.path[:-1] in visible:
            rest = visible.setdefault((*frame.path[:-1], _REST), _Frame(0, (*frame.path[:-1], _REST), [0, 0], [0, 0]))
            rest.itself = [before + more for before, more in zip(rest.itself, frame.whole, strict=True)]
    paths = {path: place for place, path in enumerate(sorted(visible))}
    names = {name: place for place, name in enumerate(dict.fromkeys(path[-1][0] for path in paths))}
    return CostGraph(
        names=tuple(names),
        parents=tuple(paths.get(path[:-1], -1) for path in paths),
        labels=tuple(names[path[-1][0]] for path in paths),
        baseline=tuple(visible[path].itself[0] for path in paths),
        own=tuple(visible[path].itself[1] for path in paths),
    )


def _laid_over(baseline: NamedCosts, other: NamedCosts, *, of_kernel: bool = False) -> list[_Frame]:
    # Return the frames of both trials, those of one path together; or only kernel frames, without their callers.
    frames = [_Frame(-1, (("all", ""),), [0, 0], [0, 0])]
    places: dict[tuple[int, str, str], int] = {}

    def placed(parent: int, name: str, file: str) -> int:
        place = places.setdefault((parent, name, file), len(frames))
        if place == len(frames):
            frames.append(_Frame(parent, (*frames[parent].path, (name, file)), [0, 0], [0, 0]))
        return place

    for trial, costs in enumerate((baseline, other)):
        labels = [
            (function_words(function.name, function.file), function.file, function.space)
            for function in costs.functions
        ]
        for part in costs.parts:
            at: list[int] = []
            top = placed(0, part.role, "")
            for parent, which, instructions in zip(part.parents, part.functions, part.instructions, strict=True):
                name, file, space = labels[which]
                above = at[parent] if parent >= 0 else top
                if of_kernel and space == "user":
                    at.append(above)
                    continue
                at.append(placed(above, name, file))
                frames[at[-1]].itself[trial] += instructions
                frames[at[-1]].whole[trial] += instructions
    return frames


def compare_modelled(baseline: NamedCosts, other: NamedCosts) -> ModelledComparison | None:
    """Return both trials on the machine they were modelled on; ``None`` if the machines differ."""
    machine = other.machine
    if machine is None or baseline.machine != machine:
        return None
    roles = [{part.role: (part.user + part.kernel, part.missed) for part in costs.parts} for costs in (baseline, other)]
    in_order = sorted({*roles[0], *roles[1]}, key=list(ROLES).index)
    parts = tuple(_modelled_row(role, "", role, (roles[0], roles[1])) for role in in_order)
    both = (_by_function(baseline), _by_function(other))
    rows = [
        _modelled_row(function.name, function.file, function, both) for function in dict.fromkeys((*both[0], *both[1]))
    ]

    def most(row: ModelledRow) -> tuple[float, str, str]:
        return -abs(row.difference(machine)), row.name, row.file

    functions = tuple(sorted(rows, key=most)[:MOST_ROWS])
    sentences = (*_modelled_sentences(machine, parts), *_function_sentences(machine, functions))
    return ModelledComparison(machine=machine, sentences=sentences, parts=parts, functions=functions)


def _modelled_row(
    name: str, file: str, key: KeyT, both: tuple[Mapping[KeyT, _Done], Mapping[KeyT, _Done]]
) -> ModelledRow:
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


def _modelled_sentences(machine: ModelledMachine, parts: tuple[ModelledRow, ...]) -> Iterator[str]:
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


def _function_sentences(machine: ModelledMachine, functions: tuple[ModelledRow, ...]) -> Iterator[str]:
    differing = [(row, row.difference(machine)) for row in functions if row.difference(machine)][:MOST_NAMED]
    if differing:
        names = [
            f"{function_words(row.name, row.file)} ({'+' if more > 0 else ''}{amount(more, 's')})"
            for row, more in differing
        ]
        yield f"The functions whose modelled time differs most are {listed(names)}."


def _waits(machine: ModelledMachine, instructions: int, missed: Missed) -> float:
    parts = machine.parts(instructions, missed)
    whole = sum(part.seconds for part in parts)
    return round(1 - parts[0].seconds / whole, 3) if whole else 0.0
