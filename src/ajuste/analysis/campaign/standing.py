"""How a campaign stands: its ledger, told as proposals, and the error budget that they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ajuste.model.campaign import Campaign, CampaignEntry, CampaignStanding, ProposalRecord, ProposalStatus

# One error budget over all proposals of a campaign: e-LOND (Xu and Ramdas 2024, "Online multiple testing with
# e-values", AISTATS, arXiv:2311.06412).
#
# The test of number t rejects where its e-value is at least 1/α_t, with α_t = α·γ_t·(rejections before + 1). The false
# discovery rate is at most α, however e-values depend on each other and on what was proposed because of them: each
# needs a mean of at most 1 given all before it. A campaign says beforehand how many tests there may be, and γ_t is an
# equal share for each of them.


@dataclass(frozen=True)
class ErrorBudget:
    """``alpha`` is the false discovery rate of the whole, ``tests`` how many there may be."""

    alpha: float
    tests: int

    def level(self, tested: int, promoted: int) -> float:
        """The level of the next test after ``tested`` ones with ``promoted`` promotions; 0 if the budget is spent."""
        return self.alpha / self.tests * (promoted + 1) if tested < self.tests else 0.0

    def promoted(self, e_values: Iterable[float]) -> list[bool]:
        """Of each test in a row whether it is a promotion."""
        found: list[bool] = []
        for value in e_values:
            level = self.level(len(found), sum(found))
            found.append(is_promoted(value, level))
        return found


def is_promoted(e_value: float, level: float) -> bool:
    """Whether so much evidence is enough at that level."""
    return level > 0 and e_value * level >= 1


# The ledger, proposal by proposal.


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
