"""The sealed evaluator: what it promotes, what it refuses, and that its ledger cannot be rewritten."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.campaigns import play
from benchmarks.campaigns.played import CHEATS, GUESSED, HONEST, TUNABLE, PlayedBench, PlayedTrial, begin, promoted

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_study_spec
from ajuste.model.error import RequestError, RunError
from ajuste.study.builtin import find_study
from ajuste.study.read import read_study
from ajuste.study.schema import Study
from ajuste_lab.campaign.evaluator import Evaluator, SealedTrials
from ajuste_lab.campaign.kept import KeptCampaign
from ajuste_lab.campaign.model import Campaign
from ajuste_lab.campaign.parts import check_campaign
from ajuste_lab.campaign.promotion import PROOF_BLOCKS


def bench(factor: float = 0.9) -> PlayedBench:
    return PlayedBench(lambda _: PlayedTrial(factor), np.random.default_rng(1))


def test_what_is_really_better_is_promoted(tmp_path: Path) -> None:
    assert promoted(HONEST, tmp_path, 1, tries=2) == 2


@pytest.mark.parametrize("kind", [*CHEATS, GUESSED])
def test_no_cheat_is_promoted(kind: str, tmp_path: Path) -> None:
    assert promoted(kind, tmp_path, 1, tries=2) == 0


@pytest.mark.parametrize(("share", "times"), [(0.02, 3.0), (0.03, 2.0), (0.05, 1.6)])
def test_a_saving_that_a_few_trials_cost_again_is_not_promoted(share: float, times: float, tmp_path: Path) -> None:
    """The others are 2 % faster, and the mean is 1 to 2 % slower."""
    random = np.random.default_rng(3)
    moments = PlayedBench(lambda _: PlayedTrial(times if random.random() < share else 0.98), random, noise=0.003)
    evaluator = Evaluator(begin(tmp_path), catalogue(), moments)
    records = [evaluator.propose({TUNABLE: str(number + 1)}) for number in range(20)]
    assert sum(record.status == "promoted" for record in records) <= 1


def test_a_rare_cost_is_the_reason_and_takes_more_blocks_than_the_confirmation(tmp_path: Path) -> None:
    count = iter(range(10_000))
    late = PlayedBench(
        lambda _: PlayedTrial(3.0 if next(count) in (90, 120) else 0.98), np.random.default_rng(3), noise=0.003
    )
    record = Evaluator(begin(tmp_path), catalogue(), late).propose({TUNABLE: "1"})
    assert record.status == "not confirmed"
    assert record.e_value is not None
    assert record.e_value > 4000
    assert f"a few of {PROOF_BLOCKS} trials" in record.reason


def test_useless_proposals_are_not_promoted_and_a_t_test_would_promote_them() -> None:
    assert play(100, 1).false == 0
    assert play(100, 1, t_tests=True).false > 0.9


def test_an_improvement_among_useless_proposals_is_found() -> None:
    assert play(100, 2, improvement=0.03).promoted_better > 0.8


def test_what_does_not_look_better_costs_no_test(tmp_path: Path) -> None:
    evaluator = Evaluator(begin(tmp_path), catalogue(), bench(1.1))
    assert evaluator.propose({TUNABLE: "1"}).status == "not promising"
    assert evaluator.standing().tests == 0


def test_seeds_of_proposals_and_phases_differ_and_follow_from_the_secret(tmp_path: Path) -> None:
    campaign = begin(tmp_path)
    seeds = {
        campaign.seed(number, phase, part) for number in (1, 2) for phase in ("explore", "confirm") for part in (0, 1)
    }
    assert len(seeds) == 8
    assert KeptCampaign(campaign.directory).seed(1, "confirm") == campaign.seed(1, "confirm")
    (tmp_path / "other").mkdir()
    assert begin(tmp_path / "other").seed(1, "confirm") not in seeds


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel.sched_autogroup_enabled": "1"}, "does not allow"),
        ({TUNABLE: "5000"}, "out of range"),
        ({TUNABLE: "x" * 1000}, "1 to 500 characters"),
        ({}, "nothing is proposed"),
    ],
)
def test_what_is_not_allowed_leaves_no_trace(settings: dict[str, str], message: str, tmp_path: Path) -> None:
    evaluator = Evaluator(begin(tmp_path), catalogue(), bench())
    with pytest.raises(RequestError, match=message):
        evaluator.propose(settings)
    assert evaluator.standing().proposals == ()


def test_the_budget_ends(tmp_path: Path) -> None:
    evaluator = Evaluator(begin(tmp_path, proposals=1), catalogue(), bench())
    assert evaluator.propose({TUNABLE: "1"}).status == "promoted"
    with pytest.raises(RequestError, match="used all of its 1 tests"):
        evaluator.propose({TUNABLE: "2"})


class Interrupted(PlayedBench):
    """A bench that is interrupted in its second measurement, once."""

    calls = 0

    def measured(self, study: Study, store_file: Path) -> SealedTrials:
        self.calls += 1
        if self.calls == 2:
            raise KeyboardInterrupt
        return super().measured(study, store_file)


def test_an_interrupted_test_goes_on_at_its_own_level(tmp_path: Path) -> None:
    campaign = begin(tmp_path, proposals=10)
    evaluator = Evaluator(campaign, catalogue(), Interrupted(lambda _: PlayedTrial(0.9), np.random.default_rng(1)))
    with pytest.raises(KeyboardInterrupt):
        evaluator.propose({TUNABLE: "1"})
    assert (evaluator.standing().tests, evaluator.standing().proposals[0].status) == (1, "unfinished")
    again = Evaluator(KeptCampaign(campaign.directory), catalogue(), bench())
    assert again.propose({TUNABLE: "1"}).status == "promoted"
    assert (again.standing().tests, len(again.standing().proposals)) == (1, 1)


def _edited(text: str) -> str:
    return text.replace('"e_value":0.0', '"e_value":9.9')


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("ledger.jsonl", _edited),
        ("ledger.jsonl", lambda text: "".join(text.splitlines(keepends=True)[:2] + text.splitlines(keepends=True)[3:])),
        ("ledger.jsonl", lambda text: text[:-10]),
        ("campaign.json", lambda text: text.replace('"error_rate":0.05', '"error_rate":0.5')),
        ("sealed.json", lambda text: text.replace('"secret":"', '"secret":"00')),
    ],
)
def test_a_campaign_that_was_changed_is_not_trusted(file: str, change: object, tmp_path: Path) -> None:
    campaign = begin(tmp_path)
    bench = PlayedBench(CHEATS["slow trials never end"], np.random.default_rng(1))
    bench.world = lambda moment: PlayedTrial(0.9, ends=not (moment.study == "unseen" and moment.noise > 1))
    assert Evaluator(campaign, catalogue(), bench).propose({TUNABLE: "1"}).status == "refused"
    path = campaign.directory / file
    before = path.read_text()
    after = change(before)  # type: ignore[operator]
    assert after != before
    path.write_text(after)
    with pytest.raises(RunError, match=r"damaged|changed after it began"):
        KeptCampaign(campaign.directory)


def test_a_study_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    campaign = begin(tmp_path)
    unseen = tmp_path / "unseen.toml"
    unseen.write_text(unseen.read_text().replace('"true"', '"false"'))
    with pytest.raises(RequestError, match="hidden study 1 changed") as refused:
        Evaluator(campaign, catalogue(), bench()).propose({TUNABLE: "1"})
    assert "unseen" not in str(refused.value)


def test_the_ledger_does_not_tell_what_is_hidden(tmp_path: Path) -> None:
    campaign = begin(tmp_path)
    evaluator = Evaluator(campaign, catalogue(), bench())
    evaluator.propose({TUNABLE: "1"})
    published = evaluator.standing().model_dump_json() + (campaign.directory / "ledger.jsonl").read_text()
    secret = json.loads((campaign.directory / "sealed.json").read_text())["secret"]
    assert "unseen" not in published
    assert secret not in published
    assert (campaign.directory / "sealed.json").stat().st_mode & 0o077 == 0


def test_a_goal_that_the_workload_prints_requires_a_witness(tmp_path: Path) -> None:
    begin(tmp_path)
    study = read_study(tmp_path / "seen.toml", catalogue())
    wanted = Campaign(name="c", study="seen", study_sha256="", metric="latency", tunables=(TUNABLE,))
    with pytest.raises(RequestError, match="the workload prints this figure"):
        check_campaign(wanted, (study,), catalogue())
    assert check_campaign(wanted.model_copy(update={"witness": "elapsed"}), (study,), catalogue()).witness == "elapsed"


def test_the_workload_is_not_to_be_proposed(tmp_path: Path) -> None:
    begin(tmp_path)
    study = read_study(tmp_path / "seen.toml", catalogue())
    wanted = Campaign(name="c", study="seen", study_sha256="", metric="elapsed", tunables=("workload.size",))
    with pytest.raises(RequestError, match="may not change the workload"):
        check_campaign(wanted, (study,), catalogue())


def test_a_tunable_that_there_is_not_is_refused(tmp_path: Path) -> None:
    begin(tmp_path)
    study = read_study(tmp_path / "seen.toml", catalogue())
    wanted = Campaign(name="c", study="seen", study_sha256="", metric="elapsed", tunables=("vm.swapiness",))
    with pytest.raises(RequestError, match=r"'vm\.swapiness' not found"):
        check_campaign(wanted, (study,), catalogue())


def test_a_goal_may_be_what_a_study_only_describes(tmp_path: Path) -> None:
    study = read_study(find_study("hackbench-granularity"), catalogue(), parse_kernel=parse_study_spec)
    (goal, *_) = study.analysis.describe or ()
    tunables = ("sched_min_granularity_ns",)
    wanted = Campaign(name="c", study="s", study_sha256="", metric=goal, better="lower", tunables=tunables)
    assert check_campaign(wanted.model_copy(update={"witness": "elapsed"}), (study,), catalogue()).metric == goal
