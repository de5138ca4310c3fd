"""The gate: each benchmark of a project in two revisions, side by side, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import parse_study_spec
from ajuste.machine.home import Home
from ajuste.model.cost import CostRow, function_words
from ajuste.model.error import AjusteError, RunError
from ajuste.model.gate import OF_LIMIT, GateFigure, GateResult, GateRevision, GateWord, GrownCall, GrownFunction, worst
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.run.experiment import conduct, prepare, progress_of, record
from ajuste.run.gate.checkout import Checkouts, ProjectRepository, checked_out
from ajuste.run.outcome import results_of
from ajuste.run.testbed import RunOptions
from ajuste.store.store import Run, Store
from ajuste.study.project import SIDES, BenchmarkTable, Project, Trees, missing
from ajuste.study.schema import Study

MOST_FUNCTIONS: Final = 3
"""So many are named as the cause of a regression."""

LEAST_PART: Final = 0.05
"""What adds less than this part of what the first function adds is not worth a word."""

Failed = Callable[[BenchmarkTable, AjusteError], None]
"""Is told of a benchmark that could not be measured."""


@dataclass(frozen=True)
class GateRequest:
    """The ``benchmarks`` of ``project`` in two revisions of a repository; ``project`` is below its top.

    What the store has of the very same trials under the virtual clock is taken, unless it is to be ``fresh``. By a
    clock of the world nothing is: both are measured beside each other.
    """

    project: Project
    benchmarks: tuple[BenchmarkTable, ...]
    repository: ProjectRepository
    base: GateRevision
    head: GateRevision
    fresh: bool = False

    @property
    def place(self) -> PurePosixPath:
        """Where the project is in the repository."""
        directory = self.project.source.file.absolute().parent.resolve()
        return PurePosixPath(directory.relative_to(self.repository.top.resolve()))


@dataclass
class RevisionGate:
    """Carries out a request. ``named`` is the command as it was typed; ``quiet`` shows no progress."""

    request: GateRequest
    catalogue: Catalogue
    means: RunOptions
    named: str
    failed: Failed
    quiet: bool = False
    _built: dict[tuple[str, tuple[str, ...]], AjusteError | None] = field(default_factory=dict, init=False)

    def check(self) -> None:
        """Raises RequestError for what is wrong with any of the benchmarks. Nothing is checked out or measured."""
        for benchmark in self.request.benchmarks:
            self.request.project.study(benchmark, self.catalogue, parse_study_spec)

    def carry_out(self) -> GateResult:
        """One benchmark after the other; what cannot be measured does not keep the others from it."""
        request = self.request
        figures: list[GateFigure] = []
        with checked_out(request.repository, request.base, request.head, self._home) as checkouts:
            trees = Trees(checkouts.directory, request.place, (request.base.label, request.head.label))
            for benchmark in request.benchmarks:
                try:
                    figures += self._figures(benchmark, checkouts, trees)
                except AjusteError as failure:
                    self.failed(benchmark, failure)
                    figures.append(self._unmeasured(benchmark, failure))
        return GateResult(
            result=worst(figures),
            file=str(request.place / request.project.source.file.name),
            base=request.base,
            head=request.head,
            benchmarks=tuple(figures),
        )

    @property
    def _home(self) -> Home:
        return self.means.home

    def _figures(self, benchmark: BenchmarkTable, checkouts: Checkouts, trees: Trees) -> Sequence[GateFigure]:
        if benchmark.build is not None:
            for side, label in zip(SIDES, trees.labels, strict=True):
                self._build(benchmark.build, side, label, checkouts)
        if lacking := missing(benchmark, trees):
            raise RunError(lacking, hint="check the fields command, build and files of the benchmark")
        study = self.request.project.study(benchmark, self.catalogue, parse_study_spec, trees)
        results, uncounted = self._measured(study, benchmark)
        return list(self._judged(results, benchmark, uncounted))

    def _build(self, command: tuple[str, ...], side: str, label: str, checkouts: Checkouts) -> None:
        """Once for all benchmarks that have the same command."""
        if (side, command) not in self._built:
            self.means.say(f"building {label}")
            self._built[side, command] = None
            try:
                checkouts.build(command, side, Path(self.request.place), label)
            except AjusteError as failure:
                self._built[side, command] = failure
        if (failed := self._built[side, command]) is not None:
            raise failed

    def _measured(self, study: Study, benchmark: BenchmarkTable) -> tuple[Results, str]:
        """What was measured; and why it is not known which functions made a regression, if that is so."""
        with progress_of(study, self.catalogue, quiet=self.quiet) as progress:
            means = replace(self.means, say=progress.say)
            experiment = prepare(study, self.catalogue, means)
            with Store(means.home.store_url) as store:
                fresh = self.request.fresh or not benchmark.in_guest
                run = conduct(experiment, store, progress, means, named=self.named, fresh=fresh)
                results = results_of(run, store)
                if run.stopped == "failed":
                    raise RunError(
                        f"measuring failed: {run.stopped_because}", hint=f"ajuste report {run.id} --trials shows each"
                    )
                if results.clock == "virtual" and any(one.against_limit == "beyond" for one in results.verdicts):
                    return self._explained(run, results, store, means)
        return results, ""

    def _explained(self, run: Run, results: Results, store: Store, means: RunOptions) -> tuple[Results, str]:
        """With what the head carries out more, which the report of the run shows from then on. A regression that is
        proved stays one where that cannot be counted.
        """
        try:
            record(run, SIDES[1], store, self.catalogue, means, fresh=False)
        except AjusteError as failure:
            return results, f"its instructions could not be counted by function: {failure.message}"
        return results_of(store.find_run(run.id), store), ""

    def _judged(self, results: Results, benchmark: BenchmarkTable, uncounted: str) -> Iterator[GateFigure]:
        means = {one.name: one.metrics for one in results.configurations}
        for verdict in results.verdicts:
            if not verdict.deciding:
                continue
            base, head = (means[side].get(verdict.metric) for side in SIDES)
            word = OF_LIMIT[verdict.against_limit or "undecided"]
            reasons: dict[GateWord, str] = {"undecided": _reason(verdict, results), "regression": uncounted}
            yield GateFigure(
                **{name: getattr(verdict, name) for name in _SHARED},
                name=benchmark.name,
                verdict=word,
                base=base.mean if base else None,
                head=head.mean if head else None,
                limit=benchmark.limit,
                clock=results.clock,
                run=results.run,
                digest=results.digest,
                line=self.request.project.line(benchmark),
                **(grown(results) if word == "regression" else {}),
                reason=reasons.get(word, ""),
            )

    def _unmeasured(self, benchmark: BenchmarkTable, failure: AjusteError) -> GateFigure:
        return GateFigure(
            name=benchmark.name,
            metric=", ".join(text.partition(",")[0] for text in benchmark.metric),
            verdict="failed",
            limit=benchmark.limit,
            line=self.request.project.line(benchmark),
            reason=failure.message,
        )


_SHARED: Final = ("metric", "unit", "direction", "scale", "estimate", "low", "high", "level", "blocks")


def grown(results: Results) -> dict[str, Any]:
    """The functions that carry out more in the head and the system calls that it makes more often, what adds most
    first, if that was counted.
    """
    costs = next((one.costs for one in results.explanations if one.configuration == SIDES[1]), None)
    if costs is None:
        return {}
    whole = max(0, costs.own - costs.baseline)
    rows = [row for row in costs.functions if row.difference > 0]
    first = rows[0].difference if rows else 0
    calls = [row for row in costs.entries if row.own_calls > row.baseline_calls and row.difference > 0]
    calls = [row for row in calls if not row.name.endswith(")")]  # exceptions and interrupts
    return {
        "functions": tuple(
            GrownFunction(name=_name(row), more=row.difference, of=whole)
            for row in rows[:MOST_FUNCTIONS]
            if row.difference >= LEAST_PART * first
        ),
        "calls": tuple(
            GrownCall(name=row.name, base=row.baseline_calls, head=row.own_calls)
            for row in sorted(calls, key=lambda row: -row.difference)[:MOST_FUNCTIONS]
            if row.difference >= LEAST_PART * whole
        ),
    }


def _name(row: CostRow) -> str:
    """A stub of the PLT jumps into a library, whose function is counted with it."""
    return "plt (functions of libraries)" if row.name == "plt" else function_words(row.name, row.file)


def _reason(verdict: Verdict, results: Results) -> str:
    """Why a figure is undecided, and what would help."""
    more = f"; about {verdict.more_blocks:,} more blocks would decide" if verdict.more_blocks else ""
    return f"{results.stopped_because}{more}"
