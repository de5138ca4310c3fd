"""Several runs side by side: their answers, their effects, and what differs between their environments."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ajuste.model.origin import IMPORTED
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import visible_line
from ajuste.report.console import Console, Sheet, plain_table, sheet
from ajuste.report.document import Fact
from ajuste.report.format import NOTHING
from ajuste.report.method import environment_facts

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class SideBySide:
    """``effects`` has by configuration and metric the verdict of each run, if it has one; ``differing`` the facts that
    are not alike in all environments, by their way through these.
    """

    results: tuple[Results, ...]
    names: tuple[str, ...]
    effects: Mapping[tuple[str, str], Sequence[Verdict | None]]
    differing: tuple[tuple[str, Sequence[str | None]], ...]


def side_by_side(results: Sequence[Results]) -> SideBySide:
    """Return the comparison of those runs, which are called A, B, … in their order."""
    names = tuple(_LETTERS[place] if place < len(_LETTERS) else str(place + 1) for place in range(len(results)))
    flat = [dict(_flat(environment_facts(run.environment))) for run in results]
    facts = dict.fromkeys(fact for environment in flat for fact in environment)
    rows = [(fact, [environment.get(fact) for environment in flat]) for fact in facts]
    differing = tuple((fact, values) for fact, values in rows if len(set(values)) > 1)
    return SideBySide(tuple(results), names, _effects(results), differing)


def effect_text(verdict: Verdict | None) -> str | None:
    """Return ``−12.3 % improves``; ``None`` without a verdict."""
    if verdict is None:
        return None
    return f"{verdict.effect} {verdict.verdict}"


def side_by_side_document(compared: SideBySide) -> dict[str, Any]:
    """Return the comparison for programs."""
    names = ("run", "study", "created", "digest", "stopped", "answer")
    return {
        "runs": [
            {name: getattr(run, name) for name in names} | {IMPORTED.key: IMPORTED.of(run)} for run in compared.results
        ],
        "effects": [
            {
                "configuration": configuration,
                "metric": metric,
                "verdicts": [verdict and verdict.model_dump(mode="json") for verdict in verdicts],
            }
            for (configuration, metric), verdicts in compared.effects.items()
        ],
        "environment": [{"name": name, "values": values} for name, values in compared.differing],
    }


def print_side_by_side(compared: SideBySide) -> None:
    """Print the answers, their effects, and what differs between their environments."""
    effects = (
        (f"{metric}, {configuration}", [effect_text(verdict) for verdict in verdicts])
        for (configuration, metric), verdicts in compared.effects.items()
    )
    with sheet(Console(file=sys.stdout)) as page:
        for name, run in named_runs(compared):
            page.line(f"{name}  {run.run}  {visible_line(run.study)}{'  imported' if IMPORTED.of(run) else ''}")
            page.say(run.answer or run.stopped_because, indent=3)
        _print_table(page, "Effects", compared.names, effects, why_no_effects(compared) or "Nothing.")
        _print_table(page, "What differs between their environments", compared.names, compared.differing, "Nothing.")


def why_no_effects(compared: SideBySide) -> str:
    """Return why there are no effects to compare; empty where there may be."""
    if any(len(run.configurations) > 1 for run in compared.results):
        return ""
    return "None: each run has one configuration. To compare settings, measure them in one run."


def _print_table(
    page: Sheet, title: str, runs: Sequence[str], rows: Iterable[tuple[str, Sequence[str | None]]], none: str
) -> None:
    page.heading(title)
    table = plain_table()
    for name in ("", *runs):
        table.add_column(name, overflow="fold")
    for name, values in rows:
        table.add_row(visible_line(name), *(NOTHING if value is None else visible_line(value) for value in values))
    if table.row_count:
        page.table(table)
    else:
        page.say(none, indent=2)


def named_runs(compared: SideBySide) -> Iterator[tuple[str, Results]]:
    """Yield each run with its letter."""
    return zip(compared.names, compared.results, strict=True)


def _effects(results: Sequence[Results]) -> dict[tuple[str, str], list[Verdict | None]]:
    effects: dict[tuple[str, str], list[Verdict | None]] = {}
    for place, run in enumerate(results):
        for verdict in run.verdicts:
            verdicts = effects.setdefault((verdict.configuration, verdict.metric), [None] * len(results))
            verdicts[place] = verdict
    return effects


def _flat(facts: Iterable[Fact], way: str = "") -> Iterator[tuple[str, str]]:
    for fact in facts:
        name = f"{way}{fact.name}"
        if text := ", ".join(part for part in (fact.text, *fact.items) if part):
            yield name, text
        yield from _flat(fact.parts, f"{name} / ")
