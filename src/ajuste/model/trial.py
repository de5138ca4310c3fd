"""A trial: one execution of the workload under one configuration, with all that was seen of it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ajuste.model.event import Written

Status = Literal["ok", "flagged", "failed"]


class Slot(BaseModel):
    """The place of a trial in the design: block (0 …), position in it (0 …), configuration and seed."""

    model_config = ConfigDict(frozen=True)
    block: int
    position: int
    configuration: str
    seed: int
    warm_up: bool = False


class Trial(BaseModel):
    """What is stored for ever. ``events`` are the agent's lines as they came; ``metrics`` can be computed again
    from them.

    ``status``: *ok*; *flagged* (measured, but not cleanly: left out of the verdict, and repeated); *failed* (not
    measured).
    ``attempt`` counts the repetitions of one slot from 0. ``started`` and ``host_seconds`` are the host's time and
    are no part of a digest.
    """

    model_config = ConfigDict(frozen=True)
    slot: Slot
    attempt: int = 0
    status: Status
    reason: str = ""
    metrics: dict[str, float] = Field(default_factory=dict)
    not_supported: dict[str, str] = Field(default_factory=dict)
    written: tuple[Written, ...] = ()
    events: str = ""
    console: str = ""
    started: str = ""
    host_seconds: float = 0.0
