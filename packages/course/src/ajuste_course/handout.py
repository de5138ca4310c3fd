"""A run as a handout of two pages: question, method, figure, verdict and limits, as PDF or Typst, in any language."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ajuste.machine.files import write_text
from ajuste.machine.home import require_extra
from ajuste.model.continuation import REPRODUCE
from ajuste.model.error import RequestError
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import amount, change, percent, visible_line
from ajuste.report.format import result_labels
from ajuste.report.plots.plot import Plot, figure, level_axis, mark, plain, scatter
from ajuste_course.translation import interface, interface_languages, say

SUFFIXES: Final = (".pdf", ".typ")
_MOST_ROWS: Final = 24
_LONGEST_NAME: Final = 90
_HEIGHT: Final = 330

_WORDS: Final = {
    "improves": "better",
    "worsens": "worse",
    "differs": "different",
    "equivalent": "no difference that matters",
    "undecided": "not known",
}

_PAGE: Final = """\
#set page(paper: "a4", margin: (x: 22mm, y: 20mm), numbering: "1 / 1")
#set text(size: 10.5pt, lang: {language})
#set par(justify: true)
#set table(stroke: none, inset: (x: 4pt, y: 3pt))
#show heading.where(level: 1): set text(size: 15pt)
"""


def write_handout(results: Results, path: Path, language: str) -> None:
    """Write the handout of ``results`` to a file: PDF, or its Typst source with the picture beside it.

    Raises RequestError for another kind of file, and where it cannot be written.
    """
    if path.suffix not in SUFFIXES:
        raise RequestError(f"{path}: expected a file that ends in .pdf or .typ", hint="name one, such as handout.pdf")
    if language != "en" and not interface(language):
        raise RequestError(f"--language {visible_line(language)}: expected {', '.join(interface_languages())}")
    require_extra("pictures")
    picture = f"{path.stem}-figure.svg"
    try:
        if path.suffix == ".typ":
            with_figure = _draw(results, path.with_name(picture), language)
            write_text(path, handout_text(results, picture if with_figure else "", language))
            return
        import typst

        with TemporaryDirectory(prefix="ajuste-handout-") as directory:
            with_figure = _draw(results, Path(directory) / picture, language)
            source = Path(directory) / "handout.typ"
            source.write_text(handout_text(results, picture if with_figure else "", language), encoding="utf-8")
            path.write_bytes(bytes(typst.compile(str(source), root=directory)))
    except OSError as failure:
        raise RequestError(
            f"{path}: {failure.strerror or failure}", hint="choose a FILE that you can write"
        ) from failure


def handout_text(results: Results, picture: str, language: str) -> str:
    """Return the Typst source of a handout; all text of the run is quoted."""

    def words(text: str, **values: object) -> str:
        return say(language, text, **values)

    parts = [
        _PAGE.format(language=_quoted(language)),
        f"= {_text(results.title or results.study)}",
        _heading(words("Question")),
        _text(results.question or "–"),
        _heading(words("Method")),
        *(_item(line) for line in _method(results, words)),
        _heading(words("Figure")),
        *([f"#image({_quoted(picture)}, width: 100%)"] if picture else []),
        _verdicts(results, words),
        _heading(words("Verdict")),
        *(_item(sentence) for sentence in _sentences(results, words)),
        _heading(words("Limits")),
        *(_item(line) for line in _limits(results, words)),
        _heading(words("Again")),
        *(f"#raw({_quoted(line)})" + " \\" for line in REPRODUCE.of(results)[:3]),
        _text(words("Digest of all figures: {digest}", digest=results.digest[:16])),
    ]
    return "\n\n".join(parts) + "\n"


def _method(results: Results, words: Callable[..., str]) -> list[str]:
    guests = [
        about for name, about in results.environment.items() if isinstance(about, dict) and "QEMU" in about and name
    ]
    lines = []
    if isinstance(workload := results.environment.get("workload"), str):
        lines.append(words("Workload: {workload}", workload=workload))
    lines += [
        words(
            "Guest: Linux {kernel}, {cpus} CPUs, {memory}",
            kernel=guest.get("kernel", "?"),
            cpus=guest.get("CPUs", "?"),
            memory=guest.get("memory", "?"),
        )
        for guest in guests[:4]
    ]
    labels = result_labels(results)
    lines += [
        words(
            "Varied: {name}: {levels}",
            name=factor.name,
            levels=", ".join(labels.level(factor.name, level) for level in factor.levels),
        )
        for factor in results.factors
    ]
    lines.append(
        words(
            "{blocks} blocks in random order, {trials} trials in all; a trial is compared with the baseline of its "
            "block",
            blocks=results.blocks,
            trials=results.tally.counted,
        )
    )
    lines.append(
        words(
            "Confidence {level} for all comparisons together, at every look; differences below {effect} do not matter",
            level=percent(results.level),
            effect=percent(results.smallest_effect),
        )
    )
    return lines


def _deciding(results: Results) -> list[Verdict]:
    deciding = [verdict for verdict in results.verdicts if verdict.deciding]
    return (deciding or list(results.verdicts))[:_MOST_ROWS]


def _verdicts(results: Results, words: Callable[..., str]) -> str:
    metrics, names = {metric.name: metric for metric in results.metrics}, _short_names(results)
    head = [
        words(name) for name in ("Configuration", "Metric", "Baseline", "Measured", "Change", "Interval", "Verdict")
    ]
    rows = [head]
    for verdict in _deciding(results):
        metric = metrics.get(verdict.metric)
        unit = metric.unit if metric else verdict.unit
        old, new = ("–" if value is None else amount(value, unit) for value in (verdict.old, verdict.new))
        interval = " … ".join(
            change(bound, verdict.scale, verdict.unit, like=verdict.estimate) for bound in (verdict.low, verdict.high)
        )
        rows.append(
            [
                names.get(verdict.configuration, verdict.configuration)[:_LONGEST_NAME],
                metric.title if metric else verdict.metric,
                old,
                new,
                verdict.effect,
                interval,
                words(_WORDS[verdict.verdict]),
            ]
        )
    cells = ", ".join(f"[{_text(cell)}]" for row in rows for cell in row)
    return f"#text(size: 8.5pt)[#table(columns: (2fr, 1.5fr, 1fr, 1fr, 1fr, 1.5fr, 1.2fr), table.hline(y: 1), {cells})]"


def _sentences(results: Results, words: Callable[..., str]) -> list[str]:
    metrics, names = {metric.name: metric for metric in results.metrics}, _short_names(results)
    sentences = []
    for verdict in _deciding(results):
        metric, name = metrics.get(verdict.metric), names.get(verdict.configuration, verdict.configuration)
        sentences.append(_sentence(verdict, metric.title if metric else verdict.metric, name[:_LONGEST_NAME], words))
    return sentences or [words("Nothing was compared.")]


def _short_names(results: Results) -> dict[str, str]:
    # By their levels with units: `5 ms`.
    labels = result_labels(results)
    return {each.name: labels.short(each) for each in results.configurations}


def _sentence(verdict: Verdict, what: str, configuration: str, words: Callable[..., str]) -> str:
    subject = {"what": what, "configuration": configuration}
    if verdict.verdict == "undecided":
        return words("{what}, {configuration}: these trials do not show whether there is a difference.", **subject)
    if verdict.verdict == "equivalent":
        return words(
            "{what}, {configuration}: there is no difference that matters ({change}).", **subject, change=verdict.effect
        )
    template = {
        "improves": "{what}, {configuration}: better, by {change}.",
        "worsens": "{what}, {configuration}: worse, by {change}.",
    }.get(verdict.verdict, "{what}, {configuration}: different, by {change}.")
    return words(template, **subject, change=verdict.effect)


def _limits(results: Results, words: Callable[..., str]) -> list[str]:
    lines = []
    if results.clock == "virtual":
        lines.append(
            words(
                "Measured on an emulated CPU, where every instruction takes the same time: this shows what the kernel "
                "does, not how fast a machine is."
            )
        )
        lines.append(words("Trials differ by seed: memory layout, and the start relative to the timer."))
    unseen = [(verdict.unseen, verdict.blocks) for verdict in _deciding(results) if verdict.unseen is not None]
    if unseen:
        share, blocks = max(unseen)
        lines.append(
            words(
                "{blocks} blocks cannot show what happens in fewer than {share} of trials.",
                blocks=blocks,
                share=percent(round(share, 2)),
            )
        )
    if results.tally.flagged or results.tally.failed:
        lines.append(words("{count} trials were left out.", count=results.tally.flagged + results.tally.failed))
    lines.append(words("Other kernels, machines and workloads were not measured."))
    return lines


def handout_plot(results: Results, metric: Metric) -> Plot:
    """Return the figure: every clean trial by configuration, with the mean of each."""
    names = [each.name for each in results.configurations][:_MOST_ROWS]
    traces: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        values = [
            point.metrics[metric.name]
            for point in results.trials
            if point.configuration == name
            and point.status == "ok"
            and not point.warm_up
            and metric.name in point.metrics
        ]
        if not values:
            continue
        spread = [place + 0.24 * ((number % 5) - 2) / 2 for number in range(len(values))]
        look = mark(place)
        traces.append(
            scatter("markers", spread, values, "", marker={"color": look.colour, "size": 6, "symbol": look.symbol})
        )
        mean = sum(values) / len(values)
        traces.append(
            scatter("lines", [place - 0.3, place + 0.3], [mean, mean], line={"color": look.colour, "width": 2})
        )
    unit = f" ({metric.unit})" if metric.unit not in ("", "1", "count") else ""
    labels = _short_names(results)
    short = [labels[name] for name in names]
    return Plot(
        name="handout",
        title=f"{metric.title}{unit}",
        description="",
        figure=figure(
            traces,
            xaxis=level_axis([visible_line(name) for name in short], width=22),
            yaxis={"title": {"text": plain(f"{metric.title}{unit}")}, "rangemode": "tozero"},
        ),
        height=_HEIGHT,
        wide=True,
    )


def _draw(results: Results, file: Path, language: str) -> bool:
    deciding = {verdict.metric for verdict in _deciding(results)}
    metric = next((each for each in results.metrics if each.name in deciding), next(iter(results.metrics), None))
    if metric is None or not results.trials:
        return False
    import matplotlib as mpl

    from ajuste_share.drawing import RC, draw

    with mpl.rc_context(RC):
        title = say(language, "Every trial; the lines are means")
        draw(handout_plot(results, metric), title).savefig(
            file, format="svg", bbox_inches="tight", pad_inches=0.1, metadata={"Date": None, "Creator": None}
        )
    return True


def _heading(text: str) -> str:
    return f"== {_text(text)}"


def _item(text: str) -> str:
    return f"- {_text(text)}"


def _text(text: str) -> str:
    return f"#{_quoted(visible_line(text))}"


def _quoted(text: str) -> str:
    # A string of Typst: what is within means nothing to it.
    return json.dumps(text, ensure_ascii=False)
