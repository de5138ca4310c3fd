"""The messages between a coordinator and its workers: JSON of these models, validated by the receiver.

Dask carries it as bytes.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, TypeAdapter

from ajuste.executor.executor import Executor
from ajuste.executor.stream import LONGEST_STREAM_BYTES, read_trial
from ajuste.machine.home import ajuste_version
from ajuste.model.base import ClosedModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.event import Hello
from ajuste.model.kernel import KernelImage
from ajuste.model.modelled import ModelledMachine
from ajuste.model.plan import CpuPause, MemoryNode, Plan
from ajuste.model.results import Clock, InstructionNs, TurnUs
from ajuste.model.topology import Topology
from ajuste.model.trial import Observation
from ajuste.model.wording import visible_line
from ajuste_guest.executor.guest import GuestOptions
from ajuste_guest.executor.initramfs import GuestFiles, build_initramfs
from ajuste_guest.executor.lens import why_not_at_once
from ajuste_guest.executor.qemu import choose_emulator

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Word = Annotated[str, Field(max_length=300, pattern=r"^[\x20-\x7e]*$")]
Line = Annotated[str, Field(max_length=2000), AfterValidator(visible_line)]
"""Text of another machine that people are shown."""
Ask: TypeAlias = Literal[
    "survey", "receive", "open", "carry-out", "close", "bench-survey", "bench-carry-out", "bench-renew", "bench-close"
]
"""The requests that a worker takes."""
PLANS: TypeAdapter[tuple[Plan, ...]] = TypeAdapter(tuple[Plan, ...])


class HostJob(ClosedModel):
    """A study to measure on machines as they are: each resolves it itself.

    A worker must have the same version of ``ajuste``, and the agent with that SHA-256. ``directory`` is where the
    study's own files are, on all machines alike.
    """

    ajuste: Word
    agent: Digest
    study: Annotated[str, Field(max_length=4 << 20)]
    directory: Annotated[str, Field(max_length=4096, pattern=r"^/[^\x00-\x1f]*$")]
    accept_risk: bool = False


class GuestJob(ClosedModel):
    """A guest, by the SHA-256 of its ``kernel`` and of its ``initramfs``, which holds all its files.

    With the same versions of ``ajuste`` and ``qemu`` the same plan gives the same bytes on every machine. ``spec``,
    ``release`` and ``package`` name the kernel for people.
    """

    ajuste: Word
    qemu: Word
    spec: Annotated[str, Field(max_length=4096)]
    release: Word
    package: Word
    kernel: Digest
    initramfs: Digest
    clock: Clock
    cpus: Annotated[int, Field(ge=1, le=16)]
    memory_mib: Annotated[int, Field(ge=64, le=1 << 20)]
    seed: Annotated[int, Field(ge=0, lt=1 << 63)]
    instruction_ns: InstructionNs
    kernel_arguments: Annotated[tuple[Word, ...], Field(max_length=200)] = ()
    nodes: Annotated[tuple[MemoryNode, ...], Field(max_length=64)] = ()
    turn_us: TurnUs | None = None
    parallel: bool | None = None
    topology: Topology | None = None
    pauses: Annotated[tuple[CpuPause, ...], Field(max_length=10_000)] | None = None
    paced_by: ModelledMachine | None = None
    snapshot: bool = True


@dataclass(frozen=True)
class PackedGuest:
    """A guest with the files that its workers need, by their SHA-256."""

    job: GuestJob
    files: dict[str, Path]


def pack_guest(image: KernelImage, files: GuestFiles, guest: GuestOptions, directory: Path) -> PackedGuest:
    """Pack all that a guest needs, its initramfs into ``directory``.

    Raises:
        RequestError: A file is missing or unsuitable.
    """
    archive = build_initramfs(files, image, directory / "initramfs", quiet_gate=guest["clock"] == "virtual")
    emulator = choose_emulator(
        guest["clock"],
        guest["cpus"],
        guest["home"],
        guest["say"],
        topology=guest["topology"],
        paced=guest["paced_by"] is not None,
        perturbed=guest["pauses"] is not None,
    )
    options = {name: value for name, value in guest.items() if name in GuestJob.model_fields}
    if guest["parallel"] is None and guest["clock"] == "virtual" and guest["cpus"] > 1:
        options["parallel"] = not why_not_at_once(emulator)  # All workers have the same clock, or refuse.
    job = GuestJob(
        ajuste=ajuste_version(),
        qemu=emulator.version,
        spec=image.spec,
        release=image.release,
        package=image.package,
        kernel=image.sha256,
        initramfs=archive.sha256,
        **options,
    )
    return PackedGuest(job, {image.sha256: image.vmlinuz, archive.sha256: archive.path})


class Transcript(ClosedModel):
    """The raw observation of a plan; the receiver parses its lines."""

    lines: str = Field(default="", max_length=LONGEST_STREAM_BYTES)
    problem: Line = ""
    console: str = Field(default="", max_length=4 << 20)
    disturbances: tuple[Line, ...] = Field(default=(), max_length=1000)
    host_seconds: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] = 0.0


class Answer(ClosedModel):
    """The answer of the worker at ``worker`` on the machine ``where``: the result, or why there is none.

    ``refusal`` says why it can do nothing for the study, ``lacks`` which files it needs; ``error`` has a ``hint`` and
    whether the request is ``wrong``.
    """

    where: Line = Field(pattern=r"^[\w.-]{1,64}$")
    worker: Line = ""
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
    done: tuple[Transcript, ...] | None = None

    def require(self) -> None:
        """Raise the error of the answer, if it has one."""
        if self.error is not None:
            kind = RequestError if self.wrong else RunError
            raise kind(f"{self.error} (on {self.where})", hint=self.hint)


def answer(**fields: Any) -> Answer:
    """Return an answer of this machine."""
    name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in platform.node())[:64]
    return Answer(where=name or "unnamed", **fields)


def failure(error: AjusteError) -> Answer:
    """Return the answer for what went wrong on this machine."""
    return answer(error=str(error)[:2000], hint=error.hint and error.hint[:2000], wrong=isinstance(error, RequestError))


def run_plan(executor: Executor, plan: Plan) -> Transcript:
    """Run ``plan`` and return what was observed."""
    observed = executor.run(plan)
    return Transcript(
        lines=observed.lines,
        problem=observed.problem[:2000],
        console=observed.console,
        disturbances=tuple(text[:2000] for text in observed.disturbances[:1000]),
        host_seconds=observed.host_seconds,
    )


def read_observations(
    plans: Sequence[Plan], done: Sequence[Transcript], *, restores: bool = False
) -> list[tuple[str, Observation]]:
    """Return when each plan began, if they have just ended one after the other, and what came of it."""
    began = datetime.now(UTC)
    observed: list[tuple[str, Observation]] = []
    for plan, message in zip(reversed(plans), reversed(done), strict=True):
        stream = read_trial(message.lines.encode(errors="replace"), plan, restores=restores)
        fields = message.model_dump() | {"events": stream.events, "problem": message.problem or stream.problem}
        began -= timedelta(seconds=message.host_seconds)
        observed.append((began.isoformat(timespec="milliseconds"), Observation(**fields)))
    return observed[::-1]
