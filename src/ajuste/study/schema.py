"""The study file as data: every table and field of it, with what each may be.

Names are checked here for form only; whether a tunable, workload or metric exists is ``study.check``'s to say, and
whether a kernel has it is ``study.resolve``'s.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, PrivateAttr, StringConstraints, model_validator

from ajuste.design.blocks import Allocation, Order
from ajuste.design.combinations import Combine
from ajuste.model.boot import DEFAULT_PER_BOOT, is_boot_name
from ajuste.model.error import Place, RequestError
from ajuste.model.search import DEFAULT_TRIALS, SamplerName
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.model.tunable import Scale
from ajuste.study.job import (
    Argument,
    Argv,
    Claimed,
    DiskTable,
    Level,
    Name,
    Precision,
    Real,
    ScratchTable,
    Share,
    StudyTable,
    Switch,
    Whole,
    WorkloadTable,
)
from ajuste.study.problem import StudyOrigin
from ajuste.study.target import TargetTable
from ajuste_stats.terms import Word

# Default number of levels that are made from a range.
DEFAULT_POINTS: Final = 6


class FactorTable(StudyTable):
    """A factor: a thing that is varied."""

    name: str = Field(
        description="A tunable of the catalogue (ajuste tunables), a process attribute (nice, policy, affinity, "
        'cgroup_weight), "kernel", "command" (the workload\'s variants), "workload." and one of the workload\'s '
        'parameters, "service." and a process attribute of the service (of several: service.NAME.nice), or "boot." and '
        "a word of the kernel's command line, or boot.kernel (this machine, with --reboots). With settings: any name."
    )
    levels: Annotated[tuple[Level, ...], Field(min_length=1)] = Field(
        default=(),
        description="The values to compare, in display order; for numbers, also a range such as "
        '"1ms..30ms", with points, step and scale.',
    )
    range: str | None = Field(
        default=None,
        description="With a list of levels: the range that `ajuste tune` may search, such as "
        '"1ms..30ms". Not needed if levels is a range.',
    )
    points: Whole | None = Field(
        default=None, ge=2, le=1000, description=f"Number of levels in a range (default: {DEFAULT_POINTS})."
    )
    step: Level | None = Field(
        default=None, description="Instead of points: the distance between two levels of a range."
    )
    scale: Scale | None = Field(
        default=None, description="How the levels of a range are spaced: linear (equal differences) or log (ratios)."
    )
    settings: dict[str, dict[str, Level]] = Field(
        default_factory=dict,
        description="For a factor that sets several things at once: for each level, by its name, what it sets: "
        "tunables, process attributes, workload parameters, kernel, and kernel_arguments (words for the kernel's "
        "command line). Default for levels: the names in settings.",
    )
    baseline: Level | None = Field(default=None, description="The baseline level (default: the first).")
    prove: dict[str, tuple[Claimed, ...]] = Field(
        default_factory=dict,
        description="For the factor kernel: by level, the features of that kernel to prove before "
        'measuring: { "mine:base" = ["numa"], "mine:non-numa" = ["no-numa"] }.',
    )
    in_order: Switch = Field(
        default=False,
        exclude_if=lambda in_order: not in_order,
        description="Each level is a later version of the one before: the report shows where a metric changed.",
    )
    condition: bool | None = Field(
        default=None,
        exclude_if=lambda condition: condition is None,
        description="Not a choice but a circumstance, such as a load: all other factors are judged at each of its "
        "levels (default: true for settings that set nothing).",
    )
    successor: Switch = Field(
        default=False,
        description="On a kernel without this tunable, vary its named successor instead (a related but different "
        "tunable) and name it as such everywhere.",
    )

    @property
    def is_condition(self) -> bool:
        """Return whether other factors are judged at each of its levels."""
        return bool(self.settings) and not any(self.settings.values()) if self.condition is None else self.condition

    @model_validator(mode="before")
    @classmethod
    def _levels_from_elsewhere(cls, data: Any) -> Any:
        # Accept levels from a range, which `study.factors` expands, or from settings.
        if not isinstance(data, dict):
            return data
        if isinstance(data.get("levels"), str):
            if data.get("range") is not None:
                raise ValueError('range requires a list of levels; it conflicts with levels = "LOW..HIGH"')
            return {**{name: value for name, value in data.items() if name != "levels"}, "range": data["levels"]}
        if "levels" in data:
            return data
        if isinstance(data.get("settings"), dict):
            return {**data, "levels": list(data["settings"])}
        raise ValueError('levels are missing; expected a list such as [1, 2], or a range such as "1ms..30ms"')

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.range is None and (self.points or self.step or self.scale):
            raise ValueError('points, step and scale require a range, such as levels = "1ms..30ms"')
        if self.range is not None and self.settings:
            raise ValueError("a factor with settings does not support a range; expected a list of names")
        if self.points is not None and self.step is not None:
            raise ValueError("points and step are mutually exclusive")
        return self

    @model_validator(mode="after")
    def _proofs_of_kernels(self) -> Self:
        if self.prove and self.name != KERNEL_FACTOR:
            raise ValueError("prove applies only to the factor kernel")
        if unknown := set(self.prove) - set(self.levels):
            raise ValueError(
                f"prove has {', '.join(sorted(unknown))}, which is not a level; expected only levels of the factor"
            )
        return self

    @model_validator(mode="after")
    def _settings_for_every_level(self) -> Self:
        if self.settings and set(self.settings) != set(self.levels):
            raise ValueError("settings must have one table for each level, and no others")
        return self

    @property
    def baseline_level(self) -> str:
        return self.levels[0] if self.baseline is None else self.baseline

    @property
    def kernels(self) -> tuple[str, ...]:
        """Return the specs of the kernels that its levels name, each once; nothing where it leaves the kernel alone."""
        if self.name == KERNEL_FACTOR:
            return self.levels
        settings = (self.settings[level] for level in self.levels if self.settings)
        return tuple(
            dict.fromkeys(
                level_settings[KERNEL_FACTOR] for level_settings in settings if KERNEL_FACTOR in level_settings
            )
        )


class AnalysisTable(StudyTable):
    """The question, and how surely it is to be answered."""

    metrics: tuple[str, ...] = Field(
        min_length=1,
        description="The metrics that get verdicts and decide when the study stops. elapsed@p95 is the 95 % quantile "
        "of all trials' values of elapsed.",
    )
    describe: tuple[str, ...] | None = Field(default=None, description="Metrics to describe (default: all others).")
    confidence: Real = Field(default=0.95, ge=0.5, le=0.9999, description="Confidence of all verdicts together.")
    smallest_effect: Share = Field(
        default=0.05,
        description="The smallest effect that matters, relative to the baseline; smaller effects are equivalent.",
    )
    precision: Precision = None
    decide: Literal["effect", "limit"] = Field(
        default="effect",
        exclude_if=lambda decide: decide == "effect",
        description="effect: measure until an interval excludes zero or lies within smallest_effect; limit: until it "
        "lies entirely beyond smallest_effect on the worse side, or entirely short of it, as ajuste gate does.",
    )
    prediction: str | None = Field(
        default=None, description="A kernel rule that predicts a metric; shown beside the measurements."
    )
    three_sigma: Switch = Field(default=False, description="Also show the verdict of the 3-sigma rule.")
    explain: Switch = Field(
        default=False,
        description="At the end, record the scheduler under the baseline and the best configuration, one trial each, "
        "and report the differences.",
    )


class DesignTable(StudyTable):
    """The order of things."""

    seed: Whole = Field(default=1, ge=0, le=2**63 - 1, description="Seed of all random choices.")
    combine: Combine = Field(
        default="all",
        description="all: every combination of levels; one-at-a-time: the baseline, and each other level by itself; "
        "screening: which of many factors matter, from few combinations of their levels (two of each factor, or three "
        "with the baseline in the middle); ablation: which lines of a profile matter (factors of two levels: "
        "without and with the line).",
    )
    order: Order = Field(
        default="random",
        description="Within a block. random: a new order for each; latin: balanced, so that over as many blocks as "
        "there are configurations each stands once at each place, and follows each other one equally often.",
    )
    allocation: Allocation | None = Field(
        default=None,
        description="undecided: after min_blocks a block holds the baseline and what is still undecided; all: every "
        "block holds everything; refine: of a grid of numeric levels only what the picture of it needs is measured, "
        "until the surface is known within smallest_effect; best: after min_blocks a block holds the baseline and what "
        "may have the best mean of the first metric, until at most a third of the configurations may. Default: "
        "undecided, but all where combinations of several factors are compared or screened.",
    )
    warm_up: Whole = Field(
        default=0,
        ge=0,
        le=100,
        description="Number of warm-up blocks, which are kept but not compared; across reboots, in each boot.",
    )
    blocks_per_boot: Whole | None = Field(
        default=None,
        ge=1,
        le=1000,
        exclude_if=lambda blocks: blocks is None,
        description="On the host: reboot after so many blocks, so that boots are replicates (default: no reboot; with "
        f"boot-time factors {DEFAULT_PER_BOOT}). Requires --reboots.",
    )

    @property
    def judges_effects(self) -> bool:
        """Return whether verdicts are on effects of factors, or of lines of a profile, not on configurations."""
        return self.combine in ("screening", "ablation")


class TuneTable(StudyTable):
    """The search of `ajuste tune`, where its options say nothing else; other commands do not look at it."""

    objectives: tuple[str, ...] = Field(
        default=(),
        max_length=3,
        description="The metrics to improve (default: the first that decides). Append =lower or =higher to a metric "
        "without a better direction: context-switches=lower.",
    )
    constraints: tuple[str, ...] = Field(
        default=(),
        max_length=8,
        description="Conditions that must hold: elapsed@p99 <= +5% (relative to the baseline), or "
        "hackbench.time <= 2 s.",
    )
    trials: Whole = Field(default=DEFAULT_TRIALS, ge=1, le=100_000, description="Number of trials.")
    sampler: SamplerName = Field(
        default="gp",
        description="gp: a Gaussian process; tpe, cmaes, nsga2: Optuna's; random and grid to compare with.",
    )


class BudgetTable(StudyTable):
    """The budget: how long to go on. A block is one trial of every configuration."""

    min_blocks: Whole = Field(default=3, ge=1, le=100_000, description="Minimum number of blocks.")
    max_blocks: Whole = Field(default=30, ge=1, le=100_000, description="Stop then, decided or not.")
    max_minutes: Real = Field(default=20.0, gt=0, le=100_000, description="Stop then, decided or not.")
    min_seconds: Real = Field(
        default=0.0, ge=0, le=100_000, description="Minimum measuring time in seconds before an early decision."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_blocks > self.max_blocks:
            raise ValueError(f"min_blocks is {self.min_blocks}; expected at most max_blocks, {self.max_blocks}")
        return self


Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
SchedulerName = Annotated[str, StringConstraints(pattern="^scx_[a-z0-9_]{1,40}$")]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$")]


class PatchTable(StudyTable):
    """A patch that the file contains, for a kernel of the study: build:debian:6.1.192+NAME."""

    name: FileName = Field(description="Its name in the kernel.")
    sha256: Sha256 | None = Field(default=None, description="The hash of text.")
    text: str = Field(description="The output of git diff or git format-patch.")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.sha256 not in (None, hashlib.sha256(self.text.encode()).hexdigest()):
            raise ValueError(f"the text of {self.name} has another hash than sha256; expected the patch unchanged")
        return self


class SchedulerTable(StudyTable):
    """A BPF scheduler, a level of sched_ext, for any kernel with sched_ext and BTF: its program, or what it is built
    from.
    """

    name: SchedulerName = Field(description="scx_ and lower-case letters.")
    program: Argument | None = Field(
        default=None, description="The program: a file beside the study file, or what build makes."
    )
    sha256: Sha256 | None = Field(default=None, description="The hash of the program.")
    repository: Argument | None = Field(
        default=None, description="The git repository to build: https://…, or a directory of this machine."
    )
    commit: Annotated[str, StringConstraints(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")] | None = Field(
        default=None, description="The commit of it, by its whole hash."
    )
    source: dict[FileName, str] = Field(
        default_factory=dict, description="Instead of a repository: the texts of small files, by name."
    )
    build: Argv | None = Field(
        default=None, description="The command that builds program there. It runs on this machine: requires --build."
    )

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if (self.repository is None) != (self.commit is None):
            raise ValueError("repository and commit require each other")
        if self.repository is not None and self.source:
            raise ValueError("repository and source are mutually exclusive")
        if (self.build is None) != (self.repository is None and not self.source):
            raise ValueError("build requires repository and commit, or source; and they require build")
        if self.build is not None and self.program is None:
            raise ValueError("build requires program, the file that it makes")
        if self.program is None and self.sha256 is None:
            raise ValueError("expected program, or sha256 of one that --scheduler gives")
        return self


class ExpectedFigure(StudyTable):
    """A figure that must come out on one metric."""

    metric: str = Field(description="A metric of the study.")
    configuration: str = Field(
        default="", description="A configuration by its name (default: each one but the baseline)."
    )
    verdict: tuple[Word, ...] = Field(default=(), description="The verdicts that are right.")
    least: Real | None = Field(default=None, description="The least mean, in the metric's base unit.")
    most: Real | None = Field(default=None, description="The greatest mean.")

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if not self.verdict and self.least is None and self.most is None:
            raise ValueError("expected verdict, least or most")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise ValueError(f"least is {self.least:g}; expected at most {self.most:g}")
        return self


class ExpectTable(StudyTable):
    """The results that must come out, for a regression test: `ajuste run` ends with exit code 3 where they do not."""

    digest: str = Field(
        default="",
        pattern="^([0-9a-f]{64})?$",
        description="The digest of all trials; not compared if the command line changes the study.",
    )
    stalls: Whole | None = Field(
        default=None,
        ge=0,
        description="How many trials may fail: a workload or guest that hangs, a scheduler that does not load or that "
        "the kernel ejects.",
    )
    kernels: tuple[Sha256, ...] = Field(
        default=(),
        max_length=100,
        description="The hashes of the kernels that are built for it. Another compiler makes others, and then the "
        "digest is not compared.",
    )
    ajuste: str = Field(default="", max_length=40, description="The version of Ajuste that wrote the digest.")
    figures: tuple[ExpectedFigure, ...] = Field(default=(), alias="figure", max_length=1000, description="Figures.")


class Study(StudyTable):
    """A question, what is varied, what is run, where, and how surely the answer is to be known."""

    version: Literal[1] = Field(default=1, alias="schema", description="The version of this format.")
    name: Name = Field(description="Lower-case letters, digits and hyphens.")
    title: str = Field(default="", description="The title to show (default: the name).")
    question: str = Field(default="", description="The question, in one sentence.")
    notes: tuple[str, ...] = Field(default=(), description="Notes for readers of the results.")
    factors: tuple[FactorTable, ...] = Field(
        alias="factor", max_length=200, description="What varies; an empty list describes one configuration."
    )
    workload: WorkloadTable
    scratch: ScratchTable | None = Field(
        default=None, description="A file system, made for every trial, as its working directory."
    )
    disk: DiskTable | None = Field(default=None, description="The disk the study measures, and may overwrite.")
    target: TargetTable = TargetTable()
    analysis: AnalysisTable
    design: DesignTable = DesignTable()
    budget: BudgetTable = BudgetTable()
    tune: TuneTable = TuneTable()
    patches: tuple[PatchTable, ...] = Field(
        default=(), alias="patch", max_length=100, exclude_if=lambda patches: not patches, description="Patches."
    )
    schedulers: tuple[SchedulerTable, ...] = Field(
        default=(),
        alias="scheduler",
        max_length=100,
        exclude_if=lambda schedulers: not schedulers,
        description="BPF schedulers that no kernel of the study was built with.",
    )
    expect: ExpectTable | None = Field(default=None, exclude_if=lambda expect: expect is None)

    _source: StudyOrigin | None = PrivateAttr(default=None)

    @property
    def source(self) -> StudyOrigin | None:
        """Return the file or request that the study comes from, if known."""
        return self._source

    def place(self, *path: str | int) -> Place | None:
        """Return where ``path``, such as ``("factor", 0, "levels")``, is written down."""
        return self._source.place(path) if self._source else None

    def at(self, source: StudyOrigin) -> Self:
        """Return the study with its ``source``."""
        copy = self.model_copy()
        copy._source = source  # noqa: SLF001 - its own class
        return copy

    def kernel_place(self, spec: str) -> Place | None:
        """Return where that kernel is written down."""
        for index, factor in enumerate(self.factors):
            if factor.name == KERNEL_FACTOR and spec in factor.levels:
                return self.place("factor", index, "levels", factor.levels.index(spec))
            for level, level_settings in factor.settings.items():
                if level_settings.get(KERNEL_FACTOR) == spec:
                    return self.place("factor", index, "settings", level, KERNEL_FACTOR)
        return self.place("target", "kernel")

    def with_choices(self, *, kernel: str | Sequence[str] | None = None, seed: int | None = None) -> Self:
        """Return the study with another kernel or seed, as chosen on the command line; several kernels are a factor
        more. Raises RequestError.
        """
        update: dict[str, Any] = {}
        if kernel is not None:
            if any(factor.kernels for factor in self.factors):
                raise RequestError("--kernel conflicts with the factor kernel; change its levels in the study")
            kernels = (kernel,) if isinstance(kernel, str) else tuple(kernel)
            alone = kernels[0] if len(kernels) == 1 else None
            update["target"] = self.target.model_copy(update={"kernel": alone})
            if alone is None:
                update["factors"] = (FactorTable(name=KERNEL_FACTOR, levels=kernels), *self.factors)
        if seed is not None:
            if not 0 <= seed < 2**63:
                raise RequestError(f"the seed is {seed}; expected between 0 and {2**63 - 1}")
            update["design"] = self.design.model_copy(update={"seed": seed})
        return self.model_copy(update=update)

    @property
    def allocation(self) -> Allocation:
        """Return what later blocks hold, as chosen or by default: effects of factors need complete blocks."""
        if self.across_boots:
            return "all"
        several = sum(len(factor.levels) > 1 for factor in self.factors) > 1
        effects = (several and self.design.combine != "one-at-a-time") or self.design.combine == "ablation"
        return self.design.allocation or ("all" if effects else "undecided")

    def document(self) -> dict[str, Any]:
        """Return it as a study file has it, without what is so by default."""
        document = self.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True)
        return {"schema": 1, **document, "factor": document.get("factor", [])}

    @property
    def across_boots(self) -> bool:
        """Return whether this machine reboots for it."""
        return self.blocks_per_boot > 0

    @property
    def blocks_per_boot(self) -> int:
        """Return the blocks that count in each boot; 0 where the machine does not reboot."""
        names = (name for f in self.factors for each in ((f.name,), *f.settings.values()) for name in each)
        varied = any(map(is_boot_name, names))
        return self.design.blocks_per_boot or (DEFAULT_PER_BOOT if varied else 0)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Return the specs of all kernels that the study needs, each once."""
        kernels = (self.target.kernel,) if self.target.kernel else ()
        return tuple(dict.fromkeys((*kernels, *(kernel for factor in self.factors for kernel in factor.kernels))))
