"""How a campaign stands: the lines of its ledger, told as proposals and a budget."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.analysis.campaign.spending import ErrorBudget
from ajuste.model.campaign import Campaign, CampaignEntry, CampaignStanding, ProposalRecord, ProposalStatus


def standing(campaign: Campaign, entries: Sequence[CampaignEntry]) -> CampaignStanding:
    """A test counts from its line *confirming* on, whatever became of it."""
    by_proposal: dict[int, list[CampaignEntry]] = {}
    for entry in entries:
        if entry.proposal:
            by_proposal.setdefault(entry.proposal, []).append(entry)
    records = tuple(_record(number, own) for number, own in sorted(by_proposal.items()))
    levels = [one.level for one in records if one.level is not None]
    promoted = sum(one.status == "promoted" for one in records)
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
    found = {entry.event: entry for entry in entries}
    ended = found.get("refused") or found.get("confirmed")
    explored = found.get("explored")
    return ProposalRecord(
        proposal=number,
        settings=entries[0].settings,
        status=_status("refused" in found, ended, explored),
        explored=explored.explored if explored else (),
        level=found["confirming"].level if "confirming" in found else None,
        e_value=ended.e_value if ended else None,
        reason=ended.reason if ended else explored.reason if explored else "",
    )


def _status(refused: bool, ended: CampaignEntry | None, explored: CampaignEntry | None) -> ProposalStatus:
    if refused:
        return "refused"
    if ended is not None:
        return "promoted" if ended.promoted else "not confirmed"
    return "not promising" if explored is not None and explored.promising is False else "unfinished"
