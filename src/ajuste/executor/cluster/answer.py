"""What workers are asked and what they answer: JSON of these models, with limits, validated by the receiver."""

from __future__ import annotations

import platform
import re
import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from ajuste.executor.cluster.wire import Broken, Line, Message
from ajuste.executor.executor import Executor
from ajuste.executor.stream import LONGEST_STREAM_BYTES, read_trial
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.event import Hello
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation

PIECE_BYTES: Final = 4 << 20
"""Files are sent in pieces of so many bytes."""
LARGEST_REQUEST: Final = 32 << 20

_PIECE: Final = struct.Struct("!64sQQ")

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
ParcelText = Annotated[str, Field(max_length=8 << 20)]


class WorkRequest(Message):
    """``parcel`` is text: another version of Ajuste may not understand it, and then says so."""

    parcel: ParcelText
    plans: tuple[Plan, ...] = Field(default=(), max_length=10_000)


class Said(Message):
    """What was observed of a plan, but for what its lines mean: these are read where they are believed."""

    lines: str = Field(default="", max_length=LONGEST_STREAM_BYTES)
    problem: Line = ""
    console: str = Field(default="", max_length=4 << 20)
    disturbances: tuple[Line, ...] = Field(default=(), max_length=1000)
    host_seconds: Seconds = 0.0


class Answer(Message):
    """``where`` the worker is, and one of: ``refusal`` (why it can do nothing for the study), ``lacks`` (checksums of
    files that it needs), ``error`` (with ``hint`` and ``wrong``, whether the request is), or what was asked for.
    """

    where: Line = Field(pattern=r"^[\w.-]{1,64}$")
    refusal: Line | None = None
    lacks: tuple[Digest, ...] = Field(default=(), max_length=2)
    error: Line | None = None
    hint: Line | None = None
    wrong: bool = False
    hello: Hello | None = None
    environment: dict[Line, Line] = Field(default_factory=dict, max_length=100)
    identity: Line = ""
    resolved: str = Field(default="", max_length=16 << 20)
    inventory: str = Field(default="", max_length=16 << 20)
    done: tuple[Said, ...] | None = None


class Piece(NamedTuple):
    """A part of a file: ``content`` belongs at ``offset`` of ``size_bytes`` whose SHA-256 is ``digest``."""

    digest: str
    offset: int
    size_bytes: int
    content: bytes

    def packed(self) -> bytes:
        return _PIECE.pack(self.digest.encode(), self.offset, self.size_bytes) + self.content


def piece_of(body: bytes) -> Piece:
    """Raises Broken."""
    if not _PIECE.size <= len(body) <= _PIECE.size + PIECE_BYTES:
        raise Broken("a piece of a file is malformed: its size")
    digest, offset, size_bytes = _PIECE.unpack_from(body)
    if not re.fullmatch(rb"[0-9a-f]{64}", digest):
        raise Broken("a piece of a file is malformed: its SHA-256")
    return Piece(digest.decode(), offset, size_bytes, body[_PIECE.size :])


def from_here(**said: Any) -> Answer:
    """What this worker has to say."""
    name = "".join(one if one.isalnum() or one in "._-" else "-" for one in platform.node())[:64]
    return Answer(where=name or "unnamed", **said)


def failure(error: AjusteError) -> Answer:
    """That something went wrong here; see ``require`` for the other side."""
    return from_here(
        error=str(error)[:2000], hint=error.hint and error.hint[:2000], wrong=isinstance(error, RequestError)
    )


def require(answer: Answer) -> None:
    """Raises the error that an answer tells of."""
    if answer.error is not None:
        kind = RequestError if answer.wrong else RunError
        raise kind(f"{answer.error} (on {answer.where})", hint=answer.hint)


def carried_out(target: Executor, plan: Plan) -> Said:
    """What ``target`` observed of a plan."""
    observed = target.run(plan)
    return Said(
        lines=observed.lines,
        problem=observed.problem[:2000],
        console=observed.console,
        disturbances=tuple(one[:2000] for one in observed.disturbances[:1000]),
        host_seconds=observed.host_seconds,
    )


def observed_in(
    plans: Sequence[Plan], done: Sequence[Said], *, restores: bool = False
) -> list[tuple[str, Observation]]:
    """When each of ``plans`` began and what came of it, by what has just come. For ``restores`` see ``read_trial``."""
    now = datetime.now(UTC)
    observed: list[tuple[str, Observation]] = []
    for plan, said in zip(reversed(plans), reversed(done), strict=True):
        observation = _observation(plan, said, restores=restores)
        now -= timedelta(seconds=observation.host_seconds)
        observed.append((now.isoformat(timespec="milliseconds"), observation))
    return observed[::-1]


def _observation(plan: Plan, said: Said, *, restores: bool) -> Observation:
    stream = read_trial(said.lines.encode(errors="replace"), plan, restores=restores)
    return Observation(**{**said.model_dump(), "events": stream.events, "problem": said.problem or stream.problem})
