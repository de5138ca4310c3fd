"""What costs what, and in which functions the costs of two trials differ. Pure, and exact: every sum is that of
integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ajuste.analysis.modelled import MOST_NAMED, compare_modelled
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
from ajuste.model.modelled import Missed
from ajuste.model.wording import listed, number, percent, signed

MOST_ROWS: Final = 25
"""So many functions are told by name; the others are told together."""
MOST_CHANGED: Final = 10
MOST_FRAMES: Final = 1_500
"""So many frames a graph has at most."""

_INTERRUPT: Final = KINDS.index("interrupt")

Namer = Callable[[Space, int], CostFunction]
"""Which function is at an address of a space."""


@dataclass(frozen=True)
class Cost:
    """Of one function: how often it was entered, what it carried out ``itself``, and what it ``caused``: that, and all
    that it called. A function that calls itself is counted once, and interrupts are nobody's.
    """

    calls: int
    itself: int
    caused: int


NO_COST: Final = Cost(0, 0, 0)
_Key = tuple[int, int, int]
"""A frame by its parent, its function and how it was entered."""


def named_costs(costs: Costs, namer_of: Callable[[CostTask], Namer]) -> NamedCosts:
    """The call trees of the tasks of each role, merged into one by the names of the functions. Tasks of one program
    have the same namer.
    """
    functions = _Functions()
    merging: dict[Role, _Merging] = {}
    for task in costs.tasks:
        merging.setdefault(task.role, _Merging()).add(task, namer_of(task), functions)
    parts = tuple(one.part(role) for role, one in sorted(merging.items()))
    return NamedCosts(faulted=costs.faulted, functions=tuple(functions.all), parts=parts, machine=costs.machine)


@dataclass
class _Functions:
    """All functions, and where each is among them; ``known`` are those that were looked up."""

    all: dict[CostFunction, int] = field(default_factory=dict)
    known: dict[tuple[Namer, Space, int], int] = field(default_factory=dict)

    def place(self, namer: Namer, space: Space, address: int) -> int:
        key = (namer, space, address)
        if (found := self.known.get(key)) is None:
            found = self.known[key] = self.all.setdefault(namer(space, address), len(self.all))
        return found


@dataclass
class _Merging:
    """The tasks of one role, and of each frame of their merged tree its place, its calls and its instructions."""

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


def costs_of_functions(costs: NamedCosts) -> dict[CostFunction, Cost]:
    """Of every function; what they carried out themselves adds up to the whole."""
    calls, itself, caused = ([0] * len(costs.functions) for _ in range(3))
    for part in costs.parts:
        with_calls = _caused(part)
        for place, function in enumerate(part.functions):
            calls[function] += part.calls[place]
            itself[function] += part.instructions[place]
            caused[function] += 0 if _is_within_itself(part, place) else with_calls[place]
    return dict(zip(costs.functions, map(Cost, calls, itself, caused), strict=True))


def _caused(part: CostPart) -> list[int]:
    """What each frame and those that it called carried out, without interrupts that came meanwhile."""
    totals = list(part.instructions)
    for place in range(len(totals) - 1, -1, -1):
        if part.parents[place] >= 0 and part.kinds[place] != _INTERRUPT:
            totals[part.parents[place]] += totals[place]
    return totals


def _is_within_itself(part: CostPart, place: int) -> bool:
    """Whether the same function called it, perhaps through others."""
    own, at = part.functions[place], place
    while part.parents[at] >= 0 and part.kinds[at] != _INTERRUPT:
        at = part.parents[at]
        if part.functions[at] == own:
            return True
    return False


def compared(baseline: NamedCosts, own: NamedCosts) -> CostComparison:
    """Two trials of one study, to the instruction."""
    both = (costs_of_functions(baseline), costs_of_functions(own))
    rows = [
        _row(function.name, function.file, (found.get(function, NO_COST) for found in both), "itself")
        for function in dict.fromkeys((*both[0], *both[1]))
    ]
    ranked = sorted(rows, key=lambda row: (-abs(row.difference), -max(row.own, row.baseline), row.name, row.file))
    shown = [row for row in ranked[:MOST_ROWS] if row.difference]
    greatest = sorted(rows, key=lambda row: (-row.own, -row.baseline, row.name, row.file))[:MOST_ROWS]
    by_each = sorted(rows, key=lambda row: (-_change(row), row.name, row.file))[:MOST_CHANGED]
    changed = tuple(row for row in by_each if abs(row.by_each) >= 1)
    parts, entries = tuple(_part_rows(baseline, own)), _entry_rows(baseline, own)
    return CostComparison(
        sentences=tuple(_sentences(parts, shown, changed, entries)),
        parts=parts,
        functions=tuple(shown),
        others=_together(ranked[len(shown) :]),
        most=tuple(greatest),
        changed=changed,
        entries=tuple(entries),
        graph=_graph(_laid_over(baseline, own)),
        kernel_graph=_graph(_laid_over(baseline, own, of_kernel=True)),
        notes=tuple(dict.fromkeys((*baseline.notes, *own.notes))),
        modelled=compare_modelled(baseline, own),
    )


def _change(row: CostRow) -> float:
    """How much a call of it changed: what that makes in all, squared, by what was to be expected (Pearson's statistic).
    Loops of which each round depends on the data vary a little; new code stands out.
    """
    return row.by_each**2 / max(1.0, row.own - row.by_each)


def _row(name: str, file: str, both: Iterable[Cost], what: str) -> CostRow:
    before, own = both
    return CostRow(
        name=name,
        file=file,
        baseline_calls=before.calls,
        own_calls=own.calls,
        baseline=getattr(before, what),
        own=getattr(own, what),
    )


def _together(rows: Iterable[CostRow]) -> CostRow:
    found = list(rows)
    return CostRow(
        name=str(len(found)),
        baseline_calls=sum(row.baseline_calls for row in found),
        own_calls=sum(row.own_calls for row in found),
        baseline=sum(row.baseline for row in found),
        own=sum(row.own for row in found),
    )


def _part_rows(baseline: NamedCosts, own: NamedCosts) -> Iterator[CostRow]:
    """Of each role; it was entered as often as its tasks were switched to."""
    both = [
        {part.role: Cost(part.switches_in, part.user + part.kernel, 0) for part in one.parts} for one in (baseline, own)
    ]
    for role in sorted({*both[0], *both[1]}, key=list(ROLES).index):
        yield _row(role, "", (found.get(role, NO_COST) for found in both), "itself")


def costs_of_entries(costs: NamedCosts) -> dict[str, Cost]:
    """Of every system call, exception and interrupt by name."""
    found: dict[str, Cost] = {}
    for part in costs.parts:
        caused = _caused(part)
        for place, (which, kind, calls) in enumerate(zip(part.functions, part.kinds, part.calls, strict=True)):
            name = _entry_name(costs.functions[which], KINDS[kind])
            if name:
                before = found.get(name, NO_COST)
                own = part.instructions[place]
                found[name] = Cost(before.calls + calls, before.itself + own, before.caused + caused[place])
    return found


def _entry_name(function: CostFunction, kind: Kind) -> str:
    """Exceptions and interrupts begin in assembly. Source: arch/x86/include/asm/idtentry.h."""
    if kind in ("exception", "interrupt"):
        name = function.name.removeprefix("asm_")
        return f"{name.removeprefix('exc_').removeprefix('sysvec_')} ({kind})" if name != function.name else ""
    return function.system_call


def _entry_rows(baseline: NamedCosts, own: NamedCosts) -> list[CostRow]:
    """Those that cost most in either trial."""
    both = [costs_of_entries(one) for one in (baseline, own)]
    rows = [
        _row(name, "", (found.get(name, NO_COST) for found in both), "caused")
        for name in dict.fromkeys((*both[0], *both[1]))
    ]
    return sorted(rows, key=lambda row: (-max(row.baseline, row.own), row.name))[:MOST_ROWS]


# The same in words.


def _sentences(
    parts: Sequence[CostRow], functions: Sequence[CostRow], changed: Sequence[CostRow], entries: Sequence[CostRow]
) -> Iterator[str]:
    baseline, own = sum(row.baseline for row in parts), sum(row.own for row in parts)
    if baseline == own:
        yield f"Both trials carry out {_in_words(own)} instructions, not one more or less."
    else:
        what = f"{_in_words(abs(own - baseline))} {'more' if own > baseline else 'fewer'} instructions"
        change = f", {signed(100 * (own / baseline - 1))} %" if baseline else ""
        counts = f"{_in_words(own)} instead of {_in_words(baseline)}{change}"
        yield f"This configuration carries out {what} than the baseline ({counts})."
        shares = [f"{ROLES[row.name]} {signed(row.difference)}" for row in parts if row.difference]
        if len(shares) > 1:
            yield f"By task: {', '.join(shares)}."
    if functions:
        named = functions[:MOST_NAMED]
        share = sum(row.difference for row in named) / (own - baseline) if own != baseline else 0
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


_MOSTLY: Final = 0.5
"""What makes up less of a difference is told without its share."""


def _in_words(count: int) -> str:
    """``12.9 million``."""
    for power, word in ((9, "billion"), (6, "million")):
        if count >= 10**power:
            return f"{count / 10**power:.3g} {word}"
    return number(count)


# The call trees of two trials, one over the other.


@dataclass
class _Frame:
    """``itself`` and ``whole``: what it carried out, and what all below it did too, in each of the trials."""

    parent: int
    path: tuple[tuple[str, str], ...]
    itself: list[int]
    whole: list[int]

    @property
    def weight(self) -> int:
        return max(self.whole)


def _graph(frames: list[_Frame]) -> CostGraph:
    """The greatest frames; the others below each of them are one frame without a name."""
    for frame in reversed(frames[1:]):
        for trial, whole in enumerate(frame.whole):
            frames[frame.parent].whole[trial] += whole
    heaviest = sorted(frames, key=lambda frame: (-frame.weight, frame.path))[:MOST_FRAMES]
    least = frames[0].weight / _FINEST
    shown = {frame.path: frame for frame in heaviest if frame.weight >= least}
    for frame in frames[1:]:
        if frame.path not in shown and frame.path[:-1] in shown:
            rest = shown.setdefault((*frame.path[:-1], _REST), _Frame(0, (*frame.path[:-1], _REST), [0, 0], [0, 0]))
            rest.itself = [before + more for before, more in zip(rest.itself, frame.whole, strict=True)]
    paths = {path: place for place, path in enumerate(sorted(shown))}
    names = {name: place for place, name in enumerate(dict.fromkeys(path[-1][0] for path in paths))}
    return CostGraph(
        names=tuple(names),
        parents=tuple(paths.get(path[:-1], -1) for path in paths),
        labels=tuple(names[path[-1][0]] for path in paths),
        baseline=tuple(shown[path].itself[0] for path in paths),
        own=tuple(shown[path].itself[1] for path in paths),
    )


_FINEST: Final = 2_000
"""What is less than one part in so many is hardly seen."""
_REST: Final = ("", "")


def _laid_over(baseline: NamedCosts, own: NamedCosts, *, of_kernel: bool = False) -> list[_Frame]:
    """The frames of both trials, those of one path together; or only what is ``of_kernel``, without its callers."""
    frames = [_Frame(-1, (("all", ""),), [0, 0], [0, 0])]
    places: dict[tuple[int, str, str], int] = {}

    def placed(parent: int, name: str, file: str) -> int:
        place = places.setdefault((parent, name, file), len(frames))
        if place == len(frames):
            frames.append(_Frame(parent, (*frames[parent].path, (name, file)), [0, 0], [0, 0]))
        return place

    for trial, costs in enumerate((baseline, own)):
        labels = [(function_words(one.name, one.file), one.file, one.space) for one in costs.functions]
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
