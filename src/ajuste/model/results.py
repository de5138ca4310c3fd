"""The results of a run as one document: what ``--json`` prints and what every report is drawn from."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from ajuste.model.configuration import Factor
from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict

Clock = Literal["virtual", "wall"]
InstructionNs = Literal[1, 2, 4, 8, 16]
"""How long an instruction takes under the virtual clock. QEMU's ``-icount shift=N`` makes it 2ᴺ ns."""
DEFAULT_INSTRUCTION_NS: Final = 2


class _Doc(BaseModel):
    model_config = ConfigDict(frozen=True)


class Summary(_Doc):
    """One metric of one configuration over its clean trials. ``sd`` and ``sem`` are None below two trials;
    ``unit`` as the metric's.
    """

    n: int
    mean: float
    median: float
    sd: float | None
    sem: float | None
    minimum: float
    maximum: float


class Measured(_Doc):
    """One configuration: its levels as asked, as read back, and its metrics."""

    name: str
    levels: dict[str, str]
    baseline: bool = False
    read_back: dict[str, str] = Field(default_factory=dict)
    metrics: dict[str, Summary] = Field(default_factory=dict)
    not_supported: dict[str, str] = Field(default_factory=dict)


class Point(_Doc):
    """One trial, as much of it as a plot needs."""

    configuration: str
    block: int
    position: int
    seed: int
    status: str
    reason: str = ""
    warm_up: bool = False
    attempt: int = 0
    metrics: dict[str, float] = Field(default_factory=dict)


class Explained(_Doc):
    """A factor explained from the catalogue: ``where`` is its path in the kernel that was used, ``note`` e.g.
    names a successor.
    """

    name: str
    title: str
    what: str
    unit: str
    default: str = ""
    where: str = ""
    initial_value: str | None = None
    note: str = ""


class Results(_Doc):
    """``digest`` is SHA-256 over all that was measured (configurations, seeds, values read back, outputs,
    metrics), no host times.

    ``answer`` is the answer to ``question`` in a sentence or two, ``stopped`` says why the run ended (``decided``,
    ``budget``, ``time``, ``interrupted``, ``failed``) and ``stopped_because`` says it in words.
    ``environment`` is a nested mapping of text for people (kernel, QEMU, CPUs, memory, workload command lines,
    versions).
    ``reproduce`` are the exact commands, a line each. ``notes`` are sentences the reader must know (emulated CPU,
    clamped values, …).
    """

    schema_version: int = 1
    study: str
    title: str
    question: str
    answer: str
    run: str
    seed: int
    clock: Clock
    digest: str
    stopped: Literal["decided", "budget", "time", "interrupted", "failed"]
    stopped_because: str
    level: float
    smallest_effect: float
    correction: str
    blocks: int
    verdicts: tuple[Verdict, ...]
    configurations: tuple[Measured, ...]
    factors: tuple[Factor, ...]
    metrics: tuple[Metric, ...]
    trials: tuple[Point, ...]
    explained: tuple[Explained, ...] = ()
    environment: dict[str, Any] = Field(default_factory=dict)
    reproduce: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    created: str = ""
    ajuste: str = ""
