"""The evaluator: a proposal is explored where its proposer sees the figures, and confirmed where nobody does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ajuste.analysis.campaign import (
    ConfirmedPart,
    Judgement,
    ReadBackPlan,
    incumbents,
    is_promoted,
    judgement,
    standing,
)
from ajuste.analysis.verdict import judge
from ajuste.catalogue.loader import Catalogue
from ajuste.model.campaign import CampaignStanding, ExploredMetric, ProposalRecord
from ajuste.model.capability import Asked, asked_here
from ajuste.model.error import RequestError
from ajuste.model.trial import Configuration, Trial
from ajuste.model.verdict import Verdict
from ajuste.outputs.trial import why_lost
from ajuste.run.campaign.kept import KeptCampaign
from ajuste.run.campaign.parts import (
    checked_settings,
    goals_of,
    proposed_study,
    with_read_back,
)
from ajuste.run.experiment import built_kernels, conduct, resolved_study
from ajuste.run.runner import Watcher
from ajuste.run.testbed import RunOptions, testbed_for
from ajuste.study.overrides import with_kernels
from ajuste.study.schema import Study


@dataclass(frozen=True)
class SealedTrials:
    """The trials of one study under both ``configurations``, and what was read again after its workload."""

    configurations: tuple[Configuration, ...]
    trials: Sequence[Trial]
    read_back: Mapping[str, ReadBackPlan]


class SealedBench(Protocol):
    """Where a campaign measures."""

    def check(self, study: Study) -> None:
        """Raises RequestError for what cannot be carried out as it is written. Nothing is measured."""
        ...

    def measured(self, study: Study, kept: Path) -> SealedTrials:
        """All trials of ``study``; they are kept in the store ``kept``, and not measured again from there."""
        ...


@dataclass(frozen=True)
class ExperimentBench:
    """Guests, or this machine, as in ``ajuste run``. ``watching`` gives a display for a study."""

    known: Catalogue
    means: RunOptions
    watching: Callable[[Study], AbstractContextManager[Watcher]]

    def check(self, study: Study) -> None:
        with_read_back(resolved_study(study, self.known, self.means))

    def measured(self, study: Study, kept: Path) -> SealedTrials:
        from ajuste.report.progress import BuildProgress
        from ajuste.store.store import Store

        with BuildProgress(quiet=True) as building:
            study = with_kernels(study, built_kernels(study, self.known, self.means, building))
        with self.watching(study) as watcher:
            means = replace(self.means, say=watcher.say)
            resolved, plans = with_read_back(resolved_study(study, self.known, means))
            experiment = testbed_for(study, means).prepared(resolved, self.known)
            with Store(f"sqlite:///{kept}") as store:
                run = conduct(experiment, store, watcher, means, named=f"campaign {study.name}")
                both = tuple(one.configuration for one in resolved.configurations)
                return SealedTrials(both, store.trials(run), plans)


class Evaluator:
    """Proposals to one campaign by who ``asked``. ``bench`` measures."""

    def __init__(self, kept: KeptCampaign, known: Catalogue, bench: SealedBench, asked: Asked | None = None) -> None:
        self._asked = asked or asked_here()
        self._kept = kept
        self._known = known
        self._bench = bench

    def standing(self) -> CampaignStanding:
        """The campaign as its ledger has it."""
        return standing(self._kept.campaign, self._kept.ledger.entries)

    def check(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The proposal as it would be kept. Raises RequestError for one that is not allowed; nothing is measured."""
        found = checked_settings(settings, self._kept.campaign, self._known, self._asked)
        if self.standing().tests_left == 0:
            raise RequestError(
                f"the campaign {self._kept.campaign.name} has used all of its {self._kept.campaign.proposals} tests",
                hint="begin a new one with ajuste campaign new",
            )
        for study in self._kept.studies(self._known):
            proposed = self._proposed(study, found, self._kept.campaign.confirm)
            levels = proposed.factors[0].settings.values()
            if not self._kept.campaign.refereed and len({tuple(sorted(own.items())) for own in levels}) < 2:
                raise RequestError("the proposal is the baseline", hint="propose another level")
            self._bench.check(proposed)
        return found

    def propose(self, settings: Mapping[str, str]) -> ProposalRecord:
        """Explore, and confirm if it looks better. A proposal that was interrupted goes on where it was.

        Raises RequestError for what is not allowed, and where another proposal is going on.
        """
        found = self.check(settings)
        with self._kept.locked():
            number = self._begun(found)
            if self._explored(number, found):
                self._confirmed(number, found)
        return self.standing().proposals[number - 1]

    def _begun(self, settings: dict[str, str]) -> int:
        records = self.standing().proposals
        if records and records[-1].status == "unfinished" and records[-1].settings == settings:
            return records[-1].proposal
        number = len(records) + 1
        self._kept.ledger.add("proposed", proposal=number, settings=settings)
        return number

    def _entry(self, number: int, event: str) -> bool:
        return any(one.proposal == number and one.event == event for one in self._kept.ledger.entries)

    def _explored(self, number: int, settings: dict[str, str]) -> bool:
        # Whether it looks better on the visible workload.
        if self._entry(number, "explored"):
            return True  # It was confirmed when it was interrupted.
        campaign, study = self._kept.campaign, self._kept.studies(self._known)[0]
        seed = self._kept.seed(number, "explore")
        proposed = self._proposed(study, settings, campaign.explore).with_choices(seed=seed)
        measured = self._bench.measured(proposed, self._kept.explored)
        goals = goals_of(campaign, study, self._known)
        verdicts = judge(
            measured.configurations,
            measured.trials,
            goals,
            confidence=study.analysis.confidence,
            smallest_effect=study.analysis.smallest_effect,
            order_matters=study.target.clock == "wall",
        )
        promising = all(_is_better(one) for one in verdicts)
        self._kept.ledger.add(
            "explored",
            proposal=number,
            explored=tuple(map(_told, verdicts)),
            promising=promising,
            reason="" if promising else _why_not(verdicts, measured.trials),
        )
        return promising

    def _confirmed(self, number: int, settings: dict[str, str]) -> None:
        # Test it, at a level that is spent before anything is measured.
        campaign = self._kept.campaign
        if not self._entry(number, "confirming"):
            self._kept.ledger.add("confirming", proposal=number, level=self.standing().next_level)
        level = self.standing().proposals[number - 1].level or 0.0
        parts = []
        for place, study in enumerate(self._kept.studies(self._known)):
            seed = self._kept.seed(number, "confirm", place)
            proposed = self._proposed(study, settings, campaign.confirm).with_choices(seed=seed)
            measured = self._bench.measured(proposed, self._kept.confirmed)
            part = ConfirmedPart(
                measured.trials,
                next(one.name for one in measured.configurations if one.baseline),
                next(one.name for one in measured.configurations if not one.baseline),
                goals_of(campaign, study, self._known),
                campaign.confirm,
                measured.read_back,
                hidden=place > 0,
                order_matters=study.target.clock == "wall",
            )
            parts.append(part)
        found = judgement(parts)
        if found.refused:
            self._kept.ledger.add("refused", proposal=number, e_value=0.0, promoted=False, reason=found.refused)
            return
        promoted = is_promoted(found.e_value, level)
        reason = "" if promoted else _too_little(found, level)
        self._kept.ledger.add("confirmed", proposal=number, e_value=found.e_value, promoted=promoted, reason=reason)

    def _proposed(self, study: Study, settings: Mapping[str, str], blocks: int) -> Study:
        said = " ".join(f"--set {name}={level}" for name, level in settings.items())
        incumbent = next(reversed(incumbents(self.standing())), "")
        return proposed_study(
            study, self._kept.campaign, settings, self._known, said=said, blocks=blocks, incumbent=incumbent
        )


def _too_little(found: Judgement, level: float) -> str:
    return f"the evidence for better {found.metric} is {found.e_value:.3g}; this level requires {1 / level:.3g}"


def _is_better(verdict: Verdict) -> bool:
    none = 1.0 if verdict.scale == "ratio" else 0.0
    return (
        verdict.estimate is not None
        and verdict.estimate != none
        and ((verdict.estimate > none) == (verdict.direction == "higher"))
    )


def _why_not(verdicts: Sequence[Verdict], trials: Sequence[Trial]) -> str:
    worse = next(one for one in verdicts if not _is_better(one))
    if worse.estimate is None:
        said = next((why_lost(one) for one in trials if one.status != "ok"), worse.reason)
        return f"{worse.metric} could not be measured: {said}"[:500]
    return f"{worse.metric} does not look better; no test was spent"


def _told(verdict: Verdict) -> ExploredMetric:
    return ExploredMetric(**{name: getattr(verdict, name) for name in ExploredMetric.model_fields})
