"""A campaign as data: what may be proposed, and the outcome of each proposal."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from ajuste.model.base import ClosedModel

CAMPAIGN_NAME: Final = r"^[a-z0-9][a-z0-9-]{0,47}$"
MOST_PROPOSALS: Final = 10_000

# Name of what is proposed where a referee judges files: the SHA-256 of their content.
CANDIDATE: Final = "candidate"
# The score of the candidate that a referee began with, and of each that was not promoted.
START_SCORE: Final = 100.0

CampaignEvent = Literal["begun", "proposed", "explored", "confirming", "confirmed", "refused"]


class Refereed(ClosedModel):
    """The subject of a referee: the file or directory ``path``, whose content was ``start`` when the campaign began.
    The command has ``files`` of its own, by name with their SHA-256. It is ``trusted`` if no candidate can change what
    it prints.
    """

    path: str
    start: str
    files: dict[str, str] = Field(default_factory=dict)
    trusted: bool = False


class Campaign(ClosedModel):
    """The public part of a campaign, which any user may know.

    ``study`` is the name or absolute path of the study that proposals are explored on, ``study_sha256`` what it was
    when the campaign began. ``metric`` is the goal, and ``better`` its direction if it has none itself; ``witness`` is
    a metric that Ajuste measures itself, where the goal is printed by the workload. ``hidden`` counts the studies that
    only confirm, and ``sealed_sha256`` commits to them and to the secret that seeds follow from. Each of up to
    ``proposals`` tests has an equal share of ``error_rate``. With ``refereed`` files are proposed, not settings.
    """

    version: Literal[1] = 1
    name: str = Field(pattern=CAMPAIGN_NAME)
    study: str
    study_sha256: str
    metric: str
    better: Literal["lower", "higher"] | None = None
    witness: str | None = None
    tunables: tuple[str, ...] = Field(min_length=1, max_length=200)
    hidden: int = Field(default=0, ge=0)
    proposals: int = Field(default=200, ge=1, le=MOST_PROPOSALS)
    explore: int = Field(default=5, ge=2, le=1000)
    confirm: int = Field(default=40, ge=5, le=10_000)
    error_rate: float = Field(default=0.05, gt=0, le=0.5)
    created: str = ""
    sealed_sha256: str = ""
    refereed: Refereed | None = Field(default=None, exclude_if=lambda refereed: refereed is None)


Text = Annotated[str, Field(max_length=500)]


class ExploredMetric(ClosedModel):
    """The result of the exploration blocks on one metric: the ratio to the baseline, or the difference from it."""

    metric: str
    unit: str
    scale: Literal["ratio", "difference"]
    verdict: str
    estimate: float | None
    low: float | None
    high: float | None
    blocks: int


class CampaignEntry(ClosedModel):
    """A line of a ledger. ``digest`` is the SHA-256 of the line before (``previous``) and all else of this one, so that
    no line can be changed, taken out or put in between without all that follow.

    *proposed*: the settings are new and allowed. *explored*: measured on the visible workload. *confirming*: tested at
    ``level`` from now on, whatever becomes of it. *confirmed*: ``e_value`` and whether it was ``promoted``. *refused*:
    a check failed, for that ``reason``.
    """

    number: int = Field(ge=0)
    at: str
    event: CampaignEvent
    proposal: int = Field(default=0, ge=0)
    settings: dict[Text, Text] = Field(default_factory=dict)
    explored: tuple[ExploredMetric, ...] = ()
    promising: bool | None = None
    level: float | None = None
    e_value: float | None = None
    promoted: bool | None = None
    reason: str = ""
    previous: str = ""
    digest: str = ""


ProposalStatus = Literal["promoted", "not confirmed", "not promising", "refused", "unfinished"]


class ProposalRecord(ClosedModel):
    """The outcome of one proposal. ``level`` is there if it was tested, ``e_value`` if that ended."""

    proposal: int
    settings: dict[str, str]
    status: ProposalStatus
    explored: tuple[ExploredMetric, ...] = ()
    level: float | None = None
    e_value: float | None = None
    reason: str = ""


class CampaignStanding(ClosedModel):
    """A campaign and its proposals so far. ``next_level`` is the level of the next test, 0 if there is none;
    ``head`` the digest of the ledger's last line.
    """

    campaign: Campaign
    proposals: tuple[ProposalRecord, ...] = ()
    tests: int = 0
    promoted: int = 0
    tests_left: int = 0
    error_spent: float = 0.0
    next_level: float = 0.0
    head: str = ""


class RefereeAnswer(ClosedModel):
    """The answer to an optimiser about a candidate. ``score`` is ``START_SCORE`` until something better is proved;
    ``status`` is that of its proposal; *incumbent* is what candidates are measured beside, *superseded* what was that
    before.
    """

    score: float
    accepted: bool
    status: ProposalStatus | Literal["incumbent", "superseded"]
    reason: str = ""
