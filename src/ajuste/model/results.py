"""The results of a run as one document: what ``--json`` prints and what every report is drawn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import to_jsonable_python

from ajuste.model.base import BaseModel
from ajuste.model.boot import BOOTS
from ajuste.model.facet import Facet, ValueT
from ajuste.model.live import LIVE
from ajuste.model.metric import Metric
from ajuste.model.trial import Factor
from ajuste.model.verdict import Verdict
from ajuste.model.wording import block_words, count_of

Clock = Literal["virtual", "wall"]
Time = Literal["instructions", "modelled"]
# Duration of an instruction under the virtual clock, in ns. QEMU's `-icount shift=N` makes it 2ᴺ ns.
InstructionNs = Literal[1, 2, 4, 8, 16]
# Time for which all CPUs of a guest take one turn, in µs of its time; the quantum of those that run at once.
TurnUs = Annotated[int, Field(ge=1, le=100_000, strict=True)]
DEFAULT_QUANTUM_US: Final = 2
# Quantum of a guest that has the time of a modelled machine.
PACED_QUANTUM_NS: Final = 100
DEFAULT_INSTRUCTION_NS: Final = 2


# Maximum number of different reasons for leaving trials out that are listed.
MOST_REASONS: Final = 20


class Summary(BaseModel):
    """A metric of one configuration over its clean trials. ``sd`` and ``sem`` are None below two trials; ``unit`` as
    the metric's. ``median``, ``minimum`` and ``maximum`` are None where another program has kept no more than mean and
    spread. Where nothing is compared, ``low`` and ``high`` are the interval of a deciding metric's mean, which holds at
    all numbers of trials. Of a quantile of the trials (``elapsed@p95``) ``mean`` is that quantile, without ``sd`` and
    ``sem``.
    """

    n: int
    mean: float
    median: float | None
    sd: float | None
    sem: float | None
    minimum: float | None
    maximum: float | None
    low: float | None = None
    high: float | None = None


class Measured(BaseModel):
    """A configuration: its levels as requested, as read back, and its metrics. It is compared ``against`` the baseline
    at its own level of the study's conditions; empty: against the baseline.
    """

    name: str
    levels: dict[str, str]
    baseline: bool = False
    against: str = Field(default="", exclude_if=lambda against: not against)
    read_back: dict[str, str] = Field(default_factory=dict)
    metrics: dict[str, Summary] = Field(default_factory=dict)
    not_supported: dict[str, str] = Field(default_factory=dict)


class Point(BaseModel):
    """A trial, as much of it as a plot needs. What was measured elsewhere has no ``position`` and ``seed``, and where
    it was in no blocks ``block`` counts the values of the configuration. ``machine`` is the one of several.
    """

    configuration: str
    block: int
    position: int | None = None
    seed: int | None = None
    status: str
    reason: str = ""
    warm_up: bool = False
    attempt: int = 0
    metrics: dict[str, float] = Field(default_factory=dict)
    machine: str = ""


class Tally(BaseModel):
    """Counts of trials and of what became of them: each is one of the kinds. ``reasons`` are the most frequent ones why
    trials were flagged or failed, with how many trials have them; ``other_reasons`` counts the further ones.
    """

    trials: int
    clean: int
    warm_up: int
    flagged: int
    failed: int
    reasons: dict[str, int] = Field(default_factory=dict)
    other_reasons: int = 0

    @property
    def counted(self) -> int:
        """Return the number of trials without clean warm-ups."""
        return self.trials - self.warm_up

    def words(self, noun: str = "trial") -> str:
        """Return the trials in words: ``24 trials and 2 warm-ups``."""
        warm_up = f" and {count_of(self.warm_up, 'warm-up')}" if self.warm_up else ""
        return f"{count_of(self.counted, noun)}{warm_up}"


def tally_points(points: Iterable[Point]) -> Tally:
    """Return the tally of trials that are all there."""
    trials = list(points)
    counts = Counter(point.status if point.status != "ok" or not point.warm_up else "warm_up" for point in trials)
    reasons = Counter(point.reason for point in trials if point.reason and point.status != "ok").most_common()
    return Tally(
        trials=len(trials),
        clean=counts["ok"],
        warm_up=counts["warm_up"],
        flagged=counts["flagged"],
        failed=counts["failed"],
        reasons=dict(reasons[:MOST_REASONS]),
        other_reasons=len(reasons[MOST_REASONS:]),
    )


class Results(BaseModel):
    """The results of a run. ``digest`` is SHA-256 over all that was measured (configurations, seeds, values read back,
    outputs, metrics), no host times.

    ``answer`` is the answer to ``question`` in a sentence or two, ``stopped`` says why the run ended (``decided``,
    ``budget``, ``time``, ``irrelevant``, ``interrupted``, ``failed``) and ``stopped_because`` says it in words.
    ``blocks`` counts those with a clean pair: of the baseline and any other configuration, not of all.
    ``environment`` is a nested mapping of text for people (kernel, QEMU, CPUs, memory, workload command lines,
    versions).
    ``notes`` are sentences the reader must know (emulated CPU, clamped values, …).
    ``tally`` counts all trials; of very many ``trials`` has only some.

    All else is a facet, which some runs have: of Ajuste (``ajuste.model.facets``) or of a package.
    ``design`` says in sentences how the trials were ordered and allotted.
    ``reproduce`` are the exact commands, a line each; ``continuation`` is there where verdicts are open.
    ``effects`` are those of the factors, where combinations of several were tried, a family of their own with
    ``effects_correction``; ``cells`` show the interactions of a full factorial.
    ``surfaces`` are there where numeric factors span one, with ``correlations`` of deciding metrics and all others.
    ``lines`` are those of a profile that was taken apart, the whole first, a family with ``effects_correction``.
    ``tuning`` is what a search has found: then the verdicts are those of its check alone.
    ``rankings`` are there of three configurations or more, one for each deciding metric with a better direction.
    ``histories`` are there where versions of the kernel are compared.
    ``machines`` compares the effects on several machines, where blocks were shared out among them.
    ``explanations`` are there of configurations whose trials were recorded (``ajuste why``).
    ``three_sigma`` and ``rule`` with its ``predictions`` are there if the study asked for them, ``timelines`` if it has
    samplers.
    ``no_chance`` are the factors that had no chance to matter, as far as no verdict says otherwise.
    ``live`` has the slices of an experiment on a running service, which are its trials.
    ``boots`` is there where the machine rebooted for it.
    A run that was ``imported`` was measured by others, and came in a bundle.
    What was measured ``elsewhere`` has no run, seed, clock and end: they are empty or None.
    """

    model_config = ConfigDict(extra="allow")

    schema_version: int = 1
    study: str
    title: str
    question: str
    answer: str
    run: str
    seed: int | None
    clock: Clock | None
    digest: str
    stopped: Literal["decided", "budget", "time", "irrelevant", "interrupted", "failed"] | None
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
    tally: Tally = Field(default_factory=lambda data: tally_points(data.get("trials", ())))
    environment: dict[str, Any] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    created: str = ""
    ajuste: str = ""

    @model_validator(mode="after")
    def _facets_as_documents(self) -> Self:
        facets = self.model_extra or {}
        facets.update(to_jsonable_python(facets, by_alias=False))
        return self

    @property
    def facets(self) -> Mapping[str, Any]:
        """Return what not all results have, or not every reader needs: JSON documents by key, which ``Facet`` reads."""
        return self.model_extra or {}

    def with_facet(self, facet: Facet[ValueT], value: ValueT) -> Self:
        """Return these results with that value of a facet."""
        copied = self.model_copy()
        documents = copied.model_extra
        assert documents is not None
        documents.pop(facet.key, None)
        documents.update(facet.document(value))
        return copied

    @property
    def is_live(self) -> bool:
        """Return whether its trials are slices of the time of a running service."""
        return LIVE in self.facets

    @property
    def of_rounds(self) -> bool:
        """Return whether its blocks are rounds of boots: the machine rebooted for it."""
        return BOOTS in self.environment

    @property
    def counted_blocks(self) -> str:
        """Return the blocks in words: ``12 blocks``; ``3 rounds of boots``."""
        return block_words(self.blocks, of_rounds=self.of_rounds)

    def reference(self, configuration: str) -> str:
        """Return the configuration that this one is compared with, itself if it is a baseline; empty where none is."""
        against = {measured.name: measured.against for measured in self.configurations}
        if configuration in against.values():
            return configuration
        baseline = next((measured.name for measured in self.configurations if measured.baseline), "")
        return against.get(configuration) or baseline
