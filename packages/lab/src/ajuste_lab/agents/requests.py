"""The requests of clients: one model for each operation, from which the schemas of both protocols are made."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from ajuste.model.base import ClosedModel

LONGEST_NAME: Final = 200
LONGEST_WAIT_S: Final = 60.0

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Run = Annotated[Name, Field(description="A run's id, or a study's name (its newest run).")]
Waiting = Annotated[float, Field(ge=0, le=LONGEST_WAIT_S, description="Wait up to so many seconds for its end.")]
AnyStudy = Annotated[
    Name | dict[str, Any],
    Field(description="The name of a built-in study, or a whole study as a study file has it (docs: study files)."),
]


class AgentRequest(ClosedModel):
    """A client's request. Unknown fields are refused."""


class NothingAsked(AgentRequest):
    """A request without arguments."""


class TunablesAsked(AgentRequest):
    """Settings that Ajuste knows."""

    search: Annotated[str, Field(max_length=LONGEST_NAME, description="Words that must all match.")] = ""
    name: Annotated[str, Field(max_length=LONGEST_NAME, description="One tunable, in full, with its runs.")] = ""
    limit: Annotated[int, Field(ge=1, le=500, description="How many to list.")] = 50


class RunsAsked(AgentRequest):
    """Runs in the store."""

    find: Annotated[str, Field(max_length=LONGEST_NAME, description="Text in name, id, kernel or answer.")] = ""
    limit: Annotated[int, Field(ge=1, le=500, description="How many to list, the newest first.")] = 50


class StudyPlanned(AgentRequest):
    """A study, with what is to be otherwise than it says."""

    study: AnyStudy
    kernel: Annotated[str | None, Field(max_length=LONGEST_NAME, description="Another kernel: debian:6.12.")] = None
    seed: Annotated[int | None, Field(ge=0, lt=2**53, description="Another seed.")] = None
    max_blocks: Annotated[int | None, Field(ge=1, le=100_000, description="At most so many blocks.")] = None
    max_minutes: Annotated[float | None, Field(gt=0, le=100_000, description="Stop after so many minutes.")] = None


class StudyStarted(StudyPlanned):
    """A study that is to be measured."""

    fresh: Annotated[bool, Field(description="Measure again, also what the store has.")] = False
    wait_s: Waiting = 0


class JobAsked(AgentRequest):
    """The state of a job."""

    job: Annotated[Name, Field(description="The job that another operation returned.")]
    wait_s: Waiting = 0


class JobStopped(AgentRequest):
    """A job that is to end."""

    job: Name


class RunAsked(AgentRequest):
    """A run."""

    run: Run


class WhyAsked(AgentRequest):
    """The explanation of a run."""

    run: Run
    configuration: Annotated[str | None, Field(max_length=1000, description="Default: the one that decides.")] = None
    wait_s: Waiting = 0


class DifferencesAsked(AgentRequest):
    """Runs that are to be compared."""

    runs: Annotated[tuple[Name, ...], Field(min_length=2, max_length=8, description="Two runs or more.")]


class ExportAsked(AgentRequest):
    """An improvement in a form that can be put to use."""

    run: Run
    configuration: Annotated[str | None, Field(max_length=1000, description="Default: the proven best.")] = None
    format: Literal["shell", "sysctl.d", "tuned", "systemd", "ansible"] = "shell"


class CampaignAsked(AgentRequest):
    """A campaign."""

    campaign: Name


class ProposalMade(AgentRequest):
    """Settings that are proposed to a campaign."""

    campaign: Name
    settings: Annotated[
        dict[Name, Annotated[str, Field(min_length=1, max_length=500)]],
        Field(min_length=1, max_length=50, description="Levels by the names that the campaign allows."),
    ]
    max_minutes: Annotated[
        float | None,
        Field(gt=0, le=100_000, description="Interrupt it after so many minutes; propose the same again to resume."),
    ] = None
    wait_s: Waiting = 0
