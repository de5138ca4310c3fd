"""The page of a class: points, predictions against outcomes, what most got wrong, and what speaks against whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from ajuste.model.wording import count_of
from ajuste.report.document import Cell, Column, Notes, Paragraph, Picture, Report, Row, Section, Subsection, Table
from ajuste.report.plots.plot import LegendEntry, Plot, figure, line_at, plain, scatter, variable
from ajuste_course.marking import Mark, Marked
from ajuste_course.sheet import AskStep, PredictStep, Sheet

_BINS: Final = 10
_HEIGHT: Final = 320
_LOG_TICKS: Final = (0.01, 0.03, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 100)


def class_report(sheet: Sheet, marked: Sequence[Marked]) -> Report:
    """Return the page of a class."""
    files = [each for each in marked if each.file]
    counted = [each for each in files if each.counts and each.is_accepted]
    refused = sum(each.decision == "not accepted" for each in files)
    words = f"{count_of(len(files), 'hand-in')}: {refused} not accepted"
    if absent := len(marked) - len(files):
        words += f"; {count_of(absent, 'student')} handed in nothing"
    if counted:
        words += (
            f"; half of the others have {median(each.points for each in counted):g} of {sheet.points:g} points or more"
        )
    sections = [
        *_points(sheet, counted),
        *_questions(sheet, counted),
        *_predictions(sheet, counted),
        *_to_mark(counted),
        *_against(marked),
        _hand_ins(sheet, marked),
    ]
    return Report(
        title=f"{sheet.title}: the class",
        headline=f"{words}.",
        question=sheet.summary,
        sections=tuple(sections),
        stem=f"class-{sheet.name}",
    )


def _points(sheet: Sheet, counted: Sequence[Marked]) -> Iterator[Section]:
    if not counted:
        return
    width = sheet.points / _BINS or 1
    bins = Counter(min(int(each.points / width), _BINS - 1) for each in counted)
    centres = [(place + 0.5) * width for place in range(_BINS)]
    trace = {
        "type": "bar",
        "x": centres,
        "y": [bins[place] for place in range(_BINS)],
        "width": width * 0.9,
        "marker": {"color": variable("series-1")},
        "hoverinfo": "text",
        "hovertext": [f"{place * width:g} to {(place + 1) * width:g} points: {bins[place]}" for place in range(_BINS)],
    }
    plot = Plot(
        name="class-points",
        title="Students by points",
        description="How many students have how many points, without what a person marks.",
        figure=figure(
            [trace],
            xaxis={"title": {"text": "points"}, "range": [0, sheet.points]},
            yaxis={"rangemode": "tozero", "tickformat": "d", "dtick": _step(max(bins.values()))},
        ),
        height=_HEIGHT,
    )
    yield Section("Points", (Picture(plot),), name="points")


def _step(most: int) -> int:
    # Whole numbers of students, and about five of them.
    return max(1, round(most / 5))


def _questions(sheet: Sheet, counted: Sequence[Marked]) -> Iterator[Section]:
    rows = []
    for step in sheet.kind(AskStep):
        marks = [mark for each in counted for mark in each.marks if mark.name == step.name]
        judged = [mark for mark in marks if mark.state in ("right", "wrong", "missing")]
        if not judged:
            continue
        right = sum(mark.state == "right" for mark in judged)
        wrong = Counter(mark.value for mark in judged if mark.state == "wrong").most_common(1)
        most = f"{wrong[0][0]} ({wrong[0][1]})" if wrong else ""
        rows.append(
            (
                right / len(judged),
                Row((step.name, Cell(f"{100 * right / len(judged):.0f} %"), Cell(f"{len(judged)}"), most)),
            )
        )
    if rows:
        columns = (
            Column("Question", figure=False),
            Column("Right"),
            Column("Answers"),
            Column("Most frequent wrong answer", figure=False),
        )
        hardest = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
        yield Section(
            "Questions, the hardest first",
            (Table.of(columns, hardest, "questions"),),
            name="questions",
            short="Questions",
        )


def _predictions(sheet: Sheet, counted: Sequence[Marked]) -> Iterator[Section]:
    for step in sheet.kind(PredictStep):
        pairs = [
            (each.student, *each.predictions[step.name])
            for each in counted
            if step.name in each.predictions and each.predictions[step.name][1].estimate is not None
        ]
        if not pairs:
            continue
        right = sum(bool(outcome.direction) for _, _, outcome in pairs)
        sized = sum(bool(outcome.size) for _, _, outcome in pairs)
        x = [math.log10(prediction.ratio) for _, prediction, _ in pairs]
        y = [math.log10(outcome.estimate or 1) for _, _, outcome in pairs]
        low, high = min(*x, *y, -0.1) - 0.1, max(*x, *y, 0.1) + 0.1
        ticks = [value for value in _LOG_TICKS if low <= math.log10(value) <= high]
        axis = {
            "range": [low, high],
            "tickvals": [math.log10(value) for value in ticks],
            "ticktext": [f"×{value:g}" for value in ticks],
        }
        marks = scatter(
            "markers",
            x,
            y,
            [
                plain(f"{student}: predicted ×{prediction.ratio:.3g}, measured ×{outcome.estimate:.3g}")
                for student, prediction, outcome in pairs
            ],
            marker={"color": variable("series-1"), "size": 9, "opacity": 0.7},
        )
        equal = scatter("lines", [low, high], [low, high], line={"color": variable("line"), "width": 1})
        plot = Plot(
            name=f"predicted-{step.name}",
            title=f"{step.name}: predicted and measured ratio to the baseline",
            description=f"{right} of {len(pairs)} students predicted the direction, {sized} also the size.",
            figure=figure(
                [equal, marks],
                xaxis={**axis, "title": {"text": "predicted"}},
                yaxis={**axis, "title": {"text": "measured"}},
                shapes=[line_at(x=0), line_at(y=0)],
            ),
            height=_HEIGHT + 60,
            legend=(
                LegendEntry("a student", "circle", "series-1"),
                LegendEntry("predicted as measured", "line-ew", "line"),
            ),
        )
        yield Section(
            f"Prediction {step.name}",
            (
                Paragraph(
                    f"{right} of {len(pairs)} students predicted the direction, {sized} of them also the size "
                    f"(within a factor of {step.within:g})."
                ),
                Picture(plot),
            ),
            name=f"prediction-{step.name}",
            short=f"Prediction {step.name}",
        )


def _to_mark(counted: Sequence[Marked]) -> Iterator[Section]:
    waiting: dict[str, list[tuple[str, Mark]]] = {}
    for each in counted:
        for mark in each.marks:
            if mark.state == "to mark":
                waiting.setdefault(mark.name, []).append((each.student, mark))
    blocks = []
    for name, texts in waiting.items():
        columns = (Column("Student", figure=False), Column("Text", figure=False), Column("Points at most"))
        rows = [Row((student, mark.value, Cell(f"{mark.most:g}"))) for student, mark in texts]
        rubric = texts[0][1].rubric
        blocks.append(
            Subsection(name, (*([Paragraph(rubric)] if rubric else []), Table.of(columns, rows, f"texts-{name}")), name)
        )
    if blocks:
        note = Paragraph("Fill in the column points of to-mark.csv, and mark again with --points to-mark.csv.")
        yield Section("Texts to mark", (note, *blocks), name="to-mark", short="To mark")


def _against(marked: Sequence[Marked]) -> Iterator[Section]:
    rows = [
        Row((each.student or each.file, each.decision, finding), marked=each.decision == "not accepted")
        for each in marked
        for finding in (*([each.problem] if each.problem else []), *(finding.text for finding in each.findings))
    ]
    if not rows:
        return
    columns = (
        Column("Student", figure=False),
        Column("Decision", figure=False),
        Column("What was found", figure=False),
    )
    yield Section(
        "To look at",
        (
            Notes(("What is not accepted is proved by figures. A remark is none: talk to the student first.",)),
            Table.of(columns, rows, "findings"),
        ),
        name="findings",
        short="To look at",
    )


def _hand_ins(sheet: Sheet, marked: Sequence[Marked]) -> Section:
    names = [step.name for step in sheet.steps if isinstance(step, PredictStep | AskStep)]
    columns = (
        Column("Student", figure=False),
        Column("Decision", figure=False),
        Column("Points"),
        Column("To mark"),
        *(Column(name) for name in names),
    )
    rows = []
    for each in sorted(marked, key=lambda each: (each.student, each.file)):
        by_name = {mark.name: mark for mark in each.marks}
        cells = [_cell(by_name[name].points) if name in by_name else Cell("", missing=each.problem) for name in names]
        points = Cell("", missing=each.problem) if each.problem else Cell(f"{each.points:g}")
        rows.append(Row((each.student or each.file, each.decision, points, Cell(f"{each.open_points:g}"), *cells)))
    return Section("All hand-ins", (Table.of(columns, rows, "hand-ins"),), name="all", short="All", depth="detail")


def _cell(points: float | None) -> Cell:
    return Cell("?", missing="a person marks it") if points is None else Cell(f"{points:g}")
