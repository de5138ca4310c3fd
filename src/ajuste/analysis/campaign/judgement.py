"""The judgement of a proposal from its confirmation: evidence on every workload, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ajuste.analysis.campaign.evidence import evidence
from ajuste.analysis.pairs import clean_trials
from ajuste.model.event import Output, parse_event
from ajuste.model.metric import Metric
from ajuste.model.plan import Choice, FileLocation, Flag, Write
from ajuste.model.trial import Trial
from ajuste.model.tunable import same_value


@dataclass(frozen=True)
class ReadBackPlan:
    """Which command after the workload (by its number, from 0) reads which tunable again."""

    commands: Mapping[int, Write]


@dataclass(frozen=True)
class ConfirmedPart:
    """The trials of one workload in a confirmation: ``blocks`` of baseline and proposal. ``metrics`` are the goal and
    its witness. ``read_back`` says for each configuration what was read again after the workload.
    """

    trials: Sequence[Trial]
    baseline: str
    proposal: str
    metrics: tuple[Metric, ...]
    blocks: int
    read_back: Mapping[str, ReadBackPlan]
    hidden: bool = False
    order_matters: bool = False


@dataclass(frozen=True)
class Judgement:
    """``e_value`` is the least of all workloads and metrics: a proposal must be better on each. ``refused`` says which
    check failed, and then it is 0.
    """

    e_value: float
    refused: str = ""


def judgement(parts: Sequence[ConfirmedPart]) -> Judgement:
    """What the confirmation comes to. The least of several e-values is one."""
    for part in parts:
        if reason := _distrust(part):
            return Judgement(0.0, reason if not part.hidden else f"on a hidden workload, {reason}")
    found = [
        evidence(clean_trials(part.trials), part.baseline, part.proposal, metric, order_matters=part.order_matters)
        for part in parts
        for metric in part.metrics
    ]
    return Judgement(min(found, default=0.0))


def _distrust(part: ConfirmedPart) -> str:
    """Why the trials of a part cannot be trusted, or nothing."""
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
    """Which tunable is not after the workload what was written before it, or nothing."""
    plan = read_back.get(trial.slot.configuration)
    if plan is None or not plan.commands:
        return ""
    written = {one.tunable: one.after for one in trial.written}
    said = _said_after(trial)
    for index, write in plan.commands.items():
        if index not in said:
            return f"{write.tunable} could not be read after the workload"
        now, before = value_in(said[index], write), written.get(write.tunable, write.value)
        if not same_value(now, before):
            return f"{write.tunable} was {before[:60]!r} before the workload and {now[:60]!r} after it"
    return ""


def _said_after(trial: Trial) -> dict[int, str]:
    """What each command after the workload printed."""
    events = (parse_event(line) for line in trial.events.split("\n") if '"after"' in line and '"output"' in line)
    return {
        event.index: event.text
        for event in events
        if isinstance(event, Output) and event.role == "after" and event.stream == "stdout"
    }


def can_be_read_back(write: Write) -> bool:
    """Whether reading its file again shows its value."""
    return isinstance(write.location, FileLocation | Flag | Choice)


def value_in(text: str, write: Write) -> str:
    """The value of a tunable in the text of its file, as the agent reports it."""
    words = text.split()
    match write.location:
        case Flag(name=name):
            return "1" if name in words else "0" if f"NO_{name}" in words else ""
        case Choice():
            chosen = [word[1:-1] for word in words if word[:1] + word[-1:] in ("[]", "()")]
            return chosen[0] if chosen else text.strip()
        case _:
            return text.strip()
