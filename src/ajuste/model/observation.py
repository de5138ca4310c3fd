"""What a target gives back for one plan."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from ajuste.model.event import Event


class Observation(BaseModel):
    """``lines`` are the agent's event lines for this plan as they came, from ``accepted`` to ``end``; ``events``
    the same,
    parsed.

    ``problem`` is empty when the stream is complete and well-formed (from ``accepted`` to an ``end`` that counts them
    all); otherwise it says in one line what went wrong: the guest panicked, hung, ended early, said something
    malformed.
    A complete stream may still contain ``failed`` events. ``console`` is the end of the guest's console;
    ``host_seconds``
    is the host's time from asking to answer and no part of what was measured. On a host ``console`` says what else the
    machine did, and ``disturbances`` what of that makes the trial doubtful.
    """

    model_config = ConfigDict(frozen=True)
    lines: str = ""
    events: tuple[Event, ...] = ()
    problem: str = ""
    console: str = ""
    disturbances: tuple[str, ...] = ()
    host_seconds: float = 0.0
