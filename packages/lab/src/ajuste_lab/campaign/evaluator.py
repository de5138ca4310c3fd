"""The evaluator: explores a proposal with visible figures, and confirms it with sealed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ajuste.analysis.verdict import judge
from ajuste.catalogue.loader import Catalogue
from ajuste.model.capability import Asked, asked_here
from ajuste.model.error import RequestError
from ajuste.model.trial import Configuration, Trial
from ajuste.model.verdict import Verdict
from ajuste.outputs.trial_status import why_lost
from ajuste.run.experiment import built_kernels, conduct, resolved_study
from ajuste.run.runner import Watcher
from ajuste.run.testbed import RunOptions, testbed_for
from ajuste.study.overrides import with_kernels
from ajuste.study.schema import Study
from ajuste_lab.campaign.kept import KeptCampaign
from ajuste_lab.campaign.model import CampaignStanding, ExploredMetric, ProposalRecord
from ajuste_lab.campaign.parts import (
    checked_settings,
    goals_of,
    proposed_study,
    with_read_back,
)
from ajuste_lab.campaign.promotion import (
    PROOF_BLOCKS,
    ConfirmedPart,
    ReadBackPlan,
    incumbents,
    judgement,
    rare_costs,
    standing,
)
from ajuste_stats.e_values import is_promoted


@dataclass(frozen=True)
class SealedTrials:
    """The trials of one study under both ``configurations``, with the tunables read back after the workload."""

    configurations: tuple[Configuration, ...]
    trials: Sequence[Trial]
    read_back: Mapping[str, ReadBackPlan]


class SealedBench(Protocol):
    """Measures the studies of a campaign."""

    def check(self, study: Study) -> None:
        """Raise RequestError for a study that cannot be carried out as written. Nothing is measured."""
        ...

    def measured(self, study: Study, store_file: Path) -> SealedTrials:
        """Return all trials of ``study``; those that ``store_file`` has already are not measured again."""
        ...


@dataclass(frozen=True)
class ExperimentBench:
    """Measures in guests or on this machine, as ``ajuste run``. ``watching`` opens a display for a study."""

    known: Catalogue
    options: RunOptions
    watching: Callable[[Study], AbstractContextManager[Watcher]]

    def check(self, study: Study) -> None:
        with_read_back(resolved_study(study, self.known, self.options))

    def measured(self, study: Study, store_file: Path) -> SealedTrials:
        from ajuste.report.progress import BuildProgress
        from ajuste.store.store import Store

        with BuildProgress(quiet=True) as building:
            study = with_kernels(study, built_kernels(study, self.known, self.options, building))
        with self.watching(study) as watcher:
            options = replace(self.options, say=watcher.say)
            resolved, plans = with_read_back(resolved_study(study, self.known, options))
            experiment = testbed_for(study, options).prepared(resolved, self.known)
            with Store(f"sqlite:///{store_file}") as store:
                run = conduct(experiment, store, watcher, options, named=f"campaign {study.name}")
                configurations = tuple(entry.configuration for entry in resolved.configurations)
                return SealedTrials(configurations, store.trials(run), plans)


class Evaluator:
    """Judges proposals to one campaign with the proposer's ``rights``; ``bench`` measures."""

    def __init__(self, stored: KeptCampaign, known: Catalogue, bench: SealedBench, rights: Asked | None = None) -> None:
        self._rights = rights or asked_here()
        self._stored = stored
        self._known = known
        self._bench = bench

    def standing(self) -> CampaignStanding:
        """Return the standing of the campaign, from its ledger."""
        return standing(self._stored.campaign, self._stored.ledger.entries)

    def check(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return a proposal's canonical settings. Raises RequestError if it is not allowed; nothing is measured."""
        checked = checked_settings(settings, self._stored.campaign, self._known, self._rights)
        campaign = self._stored.campaign
        if self.standing().tests_left == 0:
            raise RequestError(
                f"the campaign {campaign.name} has used all of its {campaign.proposals} tests",
                hint="begin a new one with ajuste campaign new",
            )
        for study in self._stored.studies(self._known):
            proposed = self._proposed(study, checked, campaign.confirm)
            levels = proposed.factors[0].settings.values()
            if not campaign.refereed and len({tuple(sorted(level.items())) for level in levels}) < 2:
                raise RequestError("the proposal is the baseline", hint="propose another level")
            self._bench.check(proposed)
        return checked

    def propose(self, settings: Mapping[str, str]) -> ProposalRecord:
        """Explore a proposal, and confirm it if it looks better. An interrupted proposal is resumed.

        Raises RequestError if it is not allowed, and during another proposal.
        """
        checked = self.check(settings)
        with self._stored.locked():
            number = self._number(checked)
            if self._explored(number, checked):
                self._confirmed(number, checked)
        return self.standing().proposals[number - 1]

    def _number(self, settings: dict[str, str]) -> int:
        records = self.standing().proposals
        if records and records[-1].status == "unfinished" and records[-1].settings == settings:
            return records[-1].proposal
        number = len(records) + 1
        self._stored.ledger.add("proposed", proposal=number, settings=settings)
        return number

    def _entry(self, number: int, event: str) -> bool:
        return any(entry.proposal == number and entry.event == event for entry in self._stored.ledger.entries)

    def _explored(self, number: int, settings: dict[str, str]) -> bool:
        if self._entry(number, "explored"):
            return True  # It was confirmed when it was interrupted.
        campaign, study = self._stored.campaign, self._stored.studies(self._known)[0]
        seed = self._stored.seed(number, "explore")
        proposed = self._proposed(study, settings, campaign.explore).with_choices(seed=seed)
        measured = self._bench.measured(proposed, self._stored.explored)
        goals = goals_of(campaign, study, self._known)
        verdicts = judge(
            measured.configurations,
            measured.trials,
            goals,
            confidence=study.analysis.confidence,
            smallest_effect=study.analysis.smallest_effect,
            order_matters=study.target.clock == "wall",
        )
        promising = all(_is_better(verdict) for verdict in verdicts)
        self._stored.ledger.add(
            "explored",
            proposal=number,
            explored=tuple(
                ExploredMetric(**{name: getattr(verdict, name) for name in ExploredMetric.model_fields})
                for verdict in verdicts
            ),
            promising=promising,
            reason="" if promising else _why_not(verdicts, measured.trials),
        )
        return promising

    def _confirmed(self, number: int, settings: dict[str, str]) -> None:
        # The level is spent before anything is measured: an interrupted test cannot be repeated for free.
        campaign = self._stored.campaign
        if not self._entry(number, "confirming"):
            self._stored.ledger.add("confirming", proposal=number, level=self.standing().next_level)
        level = self.standing().proposals[number - 1].level or 0.0
        parts = self._parts(number, "confirm", settings, campaign.confirm)
        judged = judgement(parts)
        if judged.refused:
            self._stored.ledger.add("refused", proposal=number, e_value=0.0, promoted=False, reason=judged.refused)
            return
        promoted = is_promoted(judged.e_value, level)
        evidence = f"the evidence for better {judged.metric} is {judged.e_value:.3g}"
        reason = "" if promoted else f"{evidence}; this level requires {1 / level:.3g}"
        if promoted:
            more = PROOF_BLOCKS - campaign.confirm
            reason = rare_costs(parts, self._parts(number, "prove", settings, more) if more > 0 else ())
            promoted = not reason
        self._stored.ledger.add("confirmed", proposal=number, e_value=judged.e_value, promoted=promoted, reason=reason)

    def _parts(self, number: int, phase: str, settings: dict[str, str], blocks: int) -> list[ConfirmedPart]:
        # Fresh blocks of the proposal on the visible workload and on all hidden ones.
        campaign, parts = self._stored.campaign, []
        for place, study in enumerate(self._stored.studies(self._known)):
            seed = self._stored.seed(number, phase, place)
            proposed = self._proposed(study, settings, blocks).with_choices(seed=seed)
            measured = self._bench.measured(proposed, self._stored.confirmed)
            part = ConfirmedPart(
                measured.trials,
                next(configuration.name for configuration in measured.configurations if configuration.baseline),
                next(configuration.name for configuration in measured.configurations if not configuration.baseline),
                goals_of(campaign, study, self._known),
                blocks,
                measured.read_back,
                hidden=place > 0,
                order_matters=study.target.clock == "wall",
            )
            parts.append(part)
        return parts

    def _proposed(self, study: Study, settings: Mapping[str, str], blocks: int) -> Study:
        command = " ".join(f"--set {name}={level}" for name, level in settings.items())
        incumbent = next(reversed(incumbents(self.standing())), "")
        return proposed_study(
            study, self._stored.campaign, settings, self._known, command=command, blocks=blocks, incumbent=incumbent
        )


def _is_better(verdict: Verdict) -> bool:
    none = 1.0 if verdict.scale == "ratio" else 0.0
    return (
        verdict.estimate is not None
        and verdict.estimate != none
        and ((verdict.estimate > none) == (verdict.direction == "higher"))
    )


def _why_not(verdicts: Sequence[Verdict], trials: Sequence[Trial]) -> str:
    worse = next(verdict for verdict in verdicts if not _is_better(verdict))
    if worse.estimate is None:
        reason = next((why_lost(trial) for trial in trials if trial.status != "ok"), worse.reason)
        return f"{worse.metric} could not be measured: {reason}"[:500]
    return f"{worse.metric} does not look better; no test was spent"
