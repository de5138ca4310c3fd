"""Ajuste in notebooks and programs: measure, compare and load runs, with their trials as tables.

``import ajuste`` offers what is public here; it is loaded when it is first used.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from markupsafe import escape

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec, parse_study_spec, specs_to_build
from ajuste.machine.home import home, require_extra
from ajuste.model.error import RequestError
from ajuste.model.measurements import Measurements
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import visible
from ajuste.report.html import write_report
from ajuste.report.results import results_report
from ajuste.run.experiment import measured, unless_going_on
from ajuste.run.outcome import results_of
from ajuste.run.testbed import RunOptions
from ajuste.store.record import KeptRecord
from ajuste.store.store import Run, Store
from ajuste.study.builtin import find_study
from ajuste.study.command_line.option import words_of
from ajuste.study.command_line.request import Request, seconds
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.overrides import relocated, with_parameters, with_time, without_levels
from ajuste.study.read import read_study
from ajuste.study.schema import Study

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Words: TypeAlias = str | Sequence[str]
"""A command: its words, or one text that is split into words as a shell does. No shell runs it."""
Levels: TypeAlias = Sequence[object]


@dataclass(frozen=True)
class MeasuredRun:
    """A run: its answer and verdicts, and its trials as a table. In a notebook it shows itself.

    ``results`` is all that reports are made of, the document that ``--json`` prints. ``measurements`` has all trials
    column by column.
    """

    results: Results
    measurements: Measurements

    @property
    def id(self) -> str:
        """Return the run's id, for ``load`` and ``ajuste report``."""
        return self.results.run

    @property
    def answer(self) -> str:
        """Return the answer to the study's question, in a sentence or two; empty if there is none."""
        return self.results.answer

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdicts, each on one configuration against the baseline and one metric."""
        return self.results.verdicts

    @property
    def digest(self) -> str:
        """SHA-256 of all that was measured: equal if and only if the measurements are."""
        return self.results.digest

    def columns(self) -> dict[str, list[Any]]:
        """Return all trials in the order of the design, by column.

        Columns: run, configuration, a column a factor with the level as it is written, block, position, attempt, seed,
        warm_up, status, reason, and a column a metric in its base unit, None where a trial does not have it. A metric
        that is called like another column has ``metric.`` before it.
        """
        trials, rows = self.measurements, range(len(self.measurements))
        names = [trials.configuration[row] for row in rows]
        levels = {configuration.name: configuration.levels for configuration in self.results.configurations}
        columns: dict[str, list[Any]] = {"run": [self.id] * len(trials), "configuration": names}
        for factor in self.results.factors:
            columns[factor.name] = [levels.get(name, {}).get(factor.name) for name in names]
        columns |= {
            name: getattr(trials, name).tolist() for name in ("block", "position", "attempt", "seed", "warm_up")
        }
        columns |= {"status": [trials.status[row] for row in rows], "reason": [trials.reason[row] for row in rows]}
        for metric, column in trials.metrics.items():
            values = [None if math.isnan(value) else value for value in column.tolist()]
            columns[f"metric.{metric}" if metric in columns else metric] = values
        return columns

    def to_pandas(self) -> pd.DataFrame:
        """Return ``columns`` as a data frame. Raises RequestError without ``ajuste[notebook]``."""
        require_extra("notebook")
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_polars(self) -> pl.DataFrame:
        """Return ``columns`` as a data frame. Raises RequestError without ``ajuste[notebook]``."""
        require_extra("notebook")
        import polars as pl

        return pl.DataFrame(self.columns(), infer_schema_length=None)

    def write_html(self, path: str | Path) -> Path:
        """Write the whole report, one file."""
        file = Path(path)
        write_report(results_report(self.results), file)
        return file

    def __str__(self) -> str:
        return visible(self.answer or self.results.stopped_because)

    def _repr_html_(self) -> str:
        # Return the answer and a table of verdicts for Jupyter and marimo, all of it as text.
        rows = [(verdict.configuration, verdict.metric, verdict.verdict, verdict.effect) for verdict in self.verdicts]
        head = "".join(f"<th scope='col'>{name}</th>" for name in ("Configuration", "Metric", "Verdict", "Effect"))
        body = "".join(f"<tr>{''.join(f'<td>{escape(visible(cell))}</td>' for cell in row)}</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
        about = f"{self.results.study}, run {self.id}, {len(self.measurements)} trials"
        return f"<div><p><b>{escape(str(self))}</b></p>{table}<p><small>{escape(visible(about))}</small></p></div>"


def load(run: str) -> MeasuredRun:
    """Load a run from the store: by its id, or the newest of a study. Raises RequestError."""
    with Store(home().store_url) as store:
        return _loaded(store.find_run(run), store)


def measure(
    study: str | Path,
    *,
    kernel: str | None = None,
    seed: int | None = None,
    target: Literal["vm", "host"] | None = None,
    parameters: Mapping[str, object] | None = None,
    without: Sequence[str] = (),
    max_time: str | None = None,
    fresh: bool = False,
    jobs: int | None = None,
    accept_risk: bool = False,
    quiet: bool = True,
) -> MeasuredRun:
    """Run a built-in study or a study file to its verdict. The options are those of ``ajuste run``.

    Nothing that the store has is measured again, unless ``fresh``. Raises RequestError for what cannot be carried out
    as it is written, RunError where the study failed.
    """
    known = catalogue()
    chosen = read_study(find_study(str(study)), known, parse_kernel=parse_study_spec)
    chosen = without_levels(chosen, without)
    named = ["--kernel", kernel] if kernel is not None else []
    if target is not None:
        if target == "host" and chosen.disk:
            raise RequestError(f"{study} writes to a disk", hint="run it with ajuste run --target host --disk DEVICE")
        chosen = relocated(chosen, target)
    chosen = chosen.with_choices(kernel=None if kernel is None else (kernel,), seed=seed)
    if parameters:
        texts = {name: str(value) for name, value in parameters.items()}
        chosen = with_parameters(chosen, texts, known)
        named += [word for name, value in texts.items() for word in ("--parameter", f"{name}={value}")]
    named += [word for level in without for word in ("--without", level)]
    if max_time is not None:
        chosen = with_time(chosen, seconds("max_time", max_time))
        named += ["--max-time", max_time]
    options = RunOptions(home(), jobs=jobs, accept_risk=accept_risk)
    return _measured(chosen, options, named=shlex.join([str(study), *named]), fresh=fresh, quiet=quiet)


def compare(
    *commands: Words,
    settings: Mapping[str, Levels] | None = None,
    nice: Levels | None = None,
    kernel: Words | None = None,
    background: Sequence[str] = (),
    metrics: Sequence[str] = (),
    blocks: int | str | None = None,
    max_time: str | None = None,
    seed: int | None = None,
    name: str | None = None,
    fresh: bool = False,
    accept_risk: bool = False,
    quiet: bool = True,
) -> MeasuredRun:
    """Measure a command, or compare commands, ``settings`` (levels by tunable) or kernels.

    The options are those of ``ajuste compare``: with a ``kernel`` it measures in a guest, else on this machine, which
    is restored after each trial. Raises RequestError for what cannot be carried out as it is written, RunError where
    the study failed.
    """
    known = catalogue()
    request = Request(
        commands=tuple(tuple(shlex.split(command) if isinstance(command, str) else command) for command in commands),
        set=tuple(f"{tunable}={_levels(levels)}" for tunable, levels in (settings or {}).items()),
        nice=None if nice is None else _levels(nice),
        kernel=kernel if kernel is None or isinstance(kernel, str) else _levels(kernel),
        background=tuple(background),
        metric=tuple(metrics),
        blocks=None if blocks is None else str(blocks),
        max_time=max_time,
        seed=seed,
        name=name,
    )
    study = adhoc_study(request, known, parse_kernel=parse_spec)
    options = RunOptions(home(), accept_risk=accept_risk)
    # The command for a terminal that repeats the run; it also names the run.
    words = [word for command in request.commands for word in ("--", *command)]
    command_line = shlex.join(["ajuste", "compare", *words_of(request), *words])
    return _measured(study, options, named=command_line, fresh=fresh, quiet=quiet, name_chosen=name is not None)


def _levels(levels: Levels) -> str:
    return ",".join(map(str, levels))


def _measured(
    study: Study, options: RunOptions, *, named: str, fresh: bool, quiet: bool, name_chosen: bool = False
) -> MeasuredRun:
    if wanted := specs_to_build(study.kernels):
        raise RequestError(
            f"{next(iter(wanted))} is not built", hint="build it with ajuste kernel build, and name it as mine:NAME"
        )
    anew = unless_going_on(fresh)
    with measured(
        study, catalogue(), options, named=named, anew=anew, quiet=quiet, name_chosen=name_chosen
    ) as measurement:
        if measurement.run.stopped == "failed":
            raise measurement.failure()
        return _loaded(measurement.run, measurement.store)


def _loaded(run: Run, store: Store) -> MeasuredRun:
    return MeasuredRun(results_of(run, store), KeptRecord(run, store).measurements)
