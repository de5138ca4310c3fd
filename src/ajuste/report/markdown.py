"""Results as Markdown, for an issue, a page or a mail: what was asked, the answer, the figures, the verdicts.

Text that others wrote is escaped (CommonMark 0.31, *Backslash escapes*), so that it can neither be markup nor HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.wording import visible_line
from ajuste.report.environment import clock_name, warnings_of
from ajuste.report.format import count_of
from ajuste.report.headline import headlines
from ajuste.report.labels import Labels, fixed_levels, labels_of
from ajuste.report.lines import HEADS, line_groups
from ajuste.report.listing import Listing
from ajuste.report.listings import listings_of
from ajuste.report.metric_table import deciding_metrics, is_screening, metric_rows
from ajuste.report.proofs import proofs_listing
from ajuste.report.sections import search_sentences, surface_sentences
from ajuste.report.terminal import remarks
from ajuste.report.trials import excerpt_of
from ajuste.report.verdicts import VerdictGroup, effect_band, effect_groups, verdict_groups

_SPECIAL: Final = re.compile(r"[\\`*{}\[\]<>|~#&$]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9])")  # within a word _ is itself
_MOST_SENTENCES: Final = 12


def markdown(results: Results, metrics: Sequence[str] = ()) -> str:
    """``results`` for people to read; of very many configurations some.

    ``metrics`` are the names of those that are shown: those that decide if none is named.
    """
    labels = labels_of(results)
    excerpt = excerpt_of(results)
    found = headlines(results, labels)
    chosen = frozenset(metrics) or deciding_metrics(results) or frozenset(metric.name for metric in results.metrics)
    parts = [
        f"*{_text(results.question)}*",
        *(_text(one.sentence) if place else f"**{_text(one.sentence)}**" for place, one in enumerate(found)),
        _fenced(results.reproduce),
        _summary(results),
        _text(excerpt.of_configurations),
        *([] if is_screening(results) else [_figures(excerpt.results, labels, chosen)]),
        *map(_text, remarks(results)),
        *_verdicts(excerpt.results, labels),
        *_lines(results),
        *(part for listing in listings_of(excerpt.results, labels) for part in _listing(listing)),
        *(_listing(proofs) if (proofs := proofs_listing(results)) is not None else ()),
        *_sections(results, labels),
        f"**With its figures.** {_text(results.answer)}" if found else f"**Answer.** {_text(results.answer)}",
        *(f"**Why.** {_sentences(one.sentences or one.notes)}" for one in results.explanations),
        *(f"Note: {_text(note)}" for note in warnings_of(results)),
        f"Digest {_text(results.digest)}" if results.digest else "",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _summary(results: Results) -> str:
    counts = (
        count_of(len(results.configurations), "configuration"),
        count_of(results.blocks, "block"),
        count_of(results.tally.trials, "trial"),
    )
    where = [] if results.clock is None else [clock_name(results), f"seed {results.seed}"]
    kernels = dict.fromkeys(
        str(place["kernel"]) for place in results.environment.values() if isinstance(place, dict) and "clock" in place
    )
    return _text(f"{', '.join((*counts, *where, *(f'Linux {kernel}' for kernel in kernels)))}.")


def _figures(results: Results, labels: Labels, chosen: frozenset[str]) -> str:
    """A row for each configuration; the baseline has a star."""
    rows = [row for row in metric_rows(results) if row.metric.name in chosen]
    heads = [factor.name for factor in labels.factors] or ["configuration"]
    names = [f"{row.metric.title} ({row.unit})" if row.unit else row.metric.title for row in rows]
    body = []
    for place, configuration in enumerate(results.configurations):
        levels = labels.of(configuration) or (configuration.name,)
        starred = (*levels[:-1], f"{levels[-1]}{' *' if configuration.baseline else ''}")
        body.append((*starred, *(row.cells[place].text for row in rows)))
    fixed = "".join(f"; {line} everywhere" for line in fixed_levels(labels))
    caption = _text(f"Mean ± standard deviation; * is the baseline{fixed}.") if len(body) > 1 else ""
    return _table((*heads, *names), body, right=len(names)) + (f"\n\n{caption}" if caption else "")


def _verdicts(results: Results, labels: Labels) -> list[str]:
    deciding = deciding_metrics(results)
    metrics = [metric for metric in results.metrics if metric.name in deciding]
    screening = is_screening(results)
    groups = (effect_groups if screening else verdict_groups)(results, metrics, labels)
    if not groups:
        return []
    said = f"{100 * results.level:g} % intervals for all together; smallest effect that matters: "
    head = "Effects of the factors" if screening else "Verdicts against the baseline"
    caption = _text(f"{head}; {said}{effect_band(results.smallest_effect)}.")
    return [caption, _table(("Metric", "What", "Effect", "Interval", "Verdict"), _rows(groups))]


def _rows(groups: Iterable[VerdictGroup]) -> list[tuple[str, ...]]:
    return [
        (group.metric, row.configuration, row.estimate, row.interval, f"{row.badge.sign} {row.badge.text}")
        for group in groups
        for row in group.rows
    ]


def _lines(results: Results) -> list[str]:
    """The lines of a profile that was taken apart."""
    metrics: list[Metric] = [metric for metric in results.metrics if metric.name in deciding_metrics(results)]
    tables = []
    for group in line_groups(results, metrics):
        rows = [(row.name, row.sets, *row.figures, f"{row.badge.sign} {row.badge.text}") for row in group.rows]
        tables.append(_table(("Line", "Sets", *(head.capitalize() for head in HEADS), "Verdict"), rows))
    return tables


def _listing(listing: Listing) -> list[str]:
    """A table that a study has besides the verdicts, group by group."""
    parts = [f"**{_text(listing.title)}.** {_text(listing.lead)}"]
    for group in listing.groups:
        rows = [(line.name, *line.cells) for line in group.lines]
        parts.append(_text(group.title))
        parts += [_table((listing.heading or "What", *listing.columns), rows)] if rows else []
    return [*parts, _text(listing.source)]


def _sections(results: Results, labels: Labels) -> list[str]:
    names = {factor.name: factor.name for factor in labels.factors}
    search = [("The search", tuple(search_sentences(results.tuning)))] if results.tuning else []
    found = (*search, *surface_sentences(results, labels, names))
    return [f"**{_text(title)}.** {_sentences(said)}" for title, said in found]


def _sentences(said: Sequence[str]) -> str:
    shown = [one if one.endswith((".", "!", "?", ":")) else f"{one}." for one in said[:_MOST_SENTENCES]]
    more = [f"{len(said) - _MOST_SENTENCES} more are in the report."] if len(said) > _MOST_SENTENCES else []
    return _text(" ".join((*shown, *more)))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: int = 0) -> str:
    """A table of GitHub's kind, whose last ``right`` columns hold figures."""
    rule = ["---"] * (len(heads) - right) + ["--:"] * right
    lines = (heads, *rows)
    body = [f"| {' | '.join(map(_text, line))} |" for line in lines]
    return "\n".join((body[0], f"|{'|'.join(rule)}|", *body[1:]))


def _fenced(commands: Sequence[str]) -> str:
    """The commands in a block that nothing in them can end."""
    if not commands:
        return ""
    text = "\n".join(map(visible_line, commands))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}sh\n{text}\n{fence}"


def _text(text: str) -> str:
    """Text as it is, on one line, in which nothing is markup."""
    return _SPECIAL.sub(r"\\\g<0>", visible_line(text))
