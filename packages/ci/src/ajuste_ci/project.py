"""The project file ``ajuste.toml``: the benchmarks of a program, and how much worse each may become.

Each becomes a study of the factor "command", with the command of each revision as a level.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, get_args

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError
from ajuste.model.trial import COMMAND_FACTOR
from ajuste.outputs.base import EXACT_METRICS
from ajuste.study.command_line.defaults import DEFAULT_KERNEL, DEFAULT_MAX_SECONDS, IN_GUEST, ON_HOST
from ajuste.study.command_line.job import read_metric
from ajuste.study.command_line.request import seconds
from ajuste.study.factors import ParseKernel
from ajuste.study.job import Argument, Argv, StudyTable
from ajuste.study.metrics import PARTS_OF_INSTRUCTIONS, find_metric
from ajuste.study.problem import KeyPath, Problem, StudySource, chosen_by_name, error, from_validation, named_twice
from ajuste.study.read import checked_study, read_toml
from ajuste.study.schema import Study
from ajuste.study.site import is_study_file, normal_name
from ajuste.study.target import PackageName

PROJECT_FILE: Final = "ajuste.toml"
# Names of the two revisions, and of the directories that have them.
SIDES: Final = ("base", "head")
# Confidence of all metrics of a benchmark together.
CONFIDENCE: Final = 0.95

COUNTED: Final = ("instructions", "user-instructions", "kernel-instructions")
"""Metrics of the benchmarks of a harness."""

# Placeholder in a build command for the number of a layout.
LAYOUT: Final = "{layout}"

HINT: Final = "see `ajuste help file-fields` for every field"

HarnessName = Literal["criterion", "divan", "libtest", "go", "google-benchmark", "hyperfine"]

WITHOUT_A_FILE: Final = tuple(name for name in get_args(HarnessName) if name not in ("google-benchmark", "hyperfine"))
"""Harnesses that need no field of ajuste.toml."""

DEFAULT_LIMIT: Final = "1%"
"""Default limit of the benchmarks of a harness."""

_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%")
_LIMIT_EXPECTED: Final = 'expected a percentage above 0% and below 100%, such as "1%"'


def parse_limit(value: Any) -> float:
    """Parse ``"1%"`` as 0.01. Raises ValueError for any other value."""
    match = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    share = float(match[1]) / 100 if match else 0.0
    if not 0 < share < 1:
        raise ValueError(_LIMIT_EXPECTED)
    return share


def _words(value: Any) -> Any:
    # A command in one text, split as a shell would; no shell ever reads it.
    if not isinstance(value, str):
        return value
    try:
        split = shlex.split(value)
    except ValueError as failure:
        raise ValueError(f"expected balanced quotes: {failure}") from None
    if not split:
        raise ValueError("expected a program and its arguments")
    return split


def _seconds(value: Any) -> float:
    try:
        return seconds("", value if isinstance(value, str) else "")
    except RequestError:
        raise ValueError('expected a duration such as "90s", "5m" or "1h"') from None


def _known_form(value: str) -> str:
    try:
        read_metric(value)
    except RequestError as failure:
        raise ValueError(failure.message) from None
    return value


CommandText = Annotated[Argv, BeforeValidator(_words)]
Limit = Annotated[float, BeforeValidator(parse_limit)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
MetricText = Annotated[Argument, BeforeValidator(lambda value: _known_form(value) if isinstance(value, str) else value)]
Metrics = Annotated[
    tuple[MetricText, ...],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    Field(min_length=1),
]


class BenchmarkTable(StudyTable):
    """A command that is measured in two revisions, and how much worse it may be in the second."""

    name: str = Field(pattern=r"^[a-z0-9-]+$", max_length=60, description="Lower-case letters, digits and hyphens.")
    harness: HarnessName | None = Field(
        default=None,
        description="Measure the benchmarks that this harness lists, each by itself: criterion, divan, libtest, go, "
        "google-benchmark or hyperfine. Then name, command, metric and limit have defaults (instructions, 1%).",
    )
    commands: Argument | None = Field(
        default=None,
        description="With hyperfine: the file of its commands, one a line, or its --export-json.",
    )
    build: CommandText | None = Field(
        default=None,
        description="Builds a revision, in the directory of ajuste.toml; commands that are alike run once (default: "
        "that of the harness, such as cargo bench --no-run).",
    )
    command: CommandText = Field(
        description="What is measured: a text, split as a shell would, or a list. No shell runs it; write sh -c '…' "
        "for one. A path with a slash is a file of the revision."
    )
    metric: Metrics = Field(description="A metric, or a list.")
    limit: Limit = Field(description='By how much each metric may get worse: "1%".')
    kernel: str | None = Field(
        default=None,
        description='The kernel of a guest, such as "debian:6.12" or "mine:NAME" (default with instructions: '
        "debian:6.12).",
    )
    files: tuple[Argument, ...] = Field(
        default=(),
        description="Files of the revision that the command needs in a guest; with a harness also directories.",
    )
    programs: tuple[Argument, ...] = Field(
        default=(), description="More programs of this machine that it needs in a guest."
    )
    packages: tuple[PackageName, ...] = Field(
        default=(), description="Debian packages that a guest has; the benchmark runs in one then."
    )
    layouts: int | None = Field(
        default=None,
        ge=6,
        le=60,
        description="Build each revision so many times, with the number of the build for {layout} in build; builds are "
        "compared, not trials.",
    )
    timeout: Seconds | None = Field(default=None, description='The limit of one trial, such as "90s".')
    max_time: Seconds = Field(default=DEFAULT_MAX_SECONDS, description='How long to measure, such as "5m".')

    @model_validator(mode="before")
    @classmethod
    def _of_harness(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(harness := data.get("harness"), str):
            return data
        if conflicting := next((name for name in ("command", "layouts") if name in data), None):
            raise ValueError(f"harness and {conflicting} are mutually exclusive")
        return {"name": harness, "command": [harness], "metric": "instructions", "limit": DEFAULT_LIMIT, **data}

    @model_validator(mode="after")
    def _has_a_harness(self) -> Self:
        if self.commands is not None and self.harness != "hyperfine":
            raise ValueError('commands applies only to harness = "hyperfine"')
        if self.harness == "hyperfine" and self.commands is None:
            raise ValueError('harness = "hyperfine" requires commands = "FILE"')
        if self.harness is not None and not set(self.metric) <= set(COUNTED):
            raise ValueError(f"a harness has the metrics {', '.join(COUNTED)}")
        return self

    @model_validator(mode="after")
    def _builds_layouts(self) -> Self:
        if self.layouts is not None and not any(LAYOUT in word for word in self.build or ()):
            raise ValueError(f"layouts requires {LAYOUT} in build, such as LDFLAGS=-Wl,--shuffle-sections={LAYOUT}")
        if self.layouts is not None and self.in_guest:
            raise ValueError("layouts applies only to this machine; in a guest code layout costs no time")
        return self

    def build_command(self, layout: int) -> tuple[str, ...] | None:
        """Return the command that builds that layout."""
        if self.layouts is None or self.build is None:
            return self.build
        return tuple(word.replace(LAYOUT, str(layout)) for word in self.build)

    @property
    def in_guest(self) -> bool:
        """Return whether it runs in a guest: with a kernel, packages, or a metric that only the virtual clock has."""
        exact = {*EXACT_METRICS, *(part.name for part in PARTS_OF_INSTRUCTIONS)}
        return self.kernel is not None or bool(self.packages) or not exact.isdisjoint(self.metric)


class ReproducerTable(StudyTable):
    """A study with `[expect]` that `ajuste gate` measures in the revision to judge."""

    name: str = Field(pattern=r"^[a-z0-9-]+$", max_length=60, description="Lower-case letters, digits and hyphens.")
    study: Argument = Field(description="The study file, a path in the project.")
    build: CommandText | None = Field(
        default=None, description="Builds a revision, as in a benchmark; the study itself may build nothing."
    )
    schedulers: tuple[Argument, ...] = Field(
        default=(),
        alias="scheduler",
        max_length=100,
        description="Programs of BPF schedulers in the project, such as build/scx_mine, for sched_ext levels of the "
        "study; scx_other=build/scx_mine for a level with another name.",
    )


class ProjectTable(StudyTable):
    """The benchmarks of a project, and the studies that are tests of it."""

    benchmarks: tuple[BenchmarkTable, ...] = Field(default=(), alias="benchmark", max_length=100)
    reproducers: tuple[ReproducerTable, ...] = Field(default=(), alias="reproducer", max_length=100)

    @model_validator(mode="after")
    def _judges_something(self) -> Self:
        if not self.benchmarks and not self.reproducers:
            raise ValueError("has nothing to measure; expected [[benchmark]] or [[reproducer]]")
        return self


@dataclass(frozen=True)
class Project:
    """A project: ``benchmarks`` and ``reproducers`` in the order of the file that is their ``source``."""

    source: StudySource
    benchmarks: tuple[BenchmarkTable, ...]
    reproducers: tuple[ReproducerTable, ...] = ()

    def chosen(self, names: tuple[str, ...]) -> tuple[BenchmarkTable, ...]:
        """Return the benchmarks of that name, in the file's order; all if none is named. Raises RequestError."""
        return tuple(table for table in self._named(names) if isinstance(table, BenchmarkTable))

    def reproduced(self, names: tuple[str, ...]) -> tuple[ReproducerTable, ...]:
        """Return the reproducers with these names, as ``chosen`` does."""
        return tuple(table for table in self._named(names) if isinstance(table, ReproducerTable))

    def _named(self, names: tuple[str, ...]) -> tuple[BenchmarkTable | ReproducerTable, ...]:
        both: tuple[BenchmarkTable | ReproducerTable, ...] = (*self.benchmarks, *self.reproducers)
        return chosen_by_name("benchmark", both, names, self.source.file)

    def line(self, table: BenchmarkTable | ReproducerTable) -> int | None:
        """Return the line where a table begins in the file."""
        if isinstance(table, ReproducerTable):
            return self.source.place(("reproducer", self.reproducers.index(table))).line
        return self.source.place(("benchmark", self.benchmarks.index(table))).line

    def study(
        self,
        benchmark: BenchmarkTable,
        known: Catalogue,
        parse_kernel: ParseKernel,
        trees: Trees | None = None,
        confidence: float = CONFIDENCE,
        row: RowCommands | None = None,
    ) -> Study:
        """Return the question of ``benchmark``, or of the ``row`` of its harness, checked; with ``trees`` about the
        revisions that are there. Raises RequestError.
        """
        there = trees or Trees(Path(), PurePosixPath())
        origin = BenchmarkOrigin(self, benchmark, there.directory, len(there.labels))
        document = _document(benchmark, there, confidence, row)
        parse = partial(_existing_kernel, parse_kernel)
        study = checked_study(document, origin, known, parse_kernel=parse, with_files=trees is not None)
        for index, name in enumerate(study.analysis.metrics):
            if find_metric(name, study, known).direction == "none":
                message = f'metric "{name}" has no better direction, so nothing can be a regression'
                raise error([Problem(("analysis", "metrics", index), message, "choose another metric")], origin)
        return study


class RowVariant(NamedTuple):
    """A ``command`` of a harness, and the ``directory`` it runs in, below that of the trees."""

    name: str
    command: tuple[str, ...]
    directory: str


@dataclass(frozen=True)
class RowCommands:
    """The commands that measure a benchmark of a harness; ``name`` identifies it, ``files`` are below the trees."""

    name: str
    title: str
    variants: tuple[RowVariant, ...]
    files: tuple[str, ...]


@dataclass(frozen=True)
class Trees:
    """The trees of revisions: ``directory`` has a tree of each; ``project`` is where the project is in each of them.
    ``labels`` name the revisions, by the names of their trees; the first is compared with. ``in_order`` says that each
    is later than the one before.
    """

    directory: Path
    project: PurePosixPath
    labels: Mapping[str, str] = field(default_factory=lambda: {side: side for side in SIDES})
    in_order: bool = False

    def place(self, side: str) -> PurePosixPath:
        """Return the directory of that side's project, below ``directory``."""
        return PurePosixPath(side) / self.project


@dataclass(frozen=True)
class BenchmarkOrigin:
    """The places in the project file where each part of a benchmark's study is written down."""

    project: Project
    benchmark: BenchmarkTable
    directory: Path
    revisions: int
    hint: str = HINT

    def place(self, keys: KeyPath) -> Place:
        """Return the place of the field, or else of the benchmark."""
        index = self.project.benchmarks.index(self.benchmark)
        return self.project.source.place(("benchmark", index, *self._field(keys)))

    def _field(self, keys: KeyPath) -> KeyPath:
        field, element = _FIELDS.get(keys[:2]), keys[2:3]
        if field is None or "directory" in keys:
            return ()
        if field == "command" or not element:
            return (field,)
        number = int(element[0])
        if keys[:2] == ("workload", "files"):
            number //= self.revisions
        if keys[:2] == ("workload", "metric"):
            custom = [place for place, text in enumerate(self.benchmark.metric) if isinstance(read_metric(text), dict)]
            number = custom[number]
        return (field, number)


# Which field of a benchmark says what part of its study.
_FIELDS: Final[Mapping[KeyPath, str]] = {
    ("workload", "variant"): "command",
    ("workload", "files"): "files",
    ("workload", "programs"): "programs",
    ("workload", "timeout_s"): "timeout",
    ("workload", "metric"): "metric",
    ("analysis", "metrics"): "metric",
    ("analysis", "smallest_effect"): "limit",
    ("target", "kernel"): "kernel",
    ("target", "packages"): "packages",
    ("budget", "max_minutes"): "max_time",
}


def read_project(path: Path) -> Project:
    """Return the project file ``path``, with its form checked. Raises one RequestError with all errors."""
    document, source = read_toml(path, "project file", f"write one: {HINT}", fields=HINT)
    try:
        table = ProjectTable.model_validate(document)
    except ValidationError as failure:
        raise error(from_validation(failure, ProjectTable), source) from None
    if twice := named_twice("benchmark", (*table.benchmarks, *table.reproducers)):
        raise error(twice, source)
    return Project(source, table.benchmarks, table.reproducers)


def project_of_harness(harness: str) -> Project:
    """Return a project without a file: the benchmarks of ``harness`` in the current directory. Raises RequestError."""
    if harness not in WITHOUT_A_FILE:
        raise RequestError(
            f'--harness "{harness}": not supported; expected {", ".join(WITHOUT_A_FILE)}',
            hint="choose one of these, or write an ajuste.toml",
        )
    text = f'[[benchmark]]\nharness = "{harness}"\n'
    table = ProjectTable.model_validate(tomllib.loads(text))
    return Project(StudySource(Path(PROJECT_FILE), text, HINT), table.benchmarks)


def _existing_kernel(parse_kernel: ParseKernel, text: str) -> Any:
    # A gate builds no kernel. Raises RequestError.
    parsed = parse_kernel(text)
    if text.startswith("build:"):
        raise RequestError(
            f'"{text}" has to be built first; expected a kernel such as "debian:6.12" or "mine:NAME"',
            hint="build it once with ajuste kernel build",
        )
    return parsed


def missing(benchmark: BenchmarkTable, trees: Trees, side: str) -> str:
    """Return a sentence on the benchmark's programs and files that a revision lacks."""
    programs = [benchmark.command[0]] if is_study_file(benchmark.command[0]) else []
    there = trees.directory / trees.place(side)
    built = "" if benchmark.build is None else " after its build"
    lacking = (name for name in (*programs, *benchmark.files) if not (there / name).is_file())
    return next((f"{name} not found in {trees.labels[side]}{built}" for name in lacking), "")


def _document(
    benchmark: BenchmarkTable, trees: Trees, confidence: float, row: RowCommands | None = None
) -> dict[str, Any]:
    defaults = IN_GUEST if benchmark.in_guest else ON_HOST
    metrics = [read_metric(text) for text in benchmark.metric]
    program, *arguments = benchmark.command
    places = {side: str(trees.place(side)) for side in trees.labels}
    first, *_, last = trees.labels.values()
    limit = f"more than {100 * benchmark.limit:g} %"
    variants = [
        # A program of the revision is at its place.
        RowVariant(side, (f"{place}/{normal_name(program)}" if is_study_file(program) else program, *arguments), place)
        for side, place in places.items()
    ]
    files = [f"{places[side]}/{normal_name(name)}" for name in benchmark.files for side in places]
    name, title = benchmark.name, benchmark.name
    if row is not None:
        name, title, variants, files = row.name, row.title, list(row.variants), list(row.files)
    levels = [variant.name for variant in variants]
    factor = {"name": COMMAND_FACTOR, "levels": levels, "in_order": trees.in_order}
    target: dict[str, Any] = {"kind": "host"}
    if benchmark.in_guest:
        target = {"kind": "vm", "kernel": benchmark.kernel or DEFAULT_KERNEL, "packages": list(benchmark.packages)}
    return {
        "schema": 1,
        "name": f"{'history' if trees.in_order else 'gate'}-{name}",
        "title": f"{title}: {first} → {last}",
        "question": f"Where did {title} change by {limit}?" if trees.in_order else f"Is {title} worse by {limit}?",
        "factor": [factor],
        "workload": {
            "timeout_s": benchmark.timeout or defaults.timeout_s,
            "programs": list(benchmark.programs),
            "files": files,
            "metric": [metric for metric in metrics if isinstance(metric, dict)],
            "variant": [
                {"name": variant.name, "command": list(variant.command), "directory": variant.directory}
                for variant in variants
            ],
        },
        "target": target,
        "analysis": {
            "metrics": [metric if isinstance(metric, str) else metric["name"] for metric in metrics],
            "confidence": confidence,
            "smallest_effect": benchmark.limit,
            "decide": "limit",
        },
        "design": {"warm_up": defaults.warm_up},
        "budget": {"max_blocks": defaults.max_blocks, "max_minutes": benchmark.max_time / 60},
    }
