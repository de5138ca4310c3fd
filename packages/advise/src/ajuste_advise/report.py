"""The report of advice, for terminal, page and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ajuste.model.cause import CAUSES
from ajuste.model.wording import count_of, listed, percent, sentence_start
from ajuste.report.document import (
    Block,
    Cell,
    Column,
    CommandBlock,
    Folded,
    Notes,
    Paragraph,
    Picture,
    Report,
    Row,
    RowGroup,
    Section,
    Table,
)
from ajuste.report.format import duration
from ajuste.report.plots.plot import Plot, figure, level_axis, plain, variable
from ajuste.report.verdicts import word_badge
from ajuste_advise.answer import PARTS, effect_text, where_sentence
from ajuste_advise.model import Advice, HotSpot, Reason, TimeShare, Tried

_REASONS: Final[dict[Reason, str]] = {
    "idle": "Had no chance to matter",
    "cause": "Act on nothing that takes time here",
    "risk": "Left out for their risk",
    "locked": "Cannot be changed here",
    "absent": "Not on this machine",
    "time": "Not within what was allowed",
}
_LEFT_OUT: Final[dict[Reason, str]] = {
    "locked": "that cannot be changed here",
    "risk": "for their risk",
    "time": "for lack of time or trials",
}
_STAGES: Final = {
    "look": "the workload as it is",
    "screen": "each level by itself",
    "search": "combinations",
    "ablation": "each line's share",
    "proof": "all lines, in fresh blocks",
}


def advice_report(advice: Advice) -> Report:
    """Return the answer, where the time goes, what was tried, and what was not and why."""
    sections = (
        *_advised(advice),
        *_candidates(advice),
        _time(advice),
        *_tried(advice),
        *_untried(advice),
        _method(advice),
    )
    return Report(
        title="Advice",
        headline=advice.answer,
        question=f"What can be changed so that {advice.workload} gets better?",
        sections=sections,
        lead=tuple(_lead(advice)),
        stem="advice",
    )


def _lead(advice: Advice) -> Iterator[Block]:
    if notes := advice.notes:
        yield Notes(notes)
    counts = [
        f"{count_of(len(rows), 'setting')} {words}"
        for why, words in _LEFT_OUT.items()
        if (rows := [row for row in advice.untried if row.why == why])
    ]
    if counts:
        yield Paragraph(f"Not tried: {listed(counts)} (--verbose names them).", tone="dim")


def _advised(advice: Advice) -> Iterator[Section]:
    if not advice.lines:
        return
    columns = (
        Column("Setting", figure=False),
        Column("Level", figure=False),
        Column("Share", figure=False, optional=True),
    )
    rows = (Row((line.setting, line.level, line.share or "all of it"), line.note) for line in advice.lines)
    blocks: list[Block] = [Table.of(columns, rows, name="lines")]
    if advice.others:
        blocks.append(Paragraph(f"Other metrics: {listed([effect_text(verdict) for verdict in advice.others])}."))
    if advice.limits:
        blocks.append(Paragraph(f"Constraints that hold: {listed([limit.text for limit in advice.limits])}."))
    blocks += [Paragraph(sentence) for sentence in advice.why]
    if advice.commands:
        blocks.append(CommandBlock("Next", advice.commands))
    yield Section("What to change", tuple(blocks), name="lines")


def _candidates(advice: Advice) -> Iterator[Section]:
    if advice.tried or not advice.candidates:
        return
    columns = (Column("Setting", figure=False), Column("Levels", figure=False), Column("Acts on", figure=False))
    rows = [
        Row((each.setting, ", ".join(each.levels), ", ".join(CAUSES[cause].title for cause in each.causes)))
        for each in advice.candidates
    ]
    first = sum(each.first for each in advice.candidates) or len(rows)
    blocks: list[Block] = [Table.of(columns, rows[:first], name="candidates")]
    if rows[first:]:
        blocks.append(Folded("Seldom matter much", (Table.of(columns, rows[first:], name="others"),)))
    about = "Nothing was changed. Without --dry-run each is tried."
    yield Section("What may matter", tuple(blocks), name="candidates", about=about, brief=1)


def _time(advice: Advice) -> Section:
    look = advice.look
    sentence = Paragraph(f"{where_sentence(look)}.")
    columns = (Column("Where the time goes", figure=False), Column("Share of the time"))
    rows = (Row((sentence_start(PARTS[part.where]), percent(round(part.share, 3)))) for part in look.shares)
    table = Table.of(columns, rows, name="time")
    blocks: list[Block] = [sentence, *((Picture(_time_plot(look.shares)),) if look.shares else ()), table]
    blocks += _hot(look.functions, "Function", "functions") + _hot(
        look.calls, "System call, fault or interrupt", "calls"
    )
    evidence = (Row((CAUSES[cause].title, words)) for cause, words in look.causes.items())
    cause_columns = (Column("Settings can act on", figure=False), Column("Evidence", figure=False))
    blocks.append(Folded("Causes, with their evidence", (Table.of(cause_columns, evidence, name="causes"),)))
    about = "Waiting overlaps with running, so the shares do not add up to 100 %."
    return Section("Where the time goes", tuple(blocks), name="time", about=about, brief=2)


def _hot(spots: tuple[HotSpot, ...], title: str, name: str) -> list[Block]:
    if not spots:
        return []
    columns = (Column(title, figure=False), Column("Share of instructions"))
    return [Table.of(columns, (Row((spot.name, percent(round(spot.share, 3)))) for spot in spots), name=name)]


def _time_plot(shares: tuple[TimeShare, ...]) -> Plot:
    upwards = list(reversed(shares))
    trace: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "x": [100 * part.share for part in upwards],
        "y": list(range(len(upwards))),
        "width": 0.6,
        "marker": {"color": variable("series-1")},
        "hoverinfo": "text",
        "hovertext": [f"{plain(PARTS[part.where])}: {plain(percent(round(part.share, 3)))}" for part in upwards],
    }
    words = "; ".join(f"{PARTS[part.where]} {percent(round(part.share, 2))}" for part in shares)
    most = max(100.0, *(100 * part.share for part in shares))
    return Plot(
        name="time-by-cause",
        title="Time by cause, in % of the elapsed time",
        description=f"{sentence_start(words)}.",
        figure=figure(
            [trace],
            xaxis={"range": [0, 1.05 * most], "title": {"text": "% of the elapsed time"}},
            yaxis=level_axis([PARTS[part.where] for part in upwards], width=28),
        ),
        height=90 + 36 * len(upwards),
        wide=True,
    )


def _tried(advice: Advice) -> Iterator[Section]:
    if not advice.tried:
        return
    columns = (
        Column("Setting", figure=False),
        Column("Level", figure=False),
        Column("Change"),
        Column("Interval", optional=True),
        Column("Verdict", figure=False),
    )
    table = Table.of(columns, map(_tried_row, advice.tried), name="tried")
    about = f"Each level by itself against the machine as it is, on {advice.look.metric}."
    yield Section("What was tried", (table,), name="tried", about=about, depth="detail")


def _tried_row(row: Tried) -> Row:
    if row.verdict is None:
        return Row((row.setting, row.level, Cell("", missing=row.problem or "not measured"), "", ""))
    verdict = row.verdict
    if verdict.low is None and verdict.high is None:
        return Row((row.setting, row.level, verdict.effect, "", "too few blocks for a verdict"))
    return Row((row.setting, row.level, verdict.effect, verdict.interval, word_badge(verdict.verdict)))


def _untried(advice: Advice) -> Iterator[Section]:
    groups = tuple(
        RowGroup(title, rows, count_of(len(rows), "setting"))
        for why, title in _REASONS.items()
        if (rows := tuple(Row((row.setting, row.words)) for row in advice.untried if row.why == why))
    )
    if groups:
        columns = (Column("Setting", figure=False), Column("Why not", figure=False))
        table = Table(columns, groups, name="untried", brief=True)
        yield Section("What was not tried, and why", (table,), name="untried", depth="detail")


def _method(advice: Advice) -> Section:
    columns = (Column("Stage", figure=False), Column("Run", figure=False), Column("Trials"))
    rows = (Row((Cell(stage.name, _STAGES[stage.name]), stage.run, str(stage.trials))) for stage in advice.stages)
    trials = sum(stage.trials for stage in advice.stages)
    look = advice.look
    about = (
        f"{count_of(trials, 'trial')}; each run can be shown by ajuste report RUN. Typical trial: "
        f"{duration(look.elapsed_s)}. The verdict comes from the proof alone, whose seeds no other stage used."
    )
    return Section(
        "How it was found", (Table.of(columns, rows, name="stages"),), name="stages", about=about, depth="detail"
    )
