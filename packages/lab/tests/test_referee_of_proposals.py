"""The referee: its answers on an optimiser's candidates, and which the optimiser keeps."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.campaigns import play
from benchmarks.campaigns.played import TUNABLE, CandidateBench, referee_of, refereed
from benchmarks.campaigns.referee import REFEREE, usual

from ajuste.catalogue.loader import catalogue
from ajuste.machine.files import file_sha256
from ajuste.model.error import RequestError, RunError
from ajuste_lab.campaign.candidates import Candidates
from ajuste_lab.campaign.evaluator import Evaluator
from ajuste_lab.campaign.kept import KeptCampaign


@pytest.fixture
def bench() -> CandidateBench:
    return CandidateBench(np.random.default_rng(1))


def kept_candidates(directory: Path) -> list[Path]:
    return list((directory / "data/campaigns/refereed/study/candidates").iterdir())


def test_what_is_better_scores_better_and_all_else_scores_as_the_start(bench: CandidateBench, tmp_path: Path) -> None:
    answer = referee_of(tmp_path, bench, proposals=4)
    first = answer("1.0")
    assert (first.score, first.accepted, first.status) == (100.0, True, "incumbent")
    better = answer("0.9")
    assert (better.accepted, better.status) == (True, "promoted")
    assert better.score == pytest.approx(90, rel=0.05)
    for text in ("1.1", "0.9 but useless", "0.9 and useless again"):
        assert (answer(text).score, answer(text).accepted) == (100.0, False)
    assert answer("0.9") == better
    assert answer("0.8").score < better.score


def test_an_optimiser_that_went_back_keeps_nothing_useless(bench: CandidateBench, tmp_path: Path) -> None:
    answer = referee_of(tmp_path, bench, proposals=4)
    answer("1.0")
    better = answer("0.9").score
    began = answer("1.0")
    assert (began.score, began.status, began.accepted) == (100.0, "superseded", False)
    assert answer("0.9 useless").score >= began.score > better


def test_the_same_candidate_is_not_measured_again(bench: CandidateBench, tmp_path: Path) -> None:
    answer = referee_of(tmp_path, bench)
    answer("1.0")
    assert (answer("1.2").score, bench.trials) == (100.0, 11)
    assert (answer("1.2").score, bench.trials) == (100.0, 11)


def test_the_usual_rule_keeps_useless_candidates_and_the_referee_does_not() -> None:
    assert usual(1000, 1).false > 0.9
    assert usual(1000, 1, runs=5, threshold=2).false > 0.2
    assert play(200, 1, rules=REFEREE).false <= 0.05
    assert play(200, 4, improvement=0.03, rules=REFEREE).promoted_better >= 0.9


def test_an_optimiser_that_asks_the_referee_keeps_only_what_is_better(tmp_path: Path) -> None:
    outcome = refereed(tmp_path / "own", 1, rounds=6, improvement=0.1)
    assert (outcome.useless, outcome.better) == (0, 1)


def test_a_candidate_that_prints_no_score_has_none_and_can_be_mended(bench: CandidateBench, tmp_path: Path) -> None:
    answer = referee_of(tmp_path, bench)
    answer("1.0")
    with pytest.raises(RunError, match=r"could not be measured: .*no line of stdout matches"):
        answer("nothing")
    with pytest.raises(RunError, match="could not be measured"):
        answer("nothing")
    assert answer("0.8").accepted


def test_a_campaign_whose_start_cannot_be_measured_does_not_begin(bench: CandidateBench, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no line of stdout matches"):
        referee_of(tmp_path, bench)("nothing")
    assert list((tmp_path / "data/campaigns").iterdir()) == []


def test_only_candidates_that_others_are_measured_beside_stay(bench: CandidateBench, tmp_path: Path) -> None:
    answer = referee_of(tmp_path, bench)
    for text in ("1.0", "1.1", "0.9", "1.2", "1.3"):
        answer(text)
    assert len(kept_candidates(tmp_path)) == 3  # The start, the promoted one, the last.


def test_a_candidate_that_was_changed_meanwhile_is_not_trusted(bench: CandidateBench, tmp_path: Path) -> None:
    answer = referee_of(tmp_path, bench)
    answer("1.0")
    (start,) = kept_candidates(tmp_path)
    (start / "candidate").write_text("2.0")
    with pytest.raises(RunError, match="is gone or was changed"):
        answer("1.5")


def test_a_name_with_a_line_feed_is_not_taken_for_another_candidate(tmp_path: Path) -> None:
    two, single = tmp_path / "two" / "candidate", tmp_path / "single" / "candidate"
    two.mkdir(parents=True)
    (two / "a").write_text("A")
    (two / "b").write_text("B")
    inside = single / f"a\n{file_sha256(two / 'b')} 0 candidate"
    inside.mkdir(parents=True)
    (inside / "b").write_text("A")
    candidates = Candidates(tmp_path / "kept")
    assert candidates.take(two) != candidates.take(single)


def test_other_rules_require_another_campaign(bench: CandidateBench, tmp_path: Path) -> None:
    referee_of(tmp_path, bench)("1.0")
    with pytest.raises(RequestError, match="began with other options"):
        referee_of(tmp_path, bench, confirm=5)("0.9")


def test_the_budget_of_a_referee_ends(bench: CandidateBench, tmp_path: Path) -> None:
    answer = referee_of(tmp_path, bench, proposals=1)
    answer("1.0")
    assert answer("0.9").accepted
    with pytest.raises(RequestError, match="used all of its 1 tests"):
        answer("0.8")


def test_settings_are_not_proposed_to_a_referee(bench: CandidateBench, tmp_path: Path) -> None:
    referee_of(tmp_path, bench)("1.0")
    evaluator = Evaluator(KeptCampaign(tmp_path / "data/campaigns/refereed"), catalogue(), bench)
    for settings in ({TUNABLE: "1"}, {"candidate": "../../../etc"}):
        with pytest.raises(RequestError, match="not settings"):
            evaluator.propose(settings)
    with pytest.raises(RunError, match="is gone"):
        evaluator.propose({"candidate": "0" * 64})


def test_a_directory_is_a_candidate(tmp_path: Path) -> None:
    candidates, tree = Candidates(tmp_path / "kept"), tmp_path / "tree"
    (tree / "lib").mkdir(parents=True)
    (tree / "run").write_text("#!/bin/sh")
    (tree / "run").chmod(0o700)
    (tree / "lib/data").write_text("1")
    first = candidates.take(tree)
    assert candidates.take(tree) == first
    assert [Path(path).name for path in candidates.files(first)] == ["data", "run"]
    assert (tmp_path / "kept" / candidates.place(first) / "run").stat().st_mode & 0o100
    (tree / "lib/data").write_text("2")
    assert candidates.take(tree) != first
    assert len(list((tmp_path / "kept/candidates").iterdir())) == 2


@pytest.mark.parametrize(
    ("make", "message"), [(Path.mkdir, "empty directory"), (os.mkfifo, "not"), (Path.absolute, "not found")]
)
def test_what_cannot_be_a_candidate_is_refused(make: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    path = tmp_path / "candidate"
    make(path)
    with pytest.raises(RequestError, match=message):
        Candidates(tmp_path / "kept").take(path)
    assert list((tmp_path / "kept/candidates").iterdir()) == []
