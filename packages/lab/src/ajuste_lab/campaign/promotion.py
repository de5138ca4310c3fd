"""Promotion in campaigns: many proposals for one goal, each judged by its confirmations, under one error budget.

The evidence of an improvement is an e-value (see ``ajuste_stats.e_values``). docs/explanation/campaigns.md says what
follows.

An e-value is about typical pairs. An optimiser finds settings that cost much in a few trials and save a little in the
others, and 40 pairs may have none of these few. So what passes is measured until ``PROOF_BLOCKS``: what happens in
``SELDOM`` of the trials is then in at least one of them, and the mean change must be an improvement. This check only
takes promotions back, so the error budget holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np
import scipy

from ajuste.analysis.pairs import Clean, clean_trials, pairs
from ajuste.model.event import Output, parse_event
from ajuste.model.metric import Metric
from ajuste.model.plan import Choice, FileLocation, Flag, Write
from ajuste.model.trial import Trial
from ajuste.model.tunable import same_value
from ajuste_lab.campaign.model import (
    CANDIDATE,
    START_SCORE,
    Campaign,
    CampaignEntry,
    CampaignStanding,
    ProposalRecord,
    ProposalStatus,
    RefereeAnswer,
)
from ajuste_stats.e_values import ErrorBudget, improvement_value
from ajuste_stats.effects import effect
from ajuste_stats.fixed_samples import moments
from ajuste_stats.sign_intervals import blind_spot

SELDOM: Final = 0.02
"""The share of trials that may not hide what a promotion costs."""
PROOF_BLOCKS: Final = next(blocks for blocks in count(1) if blind_spot(blocks, 0.97) <= SELDOM)
"""The blocks after which what happens in ``SELDOM`` of trials was seen with 97 %."""
_SURE: Final = 0.05


def standing(campaign: Campaign, entries: Sequence[CampaignEntry]) -> CampaignStanding:
    """Return the state of a campaign; a test counts from its line *confirming* on, whatever its outcome."""
    by_proposal: dict[int, list[CampaignEntry]] = {}
    for entry in entries:
        if entry.proposal:
            by_proposal.setdefault(entry.proposal, []).append(entry)
    records = tuple(_record(number, proposal_entries) for number, proposal_entries in sorted(by_proposal.items()))
    levels = [record.level for record in records if record.level is not None]
    promoted = sum(record.status == "promoted" for record in records)
    return CampaignStanding(
        campaign=campaign,
        proposals=records,
        tests=len(levels),
        promoted=promoted,
        tests_left=campaign.proposals - len(levels),
        error_spent=campaign.error_rate * len(levels) / campaign.proposals,
        next_level=ErrorBudget(campaign.error_rate, campaign.proposals).level(len(levels), promoted),
        head=entries[-1].digest if entries else "",
    )


def _record(number: int, entries: Sequence[CampaignEntry]) -> ProposalRecord:
    by_event = {entry.event: entry for entry in entries}
    ended = by_event.get("refused") or by_event.get("confirmed")
    explored = by_event.get("explored")
    return ProposalRecord(
        proposal=number,
        settings=entries[0].settings,
        status=_status("refused" in by_event, ended, explored),
        explored=explored.explored if explored else (),
        level=by_event["confirming"].level if "confirming" in by_event else None,
        e_value=ended.e_value if ended else None,
        reason=ended.reason if ended else explored.reason if explored else "",
    )


def _status(refused: bool, ended: CampaignEntry | None, explored: CampaignEntry | None) -> ProposalStatus:
    if refused:
        return "refused"
    if ended is not None:
        return "promoted" if ended.promoted else "not confirmed"
    return "not promising" if explored is not None and explored.promising is False else "unfinished"


def incumbents(standing: CampaignStanding) -> dict[str, float]:
    """Return the incumbents with their scores, the present one last."""
    if standing.campaign.refereed is None:
        return {}
    score = START_SCORE
    scores = {standing.campaign.refereed.start: score}
    for proposal in standing.proposals:
        if proposal.status == "promoted":
            score = float(f"{score * (proposal.explored[0].estimate or 1.0):.12g}")
            scores[proposal.settings[CANDIDATE]] = score
    return scores


def referee_answer(standing: CampaignStanding, candidate: str) -> RefereeAnswer | None:
    """Return what is known of a candidate; nothing before it was judged, or if it could not be measured.

    One that is not promoted scores as the start does. So an optimiser that keeps what scores better than all before
    keeps only what was promoted, whatever it began with.
    """
    scores = incumbents(standing)
    proposals = [proposal for proposal in standing.proposals if proposal.settings.get(CANDIDATE) == candidate]
    if candidate in scores:
        is_last = candidate == list(scores)[-1]
        status = ("promoted" if proposals else "incumbent") if is_last else "superseded"
        return RefereeAnswer(score=scores[candidate], accepted=is_last, status=status)
    if not proposals or proposals[-1].status == "unfinished":
        return None
    last = proposals[-1]
    if any(metric.estimate is None for metric in last.explored):
        return None
    return RefereeAnswer(score=START_SCORE, accepted=False, status=last.status, reason=last.reason)


def evidence(clean: Clean, baseline: str, other: str, metric: Metric, *, order_matters: bool) -> float:
    """Return the e-value that ``other`` improves ``metric``; 0 with few pairs, or if some trials cost more."""
    both = pairs(clean, baseline, other, metric.column, order_matters=order_matters)
    improvement = effect(both, metric, 0.05)
    if improvement is None or improvement.same_order or improvement.averages_disagree:
        return 0.0
    return improvement_value(improvement.interval, metric.direction)


@dataclass(frozen=True)
class ReadBackPlan:
    """The tunable that each command after the workload (by its number, from 0) reads again."""

    commands: Mapping[int, Write]


@dataclass(frozen=True)
class ConfirmedPart:
    """The trials of one workload in a confirmation: ``blocks`` of baseline and proposal.

    ``metrics`` are the goal and its witness. ``read_back`` says for each configuration what is read again after the
    workload.
    """

    trials: Sequence[Trial]
    baseline: str
    proposal: str
    metrics: tuple[Metric, ...]
    blocks: int
    read_back: Mapping[str, ReadBackPlan]
    hidden: bool = False
    order_matters: bool = False


def rare_costs(confirmed: Sequence[ConfirmedPart], proved: Sequence[ConfirmedPart]) -> str:
    """Say on which metric a few trials may cost more than the others save, from all blocks of both; or nothing.

    The mean change, with the worst pair taken twice, must be an improvement by a one-sided t test at 5 %: what was seen
    once may be twice as frequent, and of what was never seen ``PROOF_BLOCKS`` bound the share.
    """
    for part in proved:
        if reason := _distrust(part):
            return reason if not part.hidden else f"on a hidden workload, {reason}"
    for parts in zip(confirmed, *([proved] if proved else []), strict=True):
        for metric in parts[0].metrics:
            both = [
                pairs(clean_trials(part.trials), part.baseline, part.proposal, metric.column, order_matters=False)
                for part in parts
            ]
            baseline, other = (np.concatenate([getattr(pair, side) for pair in both]) for side in ("baseline", "other"))
            worse = (other - baseline) * (-1 if metric.direction == "higher" else 1)
            mean, error, n = moments(np.append(worse, np.max(worse, initial=0.0)))
            if not mean + error * scipy.special.stdtrit(n - 1, 1 - _SURE) < 0:
                return f"a few of {n - 1} trials may cost more {metric.name} than the others save"
    return ""


@dataclass(frozen=True)
class Judgement:
    """The least ``e_value`` of all workloads and metrics, that of ``metric``; 0 if a check ``refused``."""

    e_value: float
    metric: str = ""
    refused: str = ""


def judgement(parts: Sequence[ConfirmedPart]) -> Judgement:
    """Judge a confirmation. The least of several e-values is one."""
    for part in parts:
        if reason := _distrust(part):
            return Judgement(0.0, refused=reason if not part.hidden else f"on a hidden workload, {reason}")
    judgements = [
        Judgement(
            evidence(clean_trials(part.trials), part.baseline, part.proposal, metric, order_matters=part.order_matters),
            metric.name,
        )
        for part in parts
        for metric in part.metrics
    ]
    return min(judgements, key=lambda judgement: judgement.e_value, default=Judgement(0.0))


def _distrust(part: ConfirmedPart) -> str:
    for trial in part.trials:
        if trial.status == "ok" and (reason := changed_meanwhile(trial, part.read_back)):
            return reason
    clean = clean_trials(part.trials)
    measured = clean.places(part.baseline) >= 0
    lost = int(np.count_nonzero(measured & (clean.places(part.proposal) < 0)))
    if lost:
        return f"{lost} of {part.blocks} blocks have no clean trial of the proposal"
    if int(np.count_nonzero(measured)) * 2 < part.blocks:
        return f"fewer than half of the {part.blocks} blocks could be measured"
    return ""


def changed_meanwhile(trial: Trial, read_back: Mapping[str, ReadBackPlan]) -> str:
    """Say which tunable differs after the workload from what was written before it, or nothing."""
    plan = read_back.get(trial.slot.configuration)
    if plan is None or not plan.commands:
        return ""
    written = {write.tunable: write.after for write in trial.written}
    printed = _printed_after(trial)
    for index, write in plan.commands.items():
        if index not in printed:
            return f"{write.tunable} could not be read after the workload"
        now, before = value_in(printed[index], write), written.get(write.tunable, write.value)
        if not same_value(now, before):
            return f"{write.tunable} was {before[:60]!r} before the workload and {now[:60]!r} after it"
    return ""


def _printed_after(trial: Trial) -> dict[int, str]:
    events = (parse_event(line) for line in trial.events.split("\n") if '"after"' in line and '"output"' in line)
    return {
        event.index: event.text
        for event in events
        if isinstance(event, Output) and event.role == "after" and event.stream == "stdout"
    }


def can_be_read_back(write: Write) -> bool:
    """Return whether reading its file again shows its value."""
    return isinstance(write.location, FileLocation | Flag | Choice)


def value_in(text: str, write: Write) -> str:
    """Return the value of a tunable in the text of its file, as the agent reports it."""
    words = text.split()
    match write.location:
        case Flag(name=name):
            return "1" if name in words else "0" if f"NO_{name}" in words else ""
        case Choice():
            chosen = [word[1:-1] for word in words if word[:1] + word[-1:] in ("[]", "()")]
            return chosen[0] if chosen else text.strip()
        case _:
            return text.strip()
