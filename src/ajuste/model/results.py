"""The results of a run as one document: what ``--json`` prints and what every report is drawn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from ajuste.model.base import BaseModel, rare
from ajuste.model.boot import BOOTS
from ajuste.model.live import LiveRecord
from ajuste.model.metric import Metric, PredictionRule
from ajuste.model.relevance import NoChance
from ajuste.model.surface import Correlation, Surface
from ajuste.model.trial import KERNEL_FACTOR, Factor
from ajuste.model.tuning import Tuning
from ajuste.model.verdict import AcrossMachines, FactorCell, FactorEffect, LineEffect, Ranking, Verdict
from ajuste.model.wording import block_words, count_of
from ajuste_stats.terms import Kind, Scale, Word


class Diagnostic(BaseModel):
    """The result of one diagnostic on one metric, over all configurations together.

    ``value`` is described by ``measures``; ``configuration`` is the one where it is strongest, if it is of single ones.
    ``p_value`` is corrected for the number of configurations but not for that of diagnostics; ``present`` is (Holm).
    ``naive_error`` is how often a t test at 5 % on two batches would find a difference between equals with just this
    in the data; None where it has no influence. ``matters``: it is present, and changes what a naive comparison or the
    verdict says. ``why`` says why Ajuste's verdict is ``verdict_affected`` or not.
    """

    kind: Kind
    metric: str
    measures: str
    value: float
    configuration: str = ""
    p_value: float | None = None
    present: bool
    matters: bool
    says: str
    naive_error: float | None = None
    verdict_affected: bool = False
    why: str


class Naive(BaseModel):
    """The error of a naive comparison. ``error`` is how often Welch's t test at 5 % finds a difference between equals,
    if each is measured ``batch`` times in a row. It is over ``windows`` pieces of what really was measured, with the
    configurations' means taken out.

    ``narrowing`` is by what factor the standard deviation of a difference is smaller within blocks.
    """

    metric: str
    batch: int
    windows: int
    error: float
    narrowing: float | None
    says: str


class Course(BaseModel):
    """The course of a run: how far the mean of each of ``blocks`` is from the mean of all, as a ratio or a difference,
    configurations' means taken out. Of very many blocks some, at even distances.
    """

    metric: str
    scale: Literal["ratio", "difference"]
    blocks: tuple[int, ...]
    values: tuple[float, ...]


class Diagnostics(BaseModel):
    """The diagnostics of a run: all that was looked for; ``level`` is the error rate of all alarms together on clean
    data.
    """

    level: float
    found: tuple[Diagnostic, ...]
    naive: tuple[Naive, ...] = ()
    courses: tuple[Course, ...] = ()


if TYPE_CHECKING:
    from ajuste.model.explanation import Explanation
else:
    Explanation = Annotated[Any, rare("ajuste.model.explanation", "Explanation")]

# Histories: one metric over the versions of the kernel.


class VersionPoint(BaseModel):
    """The metric of one version: of a kernel (``level`` as the factor has it, ``version`` such as ``6.12``, its
    ``scheduler``) or of a project (its commit, without a scheduler). In its unit, with what blocks have in common taken
    out.

    ``low`` and ``high`` hold for all points of the history together; None while there are too few blocks.
    """

    configuration: str
    level: str
    version: str
    scheduler: str
    value: float
    low: float | None = None
    high: float | None = None


class VersionChange(BaseModel):
    """A change point: from the version ``before`` to the next that was measured, ``after``. ``change`` is the mean of
    the stretch that begins there against that of the stretch before, a ratio or a difference as the history's ``scale``
    says.
    """

    before: str
    after: str
    change: float


class History(BaseModel):
    """A metric over ``points`` in the order of the versions that are the levels of ``factor``: of kernels of one
    ``flavour``, with other factors ``fixed``.

    ``known`` says whether there is enough to look for ``changes``; what is smaller than the study's smallest effect is
    none.
    """

    metric: str
    scale: Scale
    factor: str = KERNEL_FACTOR
    flavour: str = ""
    fixed: dict[str, str] = Field(default_factory=dict)
    points: tuple[VersionPoint, ...]
    changes: tuple[VersionChange, ...] = ()
    known: bool = False
    level: float
    blocks: int


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


class ThreeSigma(BaseModel):
    """The verdict of the 3-sigma rule on one configuration and one metric.

    ``values`` is mean ± 3 standard deviations of single values, ``means`` mean ± 3 standard deviations of the mean, in
    the metric's unit; None below two values. ``values_differ`` and ``means_differ`` tell whether the rule calls it
    different from the baseline in each form; None for the baseline itself. ``why`` says why the rule ``disagrees`` with
    the ``verdict``.
    """

    configuration: str
    metric: str
    n: int
    mean: float
    values: tuple[float, float] | None
    means: tuple[float, float] | None
    values_differ: bool | None = None
    means_differ: bool | None = None
    verdict: Word | None = None
    disagrees: bool = False
    why: str = ""


class Prediction(BaseModel):
    """The prediction of a rule for ``metric``: between ``low`` and ``high`` (equal where it says one value), in the
    metric's unit.

    ``measured`` is the mean of the clean trials, ``residual`` how far it is above ``high`` (positive) or below ``low``
    (negative); both None where nothing was measured. ``why`` says how this prediction came about.
    """

    configuration: str
    metric: str
    low: float
    high: float
    measured: float | None = None
    residual: float | None = None
    why: str = ""


MOST_OFF: Final = 0.2
"""Share of a metric's largest prediction; a rule that is further off somewhere does not predict the metric."""


def worst_miss(predictions: Sequence[Prediction], metric: str) -> Prediction | None:
    """Return the prediction of ``metric`` that is furthest off, if that is too far for the rule to hold."""
    judged = [p for p in predictions if p.metric == metric and p.residual is not None]
    worst = max(judged, key=lambda prediction: abs(prediction.residual or 0.0), default=None)
    if worst is None or abs(worst.residual or 0.0) <= MOST_OFF * max(prediction.high for prediction in judged):
        return None
    return worst


class SampledLine(BaseModel):
    """A figure in one trial: ``values`` at ``at_s`` seconds since the workload's start, which ended at ``end_s``.

    Thinned out: between two points that follow each other nothing happened, or nothing that would be seen.
    ``representative``: the trial is the median of its configuration.
    """

    configuration: str
    block: int
    end_s: float
    at_s: tuple[float, ...]
    values: tuple[float, ...]
    representative: bool = False


class TimelineMark(BaseModel):
    """The place of a delay on the representative trial's line."""

    metric: str
    configuration: str
    at_s: float


class SampledFigure(BaseModel):
    """A figure that a sampler read: its ``growth`` since the workload's start, its ``rate`` (each second), or its
    ``value``, in ``unit``. A few trials of each configuration; of many configurations only some.
    """

    source: str
    key: str
    shown: Literal["growth", "rate", "value"]
    unit: str
    lines: tuple[SampledLine, ...]
    marks: tuple[TimelineMark, ...] = ()


class Explained(BaseModel):
    """A factor explained from the catalogue: ``where`` is its path in the kernel that was used, ``note`` e.g.
    names a successor. A ``condition`` is no choice, such as a load: all else is judged at each of its levels.
    """

    name: str
    title: str
    what: str
    unit: str
    default: str = ""
    where: str = ""
    initial_value: str | None = None
    note: str = ""
    condition: bool = Field(default=False, exclude_if=lambda condition: not condition)


class Elsewhere(BaseModel):
    """The origin of results that were measured elsewhere: ``formats`` of the files, ``files`` by name, ``values`` how
    many single values or summaries they have. ``paired`` says whether all, some or none of the comparisons are within
    blocks; ``inference`` and ``pairing`` say in sentences what the intervals are good for.
    """

    formats: str
    files: tuple[str, ...]
    values: int
    paired: Literal["all", "some", "none"]
    inference: str
    pairing: str


class Continuation(BaseModel):
    """The continuation of an undecided run: ``command`` resumes it with a budget that is likely to be enough. A block
    took ``seconds_per_block`` of the host's time lately; None where that is not known.
    """

    command: str
    seconds_per_block: float | None = None


class Results(BaseModel):
    """The results of a run. ``digest`` is SHA-256 over all that was measured (configurations, seeds, values read back,
    outputs, metrics), no host times.

    ``answer`` is the answer to ``question`` in a sentence or two, ``stopped`` says why the run ended (``decided``,
    ``budget``, ``time``, ``irrelevant``, ``interrupted``, ``failed``) and ``stopped_because`` says it in words.
    ``design`` says in sentences how the trials were ordered and allotted. ``blocks`` counts those with a clean pair: of
    the baseline and any other configuration, not of all.
    ``environment`` is a nested mapping of text for people (kernel, QEMU, CPUs, memory, workload command lines,
    versions).
    ``reproduce`` are the exact commands, a line each; ``continuation`` is there where verdicts are open. ``notes`` are
    sentences the reader must know (emulated CPU, clamped values, …).
    ``tally`` counts all trials; of very many ``trials`` has only some.
    ``effects`` are those of the factors, where combinations of several were tried, a family of their own with
    ``effects_correction``; ``cells`` show the interactions of a full factorial.
    ``rankings`` are there of three configurations or more, one for each deciding metric with a better direction.
    ``histories`` are there where versions of the kernel are compared, ``surfaces`` where numeric factors span one, with
    ``correlations`` of deciding metrics and all others.
    ``machines`` compares the effects on several machines, where blocks were shared out among them.
    ``lines`` are those of a profile that was taken apart, the whole first, a family with ``effects_correction`` too.
    ``explanations`` are there of configurations whose trials were recorded (``ajuste why``).
    ``three_sigma`` and ``rule`` with its ``predictions`` are there if the study asked for them, ``timelines`` if it has
    samplers.
    ``tuning`` is what a search has found: then the verdicts are those of its check alone.
    ``no_chance`` are the factors that had no chance to matter, as far as no verdict says otherwise.
    ``live`` has the slices of an experiment on a running service, which are its trials.
    A run that was ``imported`` was measured by others, and came in a bundle.
    A facet of a package has a key of its own, if the run has it.
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
    design: str = ""
    blocks: int
    verdicts: tuple[Verdict, ...]
    rankings: tuple[Ranking, ...] = ()
    configurations: tuple[Measured, ...]
    factors: tuple[Factor, ...]
    metrics: tuple[Metric, ...]
    trials: tuple[Point, ...]
    tally: Tally = Field(default_factory=lambda data: tally_points(data.get("trials", ())))
    effects: tuple[FactorEffect, ...] = ()
    effects_correction: str = ""
    cells: tuple[FactorCell, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    correlations: tuple[Correlation, ...] = ()
    histories: tuple[History, ...] = ()
    lines: tuple[LineEffect, ...] = ()
    machines: tuple[AcrossMachines, ...] = ()
    diagnostics: Diagnostics | None = None
    three_sigma: tuple[ThreeSigma, ...] = ()
    elsewhere: Elsewhere | None = None
    tuning: Tuning | None = None
    rule: PredictionRule | None = None
    predictions: tuple[Prediction, ...] = ()
    timelines: tuple[SampledFigure, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    explained: tuple[Explained, ...] = ()
    environment: dict[str, Any] = Field(default_factory=dict)
    reproduce: tuple[str, ...] = ()
    continuation: Continuation | None = Field(default=None, exclude_if=lambda value: value is None)
    no_chance: tuple[NoChance, ...] = Field(default=(), exclude_if=lambda value: not value)
    live: LiveRecord | None = Field(default=None, exclude_if=lambda live: live is None)
    notes: tuple[str, ...] = ()
    created: str = ""
    ajuste: str = ""
    imported: bool = Field(default=False, exclude_if=lambda imported: not imported)

    @property
    def facets(self) -> Mapping[str, Any]:
        """Return what packages add to the results of some runs: JSON documents by key."""
        return self.model_extra or {}

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
