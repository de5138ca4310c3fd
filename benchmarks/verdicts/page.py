"""The simulation's tables, written into docs/reference/simulated-verdicts.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.verdicts.cells import Cell
from benchmarks.verdicts.counts import KINDS, Counts
from benchmarks.verdicts.methods import METHODS, Method
from benchmarks.verdicts.noise import NOISES, Noise
from benchmarks.verdicts.planning import LOOK, Plan

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "simulated-verdicts.md"
BEGINS: Final = "<!-- from here to the end mark: written by `python -m benchmarks {command}` -->\n"
ENDS: Final = "<!-- end mark -->\n"

Find = Callable[[str, float, str], Cell]


def write(text: str, page: Path = PAGE, command: str = "verdicts") -> None:
    """Puts ``text`` between the marks of ``page`` for ``command``; ValueError if it has none."""
    begins = BEGINS.format(command=command)
    before, mark, rest = page.read_text().partition(begins)
    _, end, after = rest.partition(ENDS)
    if not mark or not end:
        raise ValueError(f"{page.name} has no marks to write between")
    page.write_text(f"{before}{begins}\n{text}\n{ENDS}{after}")


def tables(cells: Sequence[Cell], plans: Sequence[Plan], counts: Sequence[Counts]) -> str:
    """Return all tables as Markdown."""
    by_key = {(cell.noise, cell.effect, cell.method): cell for cell in cells}

    def find(noise: str, effect: float, method: str) -> Cell:
        return by_key[noise, effect, method]

    studies = f"{cells[0].studies:,}"
    parts = [
        f"**Nothing to be found: how many of {studies} studies find something, in per cent.** More than 5 is bold.\n",
        _by_method(lambda noise, method: _share(find(noise.name, 0.0, method.name))),
        "**An effect of 2 %: how many studies find it, in per cent, and (in brackets) after how many trials of both "
        "configurations together, on average.**\n",
        _by_method(lambda noise, method: _seen_share(find(noise.name, 0.02, method.name))),
        "**Ajuste in full**: wrong verdicts without an effect with Wilson's 95 % interval; the same summed over all "
        "effects (the wrong direction, or equivalent where the effect is larger); how often the interval has the truth "
        "in it when the study stops, and at every one of the looks up to the 60th block (the lowest over all effects); "
        "trials on average.\n",
        _in_full(find, sorted({cell.effect for cell in cells})),
        "**What the noises are**\n",
        _table(("noise", "what happens to a trial's time"), [(n.title, n.what) for n in NOISES], "---"),
        f"**Is the predicted number of blocks a good guide?** The number of blocks that decided, divided by the number "
        f"that was predicted after the {LOOK}th block, in the studies that were still undecided then.\n",
        _planning(plans),
        "**Counts**: how many studies, in per cent, ever find a difference in looks up to the 60th block; how often "
        "the interval ever excludes the true difference. Overdispersed counts have the variance m + 2 m² for a mean of "
        "m; the binomial test is one made for counts of Poisson.\n",
        _counts(counts),
    ]
    return "\n".join(parts)


def _by_method(cell: Callable[[Noise, Method], str]) -> str:
    head = ("method", *(noise.title for noise in NOISES))
    return _table(head, [(method.title, *(cell(noise, method) for noise in NOISES)) for method in METHODS])


def _share(cell: Cell) -> str:
    share = 100 * cell.wrong / cell.studies
    return f"**{share:.1f}**" if share > 5 else f"{share:.1f}"


def _seen_share(cell: Cell) -> str:
    return f"{100 * cell.seen / cell.studies:.0f} ({cell.trials:.0f})"


def _in_full(find: Find, effects: Sequence[float]) -> str:
    rows = []
    for noise in NOISES:
        cells_of_noise = [find(noise.name, effect, "ajuste") for effect in effects]
        none, studies = cells_of_noise[0], sum(cell.studies for cell in cells_of_noise)
        low, high = none.wrong_range
        trials = (find(noise.name, effect, "ajuste").trials for effect in (0.02, 0.1))
        rows.append(
            (
                noise.title,
                f"{_percent(none.wrong, none.studies)} ({100 * low:.1f} to {100 * high:.1f})",
                _percent(sum(cell.wrong for cell in cells_of_noise), studies),
                min(_percent(cell.held or 0, cell.studies) for cell in cells_of_noise),
                min(_percent(cell.always or 0, cell.studies) for cell in cells_of_noise),
                *(f"{figure:.1f}" for figure in trials),
            )
        )
    head = (
        "noise",
        "wrong, no effect",
        "wrong, all",
        "holds at the stop",
        "holds always",
        "trials, 2 %",
        "trials, 10 %",
    )
    return _table(head, rows)


def _percent(count: int, of: int) -> str:
    return f"{100 * count / of:.1f}"


def _planning(plans: Sequence[Plan]) -> str:
    titles = {noise.name: noise.title for noise in NOISES}
    head = ("noise", "effect", "studies", "quarter", "median", "three quarters")
    rows = [
        (
            titles[plan.noise],
            f"{100 * plan.effect:g} %",
            f"{plan.studies}",
            *(f"{figure:.2f}" for figure in (plan.quarter, plan.median, plan.three_quarters)),
        )
        for plan in plans
    ]
    return _table(head, rows)


def _counts(counts: Sequence[Counts]) -> str:
    head = ("counts", "baseline's mean", "times", "Ajuste finds", "excludes the truth", "binomial test finds")
    rows = [
        (
            KINDS[count.kind],
            f"{count.rate:g}",
            f"{count.factor:g}",
            *(_percent(figure, count.studies) for figure in (count.found, count.missed, count.binomial)),
        )
        for count in counts
    ]
    return _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], align: str = "---:") -> str:
    lines = [head, ["---"] + [align] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
