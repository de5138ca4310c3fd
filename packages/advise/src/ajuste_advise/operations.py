"""Advice for programs that use the lab: as tools of the Model Context Protocol, and by its API."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from ajuste_advise.budget import FEWEST_TRIALS
from ajuste_advise.jobs import MOST_MINUTES, STUDY, advice_of, guest_words
from ajuste_lab.agents.desk import AgentDesk, Document
from ajuste_lab.agents.operations import Operation
from ajuste_lab.agents.requests import AgentRequest, JobAsked, Name, Waiting

_Text = Annotated[str, Field(max_length=500)]


class AdviceWanted(AgentRequest):
    """A workload that is to get better."""

    workload: Annotated[
        Name, Field(description="A command of the guest, or a workload of the catalogue: hackbench groups=2.")
    ]
    kernel: Annotated[_Text, Field(description="The guest's kernel, such as debian:6.12.")] = ""
    background: Annotated[_Text, Field(description="A command that runs beside it.")] = ""
    metric: Annotated[
        _Text, Field(description="What to improve; =lower or =higher where the metric has no better direction.")
    ] = ""
    max_trials: Annotated[int, Field(ge=FEWEST_TRIALS, le=5_000, description="Trials for all of it.")] = 300
    max_minutes: Annotated[float, Field(ge=1, le=MOST_MINUTES, description="Minutes for all of it.")] = 10
    wait_s: Waiting = 0


def ask(desk: AgentDesk, request: AdviceWanted) -> Document:
    """Start the search for advice in a guest."""
    options = {name: text for name in ("kernel", "background", "metric") if (text := getattr(request, name))}
    limits = {"max_trials": str(request.max_trials), "max_time": f"{request.max_minutes:g}m"}
    words = guest_words(request.workload, options | limits)
    job = desk.start(f"{STUDY}{request.workload}", words, trials=request.max_trials, minutes=request.max_minutes)
    state = desk.watch(JobAsked(job=job.id, wait_s=request.wait_s))
    return state | {"next": "read it with advice once the job has ended"}


def read(desk: AgentDesk, request: JobAsked) -> Document:
    """Return the advice of a job, or how it stands."""
    state = desk.watch(request)
    advice = advice_of(desk.find_job(request.job))
    return state | {"advice": None if advice is None else advice.model_dump(mode="json")}


OPERATIONS: Final = (
    Operation(
        "advise",
        "Find what to change so that a workload gets better, and prove it, in a guest. Returns a job at once; read its "
        "advice.",
        AdviceWanted,
        ask,
        reads=False,
    ),
    Operation("advice", "Read the advice of a job that advise started.", JobAsked, read),
)
