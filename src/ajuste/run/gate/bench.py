"""Where a benchmark is measured in several revisions side by side: what builds them, and what conducts its study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

from ajuste.analysis.condition import Expectation, expectations
from ajuste.analysis.layouts import of_layouts
from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import kernel_kind, parse_study_spec
from ajuste.model.capability import Asked
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.gate import GateRevision
from ajuste.model.results import Results
from ajuste.report.display import Activity
from ajuste.run.contained import with_schedulers
from ajuste.run.experiment import Measured, measured, record
from ajuste.run.gate.checkout import Checkouts, ProjectRepository, checked_out
from ajuste.run.testbed import RunOptions
from ajuste.study.named import require_allowed
from ajuste.study.project import CONFIDENCE, BenchmarkTable, Project, ReproducerTable, Trees, missing
from ajuste.study.read import read_study
from ajuste.study.schema import Study
from ajuste.study.site import normal_name

BLOCKS_A_LAYOUT: Final = 3
LACKING_HINT: Final = "check the fields command, build and files of the benchmark"


T = TypeVar("T")

Failed = Callable[[str, AjusteError], None]
"""Is told the name of a benchmark that could not be measured."""


@dataclass(frozen=True)
class BenchRequest:
    """The ``benchmarks`` of ``project``, which is in ``repository``. ``named`` is the command as it was typed;
    ``quiet`` shows no progress.

    What the store has of the very same trials under the virtual clock is taken, unless it is to be ``fresh``. By a
    clock of the world nothing is: all revisions are measured beside each other.
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
        """Where the project is in its repository."""
        directory = self.project.source.file.absolute().parent.resolve()
        return PurePosixPath(directory.relative_to(self.repository.top.resolve()))

    @property
    def file(self) -> str:
        """The project file, relative to the repository."""
        return str(self.place / self.project.source.file.name)

    def check(self) -> None:
        """Raises RequestError for what is wrong with any of the benchmarks. Nothing is checked out or measured."""
        for benchmark in self.benchmarks:
            study = self.project.study(benchmark, self.catalogue, parse_study_spec)
            require_allowed(study, Asked("project file"), self.catalogue, kernel_kind)

    def require_benchmarks(self) -> None:
        """Raises RequestError where there are only reproducers, which judge one revision by itself."""
        if not self.benchmarks:
            raise RequestError(
                f"{self.file}: no [[benchmark]] found; a [[reproducer]] is not compared with another revision",
                hint="measure it with ajuste gate --base REV",
            )

    @contextmanager
    def bench(self, revisions: Mapping[str, GateRevision], *, in_order: bool = False) -> Iterator[RevisionBench]:
        """One with the ``revisions``, which ``in_order`` are each later than the one before. Raises as checking out."""
        renewable = any(one.layouts for one in self.benchmarks)
        with checked_out(self.repository, revisions, self.options.home, renewable=renewable) as checkouts:
            labels = {side: revision.label for side, revision in revisions.items()}
            yield RevisionBench(self, checkouts, Trees(checkouts.directory, self.place, labels, in_order=in_order))

    def each(
        self, measured: Callable[[BenchmarkTable], Iterable[T]], unmeasured: Callable[[BenchmarkTable, str, str], T]
    ) -> list[T]:
        """What comes of all benchmarks, one after the other. What cannot be measured does not keep the others from it:
        ``unmeasured`` takes the benchmark, its metrics and the reason.
        """
        found: list[T] = []
        for benchmark in self.benchmarks:
            try:
                found += measured(benchmark)
            except AjusteError as failure:
                self.failed(benchmark.name, failure)
                metrics = ", ".join(text.partition(",")[0] for text in benchmark.metric)
                found.append(unmeasured(benchmark, metrics, failure.message))
        return found


@dataclass
class RevisionBench:
    """Builds and measures the revisions that ``checkouts`` has of the project of ``request``: its ``trees``."""

    request: BenchRequest
    checkouts: Checkouts
    trees: Trees
    _built: dict[tuple[str, tuple[str, ...]], AjusteError | None] = field(default_factory=dict, init=False)

    def prepare(self, benchmark: BenchmarkTable, side: str, layout: int = 1) -> None:
        """Build the revision ``side`` for ``benchmark``; one with layouts from scratch. Raises RunError where it does
        not build, or lacks a file.
        """
        if benchmark.layouts:
            self.checkouts.renew(side)
            self._forget(side)
        if (command := benchmark.build_command(layout)) is not None:
            self._build(command, side)
        if lacking := missing(benchmark, self.trees, side):
            raise RunError(lacking, hint=LACKING_HINT)

    def _build(self, command: tuple[str, ...], side: str) -> None:
        # Once for all benchmarks that have the same command.
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
        """Have another ``revision`` by the name ``side``. Raises RunError."""
        self.checkouts.remove(side)
        self.checkouts.add(side, revision)
        self._forget(side)
        self.trees = replace(self.trees, labels={**self.trees.labels, side: revision.label})

    def _forget(self, side: str) -> None:
        self._built = {key: failed for key, failed in self._built.items() if key[0] != side}

    def judge(
        self, benchmark: BenchmarkTable, confidence: float = CONFIDENCE, *, explained: str = "", again: int = 0
    ) -> tuple[Results, str]:
        """Build all revisions and measure them as ``measure`` does; ``again`` counts what was drawn before: seeds and
        layouts are others then. Raises RunError.
        """
        if benchmark.layouts:
            return self._over_layouts(benchmark, benchmark.layouts, confidence, again), ""
        for side in self.trees.labels:
            self.prepare(benchmark, side)
        study = self.study(benchmark, confidence)
        return self.measure(study.with_choices(seed=study.design.seed + again), benchmark, explained)

    def _over_layouts(self, benchmark: BenchmarkTable, layouts: int, confidence: float, again: int) -> Results:
        # Each layout is built and measured in a few blocks; their means are compared until that decides.
        found: list[Results] = []
        for layout in range(again * layouts + 1, (again + 1) * layouts + 1):
            self.request.options.say(f"layout {len(found) + 1} of up to {layouts}")
            for side in self.trees.labels:
                self.prepare(benchmark, side, layout)
            study = self.study(benchmark, confidence).with_choices(seed=layout)
            minutes = benchmark.max_time / 60 / layouts
            budget = {"min_blocks": BLOCKS_A_LAYOUT, "max_blocks": BLOCKS_A_LAYOUT, "max_minutes": minutes}
            study = study.model_copy(update={"budget": study.budget.model_copy(update=budget)})
            found.append(self.measure(study, benchmark)[0])
            whole = of_layouts(found, confidence=confidence, limit=benchmark.limit)
            if not any(one.is_undecided for one in whole.verdicts if one.deciding) and not self.trees.in_order:
                break
        return whole

    def study(self, benchmark: BenchmarkTable, confidence: float = CONFIDENCE) -> Study:
        """The question of ``benchmark`` about the revisions that are there. Raises RequestError."""
        return self.request.project.study(benchmark, self.request.catalogue, parse_study_spec, self.trees, confidence)

    def reproduce(self, test: ReproducerTable, side: str) -> tuple[Results, tuple[Expectation, ...]]:
        """Measure the study of ``test`` in that revision: what it expects, and what was found. Raises RequestError for
        a study that may not be measured, RunError.
        """
        if test.build is not None:
            self._build(test.build, side)
        request, there = self.request, self.trees.directory / self.trees.place(side)
        asked, home = Asked("project file"), request.options.home
        study = read_study(there / normal_name(test.study), request.catalogue, parse_kernel=parse_study_spec)
        if study.expect is None:
            raise RequestError(f"{test.study} expects nothing: [expect] not found", hint=LACKING_HINT)
        require_allowed(study, asked, request.catalogue, kernel_kind)
        programs = [there / normal_name(name) for name in test.schedulers]
        contained = with_schedulers(study, home, asked, request.options.say, programs)
        question = contained.study.model_copy(update={"expect": None})  # It is no part of the question.
        results, _ = self._measured(question, fresh=request.fresh, failed_too=True)
        return results, expectations(study.expect, results, changed=bool(contained.notes))

    def measure(self, study: Study, benchmark: BenchmarkTable, explained: str = "") -> tuple[Results, str]:
        """What was measured. Where a revision is beyond the limit, it is counted by function of what the revision
        ``explained`` carries out more; if that fails, the second value says why. Raises RunError.
        """
        return self._measured(study, fresh=self.request.fresh or not benchmark.in_guest, explained=explained)

    def _measured(
        self, study: Study, *, fresh: bool, explained: str = "", failed_too: bool = False
    ) -> tuple[Results, str]:
        asked = self.request
        with measured(
            study, asked.catalogue, asked.options, named=asked.named, anew=lambda *_: fresh, quiet=asked.quiet
        ) as found:
            results = found.results()
            if found.run.stopped == "failed" and not failed_too:
                raise found.failure("measuring")
            beyond = any(one.against_limit == "beyond" for one in results.verdicts)
            if explained and beyond and results.clock == "virtual":
                return self._explained(found, explained, results)
        return results, ""

    def _explained(self, found: Measured, side: str, results: Results) -> tuple[Results, str]:
        # With what `side` carries out more, which the report of the run shows from then on. A regression that is proved
        # stays one where that cannot be counted.
        try:
            record(found.run, side, found.store, self.request.catalogue, found.means, fresh=False)
        except AjusteError as failure:
            return results, f"its instructions could not be counted by function: {failure.message}"
        return found.results(), ""
