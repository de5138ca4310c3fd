"""Results as Markdown, judged by a parser of CommonMark."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ajuste.model.continuation import REPRODUCE
from ajuste.model.kernel import PROOFS, Proof, ShownFeature
from ajuste.model.results import Results
from ajuste.report.markdown import markdown
from ajuste.report.results import results_report

PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")


def tokens(results: Results, *metrics: str) -> list[Token]:
    return PARSER.parse(markdown(results_report(results, metrics)))


def tables(results: Results, *metrics: str) -> list[list[list[str]]]:
    """Return all tables: their rows of cells, the head first."""
    rows_of_tables: list[list[list[str]]] = []
    for token in tokens(results, *metrics):
        if token.type == "table_open":
            rows_of_tables.append([])
        elif token.type == "tr_open":
            rows_of_tables[-1].append([])
        elif token.type == "inline" and rows_of_tables and rows_of_tables[-1] and token.level > 2:
            rows_of_tables[-1][-1].append("".join(child.content for child in token.children or ()))
    return rows_of_tables


def text(results: Results) -> str:
    return "\n".join(
        "".join(child.content for child in token.children or ()) or token.content for token in tokens(results)
    )


def test_every_configuration_has_a_row_with_the_mean_of_what_decides(granularity: Results) -> None:
    figures = tables(granularity)[0]
    assert figures[0][0] == granularity.factors[0].name
    assert len(figures) == 1 + len(granularity.configurations)
    for row, configuration in zip(figures[1:], granularity.configurations, strict=True):
        assert ("(baseline)" in row[0]) == configuration.baseline
        mean = configuration.metrics["involuntary-switches"].mean
        assert abs(float(row[1].split(" ±")[0].replace(",", "")) - mean) <= 0.5


def test_verdicts_answer_and_commands_are_there(granularity: Results) -> None:
    verdicts = [row for table in tables(granularity) for row in table[1:] if row[-1]]
    deciding = [verdict for verdict in granularity.verdicts if verdict.deciding]
    assert sorted(row[-1].split()[1] for row in verdicts) == sorted(verdict.verdict for verdict in deciding)
    assert granularity.answer in text(granularity)
    assert granularity.digest in text(granularity)
    [block] = [token for token in tokens(granularity) if token.type == "fence"]
    assert block.content.splitlines() == list(REPRODUCE.of(granularity))


def test_the_metrics_that_are_named_are_shown(granularity: Results) -> None:
    titles = {metric.name: metric.title for metric in granularity.metrics}
    page = markdown(results_report(granularity, ["elapsed"]))
    assert f"\n\n{titles['elapsed']} (s)\n\n|" in page
    assert len(tables(granularity, "elapsed")) == 1


def test_a_screening_shows_the_effects_of_its_factors(crowded: Results) -> None:
    assert text(crowded)
    assert tables(crowded)


def test_tables_that_a_study_has_besides_are_there_too(granularity: Results) -> None:
    claim = ShownFeature(feature="numa", title="NUMA", present=False, options={"CONFIG_NUMA": "n"}, claim="no-numa")
    proof = Proof(kernel="mine:other", release="6.1.0", build="#1", features=(claim,))
    environment = {**granularity.environment, PROOFS: {"mine:other": proof.model_dump(mode="json")}}
    *_, rows = tables(granularity.model_copy(update={"environment": environment}))
    assert ["numa", "no-numa", "no", "NUMA=n"] in [row[:4] for row in rows]


def test_what_others_wrote_is_no_markup(hostile: Results) -> None:
    evil = "<img src=x onerror=alert(1)> | `a` *b* [c](javascript:d) \u202e \x1b[31m ~~e~~ &lt; _f_ # g"
    changed = hostile.model_copy(update={"question": evil, "answer": evil, "reproduce": (f"ajuste ```` {evil}",)})
    kinds = {
        child.type
        for token in tokens(changed)
        for child in (token, *(token.children or ()))
        if child.type not in {"inline", "text", "text_special", "fence"}
    }
    folds = [token.content for token in tokens(changed) if token.type == "html_block"]
    assert all(
        re.fullmatch(r"</details>\n|<details markdown=\"1\"><summary>[\w ]+</summary>\n", fold) for fold in folds
    )
    assert not kinds & {"html_inline", "link_open", "image", "code_inline", "s_open", "heading_open"}
    page = text(changed)
    assert "<img src=x onerror=alert(1)> | `a` *b* [c](javascript:d)" in page
    assert "\x1b" not in markdown(results_report(changed))
    assert "\u202e" not in markdown(results_report(changed))
