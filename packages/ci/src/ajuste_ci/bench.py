"""A bench: builds revisions of a project, and measures a benchmark in all of them side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

from ajuste.analysis.condition import Expectation, expectations
from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import kernel_kind, parse_study_spec
from ajuste.model.capability import Asked
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.results import Results
from ajuste.report.console import Activity
from ajuste.run.experiment import MeasuredExperiment, measured, recorder
from ajuste.run.testbed import Contained, RunOptions, kernel_testbed
from ajuste.study.named import require_allowed
from ajuste.study.read import read_study
from ajuste.study.schema import Study
from ajuste.study.site import normal_name
from ajuste_ci.checkout import Checkouts, ProjectRepository, checked_out
from ajuste_ci.layouts import of_layouts
from ajuste_ci.model import GateRevision
from ajuste_ci.project import CONFIDENCE, BenchmarkTable, Project, ReproducerTable, RowCommands, Trees, missing

BLOCKS_A_LAYOUT: Final = 3
LACKING_HINT: Final = "check the fields command, build and files of the benchmark"


T = TypeVar("T")

Failed = Callable[[str, AjusteError], None]
"""Takes the name of a benchmark that could not be measured, and the error."""

Reading = Callable[[MeasuredExperiment], Results]
"""Reads the results of a run that ended."""


@dataclass(frozen=True)
class BenchRequest:
    """The ``benchmarks`` of a project. ``named`` is the command as typed; ``quiet`` hides progress.

    Equal trials in the store are reused under the virtual clock, unless ``fresh``. Under the wall clock none are: all
    revisions must be measured side by side.
    """

    project: Project
    benchmarks: tuple[BenchmarkTable, ...]
    repository: ProjectRepository
    catalogue: Catalogue
    options: RunOptions
    named: str
    failed: Failed
    reproducers: tuple[ReproducerTable, ...] = ()
    fresh: bool = False
    quiet: bool = False

    @property
    def place(self) -> PurePosixPath:
        """The directory of the project in its repository."""
        directory = self.project.source.file.absolute().parent.resolve()
        return PurePosixPath(directory.relative_to(self.repository.top.resolve()))

    @property
    def file(self) -> str:
        """The project file, relative to the repository."""
        return str(self.place / self.project.source.file.name)

    def check(self) -> None:
        """Raise RequestError if any benchmark is invalid. Nothing is checked out or measured."""
        for benchmark in self.benchmarks:
            study = self.project.study(benchmark, self.catalogue, parse_study_spec)
            require_allowed(study, Asked("project file"), self.catalogue, kernel_kind)

    def require_benchmarks(self) -> None:
        """Raise RequestError if there are only reproducers, which judge a single revision."""
        if not self.benchmarks:
            raise RequestError(
                f"{self.file}: no [[benchmark]] found; a [[reproducer]] is not compared with another revision",
                hint="measure it with ajuste gate --base REV",
            )

    def refuse_harnesses(self, what: str) -> None:
        """Raise RequestError if a benchmark has a harness: ``what`` judges commands alone."""
        if table := next((table for table in self.benchmarks if table.harness is not None), None):
            raise RequestError(
                f'{what} does not support harness = "{table.harness}"',
                hint="name benchmarks that have a command, or use ajuste gate --base REV",
            )

    @contextmanager
    def bench(self, revisions: Mapping[str, GateRevision], *, in_order: bool = False) -> Iterator[RevisionBench]:
        """Yield a bench with ``revisions``; ``in_order`` if they are a history. Raises as ``checked_out``."""
        renewable = any(benchmark.layouts for benchmark in self.benchmarks)
        with checked_out(self.repository, revisions, self.options.home, renewable=renewable) as checkouts:
            labels = {side: revision.label for side, revision in revisions.items()}
            yield RevisionBench(self, checkouts, Trees(checkouts.directory, self.place, labels, in_order=in_order))

    def each(
        self, measured: Callable[[BenchmarkTable], Iterable[T]], unmeasured: Callable[[BenchmarkTable, str, str], T]
    ) -> list[T]:
        """Return the figures of all benchmarks. One that cannot be measured does not stop the others: ``unmeasured``
        makes its figure from the benchmark, its metrics and the reason.
        """
        figures: list[T] = []
        for benchmark in self.benchmarks:
            try:
                figures += measured(benchmark)
            except AjusteError as failure:
                self.failed(benchmark.name, failure)
                metrics = ", ".join(text.partition(",")[0] for text in benchmark.metric)
                figures.append(unmeasured(benchmark, metrics, failure.message))
        return figures


@dataclass
class RevisionBench:
    """Builds and measures the revisions of ``request``'s project in ``checkouts``; ``trees`` has their labels."""

    request: BenchRequest
    checkouts: Checkouts
    trees: Trees
    _built: dict[tuple[str, tuple[str, ...]], AjusteError | None] = field(default_factory=dict, init=False)

    def prepare(self, benchmark: BenchmarkTable, side: str, layout: int = 1) -> None:
        """Build the revision ``side`` for ``benchmark``, from scratch if it has layouts. Raises RunError if it does not
        build, or lacks a file.
        """
        if benchmark.layouts:
            self.checkouts.renew(side)
            self._forget(side)
        if (command := benchmark.build_command(layout)) is not None:
            self.build(command, side)
        if lacking := missing(benchmark, self.trees, side):
            raise RunError(lacking, hint=LACKING_HINT, of_candidate=True)

    def build(self, command: tuple[str, ...], side: str) -> None:
        """Build the revision ``side``. Benchmarks with the same command share one build, and its failure."""
        if (side, command) not in self._built:
            label = self.trees.labels[side]
            self._built[side, command] = None
            try:
                with Activity(quiet=self.request.quiet) as activity:
                    activity.say(f"building {label}")
                    self.checkouts.build(command, side, Path(self.trees.project), label)
            except AjusteError as failure:
                self._built[side, command] = failure
        if (failed := self._built[side, command]) is not None:
            raise failed

    def switch(self, side: str, revision: GateRevision) -> None:
        """Check out another ``revision`` as ``side``. Raises RunError."""
        self.checkouts.remove(side)
        self.checkouts.add(side, revision)
        self._forget(side)
        self.trees = replace(self.trees, labels={**self.trees.labels, side: revision.label})

    def _forget(self, side: str) -> None:
        self._built = {key: failed for key, failed in self._built.items() if key[0] != side}

    def judge(
        self, benchmark: BenchmarkTable, confidence: float = CONFIDENCE, *, explained: str = "", again: int = 0
    ) -> tuple[Results, str]:
        """Build all revisions and measure them as ``measure`` does. ``again`` is the number of earlier calls: each call
        has its own seeds and layouts. Raises RunError.
        """
        if benchmark.layouts:
            return self._over_layouts(benchmark, benchmark.layouts, confidence, again), ""
        for side in self.trees.labels:
            self.prepare(benchmark, side)
        study = self.study(benchmark, confidence)
        return self.measure(study.with_choices(seed=study.design.seed + again), benchmark, explained)

    def _over_layouts(self, benchmark: BenchmarkTable, layouts: int, confidence: float, again: int) -> Results:
        # The layout of a binary shifts its speed, so each layout counts once: by the mean of a few blocks.
        per_layout: list[Results] = []
        for layout in range(again * layouts + 1, (again + 1) * layouts + 1):
            self.request.options.say(f"layout {len(per_layout) + 1} of up to {layouts}")
            for side in self.trees.labels:
                self.prepare(benchmark, side, layout)
            study = self.study(benchmark, confidence).with_choices(seed=layout)
            # The layouts share the time of the benchmark.
            minutes = benchmark.max_time / 60 / layouts
            budget = {"min_blocks": BLOCKS_A_LAYOUT, "max_blocks": BLOCKS_A_LAYOUT, "max_minutes": minutes}
            study = study.model_copy(update={"budget": study.budget.model_copy(update=budget)})
            per_layout.append(self.measure(study, benchmark)[0])
            whole = of_layouts(per_layout, confidence=confidence, limit=benchmark.limit)
            if (
                not any(verdict.is_undecided for verdict in whole.verdicts if verdict.deciding)
                and not self.trees.in_order
            ):
                break
        return whole

    def study(self, benchmark: BenchmarkTable, confidence: float = CONFIDENCE, row: RowCommands | None = None) -> Study:
        """Return the study of ``benchmark``, or of a ``row`` of its harness, that compares the revisions. Raises
        RequestError.
        """
        request = self.request
        return request.project.study(benchmark, request.catalogue, parse_study_spec, self.trees, confidence, row)

    def reproduce(self, test: ReproducerTable, side: str) -> tuple[Results, tuple[Expectation, ...]]:
        """Measure the study of ``test`` in the revision ``side``. Return its results and expectations. Raises
        RequestError for a study that is not allowed, RunError.
        """
        if test.build is not None:
            self.build(test.build, side)
        request, there = self.request, self.trees.directory / self.trees.place(side)
        rights = Asked("project file")
        study = read_study(there / normal_name(test.study), request.catalogue, parse_kernel=parse_study_spec)
        if study.expect is None:
            raise RequestError(f"{test.study} expects nothing: [expect] not found", hint=LACKING_HINT)
        require_allowed(study, rights, request.catalogue, kernel_kind)
        programs = [Path(name) for name in test.schedulers]
        contained = Contained(study)
        if study.schedulers or programs:
            contained = kernel_testbed(replace(request.options, rights=rights)).with_schedulers(study, programs, there)
        # The run is the same whatever is expected.
        question = contained.study.model_copy(update={"expect": None})
        results, _ = self._measured(question, fresh=request.fresh, failed_too=True)
        return results, expectations(study.expect, results, changed=bool(contained.notes))

    def measure(
        self,
        study: Study,
        benchmark: BenchmarkTable,
        explained: str = "",
        read: Reading = MeasuredExperiment.results,
    ) -> tuple[Results, str]:
        """Measure ``study`` and return its results, as ``read`` reads them.

        If the revision ``explained`` is beyond the limit, they have its additional instructions by function; the second
        value is the reason if these could not be counted. Raises RunError.
        """
        return self._measured(study, fresh=self.request.fresh or not benchmark.in_guest, explained=explained, read=read)

    def _measured(
        self,
        study: Study,
        *,
        fresh: bool,
        explained: str = "",
        failed_too: bool = False,
        read: Reading = MeasuredExperiment.results,
    ) -> tuple[Results, str]:
        request = self.request
        with measured(
            study, request.catalogue, request.options, named=request.named, anew=lambda *_: fresh, quiet=request.quiet
        ) as measurement:
            if measurement.run.stopped == "failed" and not failed_too:
                raise measurement.failure("measuring")
            results = read(measurement)
            beyond = any(verdict.against_limit == "beyond" for verdict in results.verdicts)
            if explained and beyond and results.clock == "virtual":
                # A recording is stored with the run, so its report shows it from now on. A failed recording does not
                # undo a proved regression.
                run, store, options = measurement.run, measurement.store, measurement.options
                try:
                    recorder().record(run, explained, store, request.catalogue, options, fresh=False)
                except AjusteError as failure:
                    return results, f"its instructions could not be counted by function: {failure.message}"
                return read(measurement), ""
        return results, ""
