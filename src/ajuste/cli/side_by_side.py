"""Several runs side by side: their answers, their effects, and what differs between their environments."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import typer

from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import change, visible_line
from ajuste.report.console import Console, Sheet, plain_table, sheet
from ajuste.report.document import Fact
from ajuste.report.environment import environment_facts
from ajuste.report.format import NOTHING
from ajuste.run.outcome import results_of
from ajuste.store.store import Run, Store

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def show_side_by_side(runs: Sequence[Run], store: Store, *, as_json: bool) -> None:
    """Print them: the answers first."""
    results = [results_of(run, store) for run in runs]
    effects = _effects(results)
    differing = _differing([run.environment for run in runs])
    if as_json:
        typer.echo(json.dumps(_document(results, effects, differing), indent=2))
        return
    names = [_LETTERS[place] if place < len(_LETTERS) else str(place + 1) for place in range(len(runs))]
    with sheet(Console(file=sys.stdout)) as page:
        for name, one in zip(names, results, strict=True):
            page.line(f"{name}  {one.run}  {visible_line(one.study)}")
            page.say(one.answer or one.stopped_because, indent=3)
        _table(page, "Effects", ["", *names], _effect_rows(effects))
        _table(page, "What differs between their environments", ["", *names], differing)


def _table(page: Sheet, title: str, head: Sequence[str], rows: Iterable[tuple[str, Sequence[str | None]]]) -> None:
    page.heading(title)
    table = plain_table()
    for name in head:
        table.add_column(name, overflow="fold")
    for name, values in rows:
        table.add_row(visible_line(name), *(NOTHING if value is None else visible_line(value) for value in values))
    if table.row_count:
        page.table(table)
    else:
        page.say("Nothing.", indent=2)


def _effects(results: Sequence[Results]) -> dict[tuple[str, str], list[Verdict | None]]:
    """By configuration and metric the verdict of each run, if it has one."""
    found: dict[tuple[str, str], list[Verdict | None]] = {}
    for place, one in enumerate(results):
        for verdict in one.verdicts:
            own = found.setdefault((verdict.configuration, verdict.metric), [None] * len(results))
            own[place] = verdict
    return found


def _effect_rows(effects: Mapping[tuple[str, str], Sequence[Verdict | None]]) -> Iterator[tuple[str, list[str | None]]]:
    for (configuration, metric), verdicts in effects.items():
        yield f"{metric}, {configuration}", [_effect(one) for one in verdicts]


def _effect(verdict: Verdict | None) -> str | None:
    if verdict is None:
        return None
    return f"{change(verdict.estimate, verdict.scale, verdict.unit)} {verdict.verdict}"


def _differing(environments: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str | None]]]:
    """Facts that are not alike in all, by their way through the environment."""
    flat = [dict(_flat(environment_facts(one))) for one in environments]
    names = dict.fromkeys(name for one in flat for name in one)
    rows = [(name, [one.get(name) for one in flat]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def _flat(facts: Iterable[Fact], way: str = "") -> Iterator[tuple[str, str]]:
    for fact in facts:
        name = f"{way}{fact.name}"
        if text := ", ".join(part for part in (fact.text, *fact.items) if part):
            yield name, text
        yield from _flat(fact.parts, f"{name} / ")


def _document(
    results: Sequence[Results],
    effects: Mapping[tuple[str, str], Sequence[Verdict | None]],
    differing: Sequence[tuple[str, Sequence[str | None]]],
) -> dict[str, Any]:
    names = ("run", "study", "created", "digest", "stopped", "answer")
    return {
        "runs": [{name: getattr(one, name) for name in names} for one in results],
        "effects": [
            {
                "configuration": configuration,
                "metric": metric,
                "verdicts": [one and one.model_dump(mode="json") for one in verdicts],
            }
            for (configuration, metric), verdicts in effects.items()
        ],
        "environment": [{"name": name, "values": values} for name, values in differing],
    }
