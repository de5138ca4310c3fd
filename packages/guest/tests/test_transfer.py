"""Transfer: two runs of the same questions, and what the command prints of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.trial import Factor
from ajuste.model.verdict import Verdict
from ajuste.report.html import render_html
from ajuste.report.markdown import markdown
from ajuste.report.method import clock_notes
from ajuste_guest.commands.transfer import transfer_report
from ajuste_guest.transfer.answers import Atlas, AtlasQuestion, agreements, merge_atlases, question_kind, transfer
from ajuste_stats.terms import Word
from small_stores import DECIDED, GOING_ON, Commands, small_store


def verdict(word: Word, percent: float, half: float = 1.0, **more: Any) -> Verdict:
    low, estimate, high = (math.exp((percent + side * half) / 100) for side in (-1, 0, 1))
    return Verdict(
        **{
            "configuration": "nice=10", "metric": "elapsed", "unit": "s", "direction": "lower", "scale": "ratio",
            "verdict": word, "estimate": estimate, "low": low, "high": high, "level": 0.95, "blocks": 10, "reason": "",
        }
        | more
    )  # fmt: skip


def results(run: str, *verdicts: Verdict, **more: Any) -> Results:
    return Results(
        **{
            "study": "nice", "title": "Nice", "question": "", "answer": "", "run": run, "seed": 1, "clock": "wall",
            "digest": run, "stopped": "decided", "stopped_because": "", "level": 0.95, "smallest_effect": 0.02,
            "correction": "", "blocks": 10, "verdicts": verdicts, "configurations": (), "factors": (), "metrics": (),
            "trials": (),
        }
        | more
    )  # fmt: skip


@pytest.mark.parametrize(
    ("guest", "host", "agreement", "size"),
    [
        (verdict("worsens", 50), verdict("worsens", 50.5), "same", "alike"),
        (verdict("worsens", 50), verdict("worsens", 90), "same", "larger on the host"),
        (verdict("improves", -50), verdict("improves", -10), "same", "smaller on the host"),
        (verdict("equivalent", 0), verdict("equivalent", 0.5), "same", None),
        (verdict("worsens", 5), verdict("improves", -5), "opposite", None),
        (verdict("differs", 5), verdict("differs", -5), "opposite", None),
        (verdict("equivalent", 0), verdict("worsens", 9), "different", None),
        (verdict("undecided", 3, 9), verdict("worsens", 9), "undecided", None),
    ],
)
def test_a_question_is_answered_alike_or_not(guest: Verdict, host: Verdict, agreement: str, size: str | None) -> None:
    (row,) = transfer(results("g", guest), results("h", host)).rows
    assert (row.agreement, row.size) == (agreement, size)


def test_the_answer_counts_what_decides_and_names_what_differs() -> None:
    comparison = transfer(
        results(
            "g", verdict("worsens", 50), verdict("equivalent", 0, metric="faults"),
            verdict("worsens", 5, metric="rss", deciding=False),
        ),
        results(
            "h", verdict("worsens", 55), verdict("worsens", 9, metric="faults"),
            verdict("improves", -5, metric="rss", deciding=False),
        ),
    )  # fmt: skip
    assert comparison.answer == (
        "The guest answered 1 of 2 questions as the host did; an effect in only one of them for nice=10 on faults."
    )


def test_nothing_known_and_questions_of_one_run_are_said() -> None:
    comparison = transfer(
        results("g", verdict("undecided", 0, 9), verdict("worsens", 1, metric="rss")),
        results("h", verdict("worsens", 9), verdict("worsens", 1, metric="faults"), clock="virtual"),
    )
    assert comparison.answer.startswith("Nothing is known yet")
    assert (comparison.only_guest, comparison.only_host) == (("nice=10 on rss",), ("nice=10 on faults",))
    assert comparison.notes == ("h has the virtual clock: it was measured in a guest, not on the host.",)


def test_runs_without_a_common_question_and_a_run_against_itself_are_refused() -> None:
    with pytest.raises(RequestError, match="no configuration and metric in common"):
        transfer(results("g", verdict("worsens", 1)), results("h", verdict("worsens", 1, metric="rss")))
    with pytest.raises(RequestError, match="both runs are the same"):
        transfer(results("g", verdict("worsens", 1)), results("g", verdict("worsens", 1)))


def test_the_report_shows_both_sides_and_hides_nothing_hostile() -> None:
    hostile = "</script><script>alert(1)</script>"
    report = transfer_report(
        transfer(
            results("g", verdict("worsens", 50, configuration=hostile)),
            results("h", verdict("improves", -10, configuration=hostile)),
        )
    )
    page = render_html(report)
    assert hostile not in page
    assert "OPPOSITE" in page
    assert "worsens +64.9 % (+63.2 % to +66.5 %)" in markdown(report)


def test_the_command_prints_the_answer_or_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch)
    small_store(commands.store)
    code, output, complained = commands.run("transfer", DECIDED, GOING_ON)
    assert code == 0, complained
    assert "Guest and host side by side" in output
    document = commands.json("transfer", DECIDED, GOING_ON)
    assert document["guest"]["run"] == DECIDED
    assert {row["agreement"] for row in document["rows"]} <= {"same", "opposite", "different", "undecided"}
    assert commands.run("transfer", DECIDED, DECIDED)[0] == 2


# The atlas: what many such pairs say of a kind of question.


def atlas_question(kind: str, guest: Verdict, host: Verdict, **more: Any) -> AtlasQuestion:
    (row,) = transfer(results("g", guest), results("h", host)).rows
    fields = {"question": "nice", "guest_kernel": "6.12", "host_kernel": "6.18", "machine": "one"} | more
    return AtlasQuestion(kind=kind, row=row, **fields)


def test_a_kind_has_its_signs_its_order_and_its_sizes() -> None:
    effects = [(10.0, 20.0), (20.0, 60.0), (30.0, 40.0), (40.0, 80.0)]
    questions = [atlas_question("priority", verdict("worsens", g), verdict("worsens", h)) for g, h in effects]
    questions.append(atlas_question("priority", verdict("worsens", 5), verdict("improves", -5)))
    questions.append(atlas_question("affinity", verdict("undecided", 1, 9), verdict("worsens", 9)))
    priority, affinity = agreements(questions)
    assert (priority.questions, priority.decided, priority.same, priority.opposite) == (5, 5, 4, 1)
    guests, hosts = [*(g for g, _ in effects), 5.0], [*(h for _, h in effects), -5.0]
    assert priority.rank == pytest.approx(spearmanr(guests, hosts).statistic)
    assert priority.size == pytest.approx(2.0)  # of 2, 3, 4/3 and 2
    assert (affinity.decided, affinity.rank, affinity.size) == (0, None, None)


def test_the_last_answer_to_a_question_counts_and_other_machines_stay() -> None:
    old = atlas_question("priority", verdict("worsens", 10), verdict("worsens", 20))
    new = atlas_question("priority", verdict("worsens", 10), verdict("improves", -20))
    elsewhere = atlas_question("priority", verdict("worsens", 10), verdict("worsens", 20), machine="two")
    questions = merge_atlases(Atlas(questions=(old, elsewhere)), Atlas(questions=(new,))).questions
    assert [(question.machine, question.row.agreement) for question in questions] == [
        ("one", "opposite"),
        ("two", "same"),
    ]


@pytest.mark.parametrize(
    ("factor", "kind"),
    [
        ("nice", "priority"),
        ("affinity", "affinity"),
        ("thp.enabled", "memory hugepages"),
        ("net.mtu[lo]", "network device"),
        ("workload.size", "the work itself"),
        ("task", "task"),
    ],
)
def test_a_question_is_of_the_kind_of_what_it_varies(factor: str, kind: str) -> None:
    assert question_kind([Factor(name=factor, levels=("1", "2"), baseline="1")], catalogue()) == kind


def test_a_report_of_a_guest_says_how_such_questions_were_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Atlas(questions=(atlas_question("priority", verdict("worsens", 10), verdict("worsens", 20)),))
    monkeypatch.setattr("ajuste_guest.transfer.notes.shipped_atlas", lambda: shipped)
    nice = Factor(name="nice", levels=("0", "10"), baseline="0")
    (_, note) = clock_notes(results("g", verdict("worsens", 10), clock="virtual", factors=(nice,)))
    assert "priority" in note
    assert len(clock_notes(results("h", verdict("worsens", 10), clock="wall", factors=(nice,)))) == 0


def test_answers_are_added_and_shown_without_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch)
    small_store(commands.store)
    shipped = len(commands.json("transfer")["questions"])
    code, _, complained = commands.run("transfer", DECIDED, GOING_ON, "--add")
    assert code == 0, complained
    added = commands.json("transfer")["questions"][shipped:]
    assert {question["row"]["deciding"] for question in added} == {True}
    assert len(commands.json("transfer", DECIDED, GOING_ON, "--add")["rows"]) >= len(added)
    assert len(commands.json("transfer")["questions"]) == shipped + len(added)
    assert commands.run("transfer", DECIDED)[0] == 2
    assert commands.run("transfer", "--add")[0] == 2


def test_a_damaged_atlas_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(tmp_path, monkeypatch)
    small_store(commands.store)
    path = home().data / "atlas.json"
    path.write_text('{"questions": [{}]}')
    code, _, complained = commands.run("transfer")
    assert code == 2
    assert str(path) in complained
