"""Marking. Truth: honest hand-ins that were measured here, and cheats that were planted with Ajuste's own library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from packages.course.tests.cheating import CHEATS, DOUBTS, STEP, Classroom, Work, consistent, hand_in, with_event

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste_course.evidence import design_findings, sample_of, trial_findings
from ajuste_course.marking import Marked, Marking, mark_all, read_class
from ajuste_course.progress import MarkingDisplay
from ajuste_course.workbook import Answer, now, read_prediction
from tiers import slow

pytestmark = pytest.mark.vm


def marked(room: Classroom, files: Sequence[Path], **marking: Any) -> list[Marked]:
    done: list[Marked] = []
    with MarkingDisplay(len(files), quiet=True) as display:
        every = mark_all(
            room.sheet, files, Marking(**{"sample": 0, **marking}), catalogue(), room.options, display, done.append
        )
    assert [each.file for each in done] == [each.file for each in every if each.file] == [str(file) for file in files]
    return every


def reasons(of: Marked, weight: str) -> str:
    return "\n".join(finding.text for finding in of.findings if finding.weight == weight)


def test_an_honest_hand_in_is_accepted_with_all_points_but_those_of_a_person(room: Classroom, honest: Path) -> None:
    (only,) = marked(room, [honest], sample=4)
    assert (only.decision, only.student, only.problem, only.findings) == ("accepted", "1001", "", ())
    assert (only.points, only.open_points, only.measured_again) == (9.0, 1.0, 4)
    states = {mark.name: mark.state for mark in only.marks}
    assert states == {"switches": "made", "mean": "right", "turn": "right", "verdict": "right", "why": "to mark"}
    (made,) = only.predictions.values()
    assert made[1].estimate is not None
    assert made[1].estimate < 1


MORE = ("same-values", "changed-outlier", "swapped", "other-program")
"""Cheats that take long to plant, and are refused for a reason that another cheat shows too."""


@pytest.mark.parametrize("name", [*(name for name in CHEATS if name not in MORE), *slow(*MORE)])
def test_a_cheat_is_not_accepted_and_the_reason_is_said(room: Classroom, tmp_path: Path, name: str) -> None:
    cheat, words = CHEATS[name]
    (only,) = marked(room, [cheat(room, "1001", "1002", tmp_path / f"{name}.ajuste")], sample=4)
    assert (only.decision, only.points, only.problem) == ("not accepted", 0.0, "")
    assert words in reasons(only, "proof")


@pytest.mark.parametrize("name", DOUBTS)
def test_what_may_be_no_fault_of_the_student_is_a_remark(room: Classroom, tmp_path: Path, name: str) -> None:
    cheat, words = DOUBTS[name]
    (only,) = marked(room, [cheat(room, "1001", "1002", tmp_path / f"{name}.ajuste")], sample=4)
    assert (only.decision, reasons(only, "proof")) == ("look", "")
    assert words in reasons(only, "remark")


def test_a_file_that_cannot_be_read_stops_none_of_the_others(room: Classroom, honest: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.ajuste"
    bad.write_bytes(honest.read_bytes()[:1000])
    absent = tmp_path / "absent.ajuste"
    first, second, third = marked(room, [bad, honest, absent])
    assert (first.decision, second.decision, third.decision) == ("not accepted", "accepted", "not accepted")
    assert str(bad) in first.problem
    assert str(absent) in third.problem


def test_only_students_of_the_class_are_marked(room: Classroom, honest: Path, tmp_path: Path) -> None:
    table = tmp_path / "class.csv"
    table.write_text("\ufeffName,ID number\nAda,1001\nBob, 1002 \n", encoding="utf-8")
    students = read_class(table)
    assert students == {"1001", "1002"}
    assert marked(room, [honest], students=students)[0].decision == "accepted"
    other, absent = marked(room, [honest], students=frozenset({"7"}))
    assert (other.student, other.decision, "1001" in other.problem) == ("1001", "not accepted", True)
    assert (absent.student, absent.decision, absent.points) == ("7", "nothing handed in", 0)
    table.write_text("1001\n\n1003\n")
    assert read_class(table) == {"1001", "1003"}
    table.write_bytes('Matrícula;Nombre\r\n1001;"García"\r\n1003;"Ñu"\r\n'.encode("cp1252"))
    assert read_class(table) >= {"1001", "1003"}
    table.write_text("\n")
    with pytest.raises(RequestError, match="no rows"):
        read_class(table)
    table.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RequestError, match="cannot be read"):
        read_class(table)


def test_another_version_of_the_sheet_is_refused(room: Classroom, work: Work, tmp_path: Path) -> None:
    file = hand_in(work.with_workbook(version=2), tmp_path / "version.ajuste")
    other = hand_in(work.with_workbook(sheet="heavy"), tmp_path / "sheet.ajuste")
    changed = hand_in(work.with_workbook(digest="0" * 64), tmp_path / "digest.ajuste")
    problems = [each.problem for each in marked(room, [file, other, changed])]
    assert ["version 2" in problems[0], "sheet heavy" in problems[1], "000000" in problems[2]] == [True] * 3


def test_a_wrong_clock_is_only_a_remark(room: Classroom, work: Work, tmp_path: Path) -> None:
    late = work.workbook.predictions["switches"].model_copy(update={"made": "2099-01-01T00:00:00+00:00"})
    (only,) = marked(room, [hand_in(work.with_workbook(predictions={"switches": late}), tmp_path / "late.ajuste")])
    assert (only.decision, only.points) == ("look", 9.0)
    assert "2099-01-01" in reasons(only, "remark")
    never = late.model_copy(update={"made": "yesterday"})
    (only,) = marked(room, [hand_in(work.with_workbook(predictions={"switches": never}), tmp_path / "never.ajuste")])
    assert only.decision == "look"


def test_equal_texts_are_a_remark_and_equal_trials_prove_who_copied(
    room: Classroom, work: Work, tmp_path: Path
) -> None:
    friend = room.once("1002")
    text = "The tick of the timer ends a turn and so it lasts a whole number of ticks."
    answer = Answer(value=text, answered=now())
    files = [
        hand_in(each.with_workbook(answers={**each.workbook.answers, "why": answer}), tmp_path / f"{number}.ajuste")
        for number, each in ((1, work), (2, friend))
    ]
    first, second = marked(room, files)
    assert (first.decision, second.decision) == ("look", "look")
    assert "1002" in reasons(first, "remark")
    assert "1001" in reasons(second, "remark")
    taken = friend.workbook.model_copy(update={"student": "1003"})
    files = [hand_in(friend, tmp_path / "3.ajuste"), hand_in(Work(taken, friend.runs), tmp_path / "4.ajuste")]
    owner, copier = marked(room, files)
    # Who measured them is not accused because somebody else took them.
    assert (owner.decision, owner.points, copier.decision) == ("look", 9.0, "not accepted")
    assert "6 trials are those of 1003" in reasons(owner, "remark")
    assert "6 trials are those of 1002" in reasons(copier, "proof")


def test_two_files_of_one_student_are_a_remark_and_no_copy(room: Classroom, honest: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.ajuste"
    again.write_bytes(honest.read_bytes())
    both = marked(room, [honest, again])
    assert [each.decision for each in both] == ["look", "look"]
    assert ["2 files" in reasons(each, "remark") for each in both] == [True, True]


def test_a_wrong_answer_costs_its_points_and_a_missing_one_is_said(room: Classroom, work: Work, tmp_path: Path) -> None:
    answers = {**work.workbook.answers, "mean": Answer(value=1e6, answered=now())}
    del answers["turn"]
    (only,) = marked(room, [hand_in(work.with_workbook(answers=answers), tmp_path / "wrong.ajuste")])
    marks = {mark.name: (mark.state, mark.points) for mark in only.marks}
    assert (marks["mean"], marks["turn"], only.points) == (("wrong", 0.0), ("missing", 0.0), 4.0)


def test_a_workbook_without_a_run_is_marked_without_figures(room: Classroom, tmp_path: Path) -> None:
    workbook = room.predicted("1009")
    (only,) = marked(room, [hand_in(Work(workbook, {}), tmp_path / "empty.ajuste")])
    assert (only.problem, only.points, only.decision) == ("", 2.0, "look")
    assert any("not measured" in finding.text for finding in only.findings)


def test_more_blocks_than_the_study_takes_are_found(room: Classroom, work: Work) -> None:
    resolved, trials = work.resolved, work.trials
    assert design_findings(STEP, resolved, "budget", trials) == []
    more = [t.model_copy(update={"slot": t.slot.model_copy(update={"block": t.slot.block + 3})}) for t in trials]
    (finding,) = design_findings(STEP, resolved, "budget", [*trials, *more])
    assert (finding.weight, "has blocks after 3" in finding.text) == ("proof", True)
    (finding,) = design_findings(STEP, resolved, "budget", trials[1:])
    assert "is missing" in finding.text
    (finding,) = design_findings(STEP, resolved, "time", trials[:4])
    assert finding.weight == "remark"


def test_figures_that_the_guest_did_not_send_or_no_guest_can_have_are_found(room: Classroom, work: Work) -> None:
    resolved, trial = work.resolved, work.trials[0]
    assert trial_findings(STEP, resolved, [trial]) == []
    more = trial.model_copy(update={"metrics": {**trial.metrics, "throughput": 5.0}})
    (finding,) = trial_findings(STEP, resolved, [more])
    assert "throughput" in finding.text
    cut = trial.model_copy(update={"events": trial.events[: len(trial.events) // 2]})
    assert [each.weight for each in trial_findings(STEP, resolved, [cut])] == ["proof"]
    flagged = trial.model_copy(update={"status": "flagged", "reason": "noise"})
    (finding,) = trial_findings(STEP, resolved, [flagged])
    assert "flagged" in finding.text
    slow = consistent(with_event(trial, "counter", "", value=10**12), resolved)
    assert any("cannot be" in each.text for each in trial_findings(STEP, resolved, [slow]))
    # Who says that output was cut does not hide figures of the kernel.
    hidden = with_event(trial, "output", "workload", dropped_bytes=9)
    hidden = hidden.model_copy(update={"metrics": {**trial.metrics, "involuntary-switches": 1.0}})
    (finding,) = trial_findings(STEP, resolved, [hidden])
    assert "involuntary-switches" in finding.text


def test_a_sample_has_what_stands_out_most(work: Work) -> None:
    import random

    odd = work.trials[2]
    odd = odd.model_copy(update={"metrics": {**odd.metrics, "involuntary-switches": 900.0}})
    trials = [*work.trials[:2], odd, *work.trials[3:]]
    for seed in range(20):
        sample = sample_of(trials, ["involuntary-switches"], 2, random.Random(seed))
        assert (len(sample), odd in sample) == (2, True)
    assert sample_of(trials, [], 99, random.Random(1)) == trials


def test_a_prediction_that_was_wrong_costs_nothing(room: Classroom, tmp_path: Path) -> None:
    wrong = room.honest("1004", direction="rises", size="3x")
    (only,) = marked(room, [hand_in(wrong, tmp_path / "wrong.ajuste")], sample=1)
    assert (only.decision, only.points) == ("accepted", 9.0)
    assert only.predictions["switches"][1].direction is False
    assert read_prediction("rises", "3x", "").ratio == 3
