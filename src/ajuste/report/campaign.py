"""A campaign for people: what was promoted, what became of each proposal, and the error budget that is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ajuste.model.campaign import CampaignStanding, ExploredMetric, ProposalRecord
from ajuste.model.wording import change, count_of, listed, percent, visible_line
from ajuste.report.document import Block, Cell, Column, CommandBlock, Fact, Facts, Report, Row, RowGroup, Section, Table

_COLUMNS: Final = (
    Column("#"),
    Column("Proposal", figure=False),
    Column("Explored"),
    Column("Evidence"),
    Column("Required"),
    Column("Result", figure=False),
)
_LONGEST: Final = 80


def campaign_report(found: CampaignStanding) -> Report:
    """The answer first, then the ledger."""
    sections = []
    if found.proposals:
        table = Table(_COLUMNS, (RowGroup("", tuple(map(_row, found.proposals))),), name="ledger", title="Proposals")
        sections.append(Section("Proposals", (table,), name="ledger"))
    rules: tuple[Block, ...] = (Facts(_rules(found), name="rules"),)
    sections.append(Section("Rules", rules, name="rules"))
    return Report(title=f"Campaign {found.campaign.name}", headline=_headline(found), sections=tuple(sections))


def proposal_report(record: ProposalRecord, found: CampaignStanding) -> Report:
    """What became of one proposal."""
    facts = [
        Fact("Explored", "; ".join(_explored(one) for one in record.explored) or "not yet"),
        Fact("Evidence", _evidence(record)),
        Fact("Budget", _budget(found)),
    ]
    if record.reason:
        facts.append(Fact("Reason", visible_line(record.reason)))
    command = CommandBlock("Ledger", (f"ajuste campaign show {found.campaign.name}",))
    headline = f"Proposal {record.proposal} is {record.status}: {settings_words(record.settings)}."
    section = Section("Proposal", (Facts(tuple(facts)), command), name="proposal")
    return Report(title=f"Campaign {found.campaign.name}", headline=headline, sections=(section,))


def settings_words(settings: Mapping[str, str]) -> str:
    """``NAME=LEVEL``, one after the other; it may be of any stranger."""
    text = visible_line(", ".join(f"{name}={level}" for name, level in settings.items()))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _headline(found: CampaignStanding) -> str:
    best = [one for one in found.proposals if one.status == "promoted"]
    if best:
        named = listed([settings_words(one.settings) for one in best[-3:]])
        return f"{count_of(len(best), 'proposal')} of {len(found.proposals)} promoted: {named}."
    if not found.proposals:
        return f"No proposal yet. {_budget(found)}."
    return f"Nothing promoted of {count_of(len(found.proposals), 'proposal')}. {_budget(found)}."


def _budget(found: CampaignStanding) -> str:
    left = count_of(found.tests_left, "test")
    if not found.tests_left:
        return "No test is left"
    return f"{left} of {found.campaign.proposals} left, the next at {percent(found.next_level)}"


def _rules(found: CampaignStanding) -> tuple[Fact, ...]:
    campaign = found.campaign
    goal = campaign.metric if campaign.witness is None else f"{campaign.metric}, and {campaign.witness} as witness"
    more = f", and {count_of(campaign.hidden, 'hidden workload')}" if campaign.hidden else ""
    return (
        Fact("Goal", goal),
        Fact("Workload", visible_line(campaign.study + more)),
        Fact("May propose", ", ".join(campaign.tunables)),
        Fact("Blocks", f"{campaign.explore} to explore, {campaign.confirm} to confirm with hidden seeds"),
        Fact("Budget", f"{_budget(found)}; at most {percent(campaign.error_rate)} of promotions are false"),
        Fact("Ledger", f"{found.head[:16]} (SHA-256 of all lines, first digits)"),
    )


def _row(record: ProposalRecord) -> Row:
    cells = (
        str(record.proposal),
        settings_words(record.settings),
        Cell(_explored(record.explored[0])) if record.explored else Cell("", missing="not explored"),
        "–" if record.e_value is None else f"{record.e_value:.3g}",
        "–" if record.level is None else f"{1 / record.level:.3g}",
        record.status,
    )
    remark = visible_line(record.reason) if record.status == "refused" else ""
    return Row(cells, remark=remark, marked=record.status == "refused")


def _explored(one: ExploredMetric) -> str:
    return f"{one.metric} {change(one.estimate, one.scale, one.unit)}"


def _evidence(record: ProposalRecord) -> str:
    if record.level is None:
        return "not tested"
    if record.e_value is None:
        return f"not known yet; {1 / record.level:.3g} is required"
    return f"{record.e_value:.3g}, where {1 / record.level:.3g} is required"
