"""Measuring a study for a command: progress while it runs, then results and report; for ``run`` and ``compare``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from ajuste.analysis.condition import check, expectations, renamed
from ajuste.catalogue.loader import Catalogue
from ajuste.cli.choice import built_for
from ajuste.cli.showing import Showing
from ajuste.machine.files import require_no_foreign_link, write_text
from ajuste.model.error import Place, RequestError
from ajuste.model.kernel import KernelImage
from ajuste.model.results import Results
from ajuste.model.verdict import FailCondition, Verdict
from ajuste.model.wording import count_of, percent, visible_line
from ajuste.run.experiment import Anew, measured
from ajuste.run.testbed import RunOptions, rebooting_testbed
from ajuste.study.command_line.conditions import OPTION
from ajuste.study.overrides import with_kernels
from ajuste.study.schema import ExpectTable, Study

if TYPE_CHECKING:
    from ajuste.report.expectations import Form

PROVED: Final = 3
"""The exit code where harm is proved, a guard was broken, or an expectation was not met."""

_MOST_NAMED: Final = 3


def exit_code_of(conditions: Sequence[FailCondition], results: Results, *, as_json: bool) -> int:
    """Return 3 if one of ``conditions`` came true, 0 otherwise, and print a line for each at the end of the output.

    The lines go to standard error where standard output is one JSON document.
    """
    outcomes = check(conditions, results)
    code = PROVED if any(outcome.proving for outcome in outcomes) else 0
    for outcome in outcomes:
        limit = outcome.condition.limit
        beyond = "" if limit is None else f" by more than {percent(limit)}"
        if outcome.proving:
            words = f"{_named(outcome.proving)}, proved to worsen{beyond}; exit code {PROVED}"
        elif outcome.open:
            words = f"undecided for {_named(outcome.open)}; exit code 0"
        else:
            words = f"nothing worsens{beyond}; exit code 0"
        typer.echo(visible_line(f"{OPTION} {outcome.condition.text}: {words}"), err=as_json)
    sys.stdout.flush()
    return code


def _named(verdicts: Sequence[Verdict]) -> str:
    words = [
        f"{verdict.configuration} on {verdict.metric} ({_interval(verdict)})" for verdict in verdicts[:_MOST_NAMED]
    ]
    more = [f"{len(verdicts) - _MOST_NAMED} more"] if len(verdicts) > _MOST_NAMED else []
    return ", ".join((*words, *more))


def _interval(verdict: Verdict) -> str:
    return "no interval yet" if verdict.low is None and verdict.high is None else verdict.interval


@dataclass(frozen=True)
class Expected:
    """The expectations of a study, and the files for their outcomes as ``tests``.

    The digest is not compared if options ``changed`` the study; ``notes`` are further reasons.
    """

    study: str
    table: ExpectTable
    tests: Mapping[Form, Path]
    changed: bool
    notes: tuple[str, ...] = ()

    def on(self, names: Mapping[str, str], images: Mapping[str, KernelImage]) -> Expected:
        """Return these expectations with the ``names`` of kernels that were built, checked against their ``images``."""
        built = {spec: images[spec] for spec in names.values() if spec in images}
        others = [spec for spec, image in built.items() if image.sha256 not in self.table.kernels]
        notes = tuple(f"{spec} was built to another kernel, as by another compiler" for spec in others)
        return replace(self, table=renamed(self.table, names), notes=self.notes + (notes if self.table.kernels else ()))

    def exit_code(self, results: Results, *, as_json: bool) -> int:
        """Return 3 if an expectation is not met, 0 otherwise; print a line for each, and how many are met."""
        outcomes = expectations(self.table, results, changed=self.changed or bool(self.notes))
        if self.table.digest:
            for note in self.notes:
                typer.echo(visible_line(f"digest not compared: {note}"), err=as_json)
        if self.tests:
            from ajuste.report.expectations import as_tests  # few runs are tests

            for form, path in self.tests.items():
                write_text(path, as_tests(form, self.study, outcomes))
        broken = [outcome for outcome in outcomes if not outcome.holds]
        for outcome in broken:
            typer.echo(visible_line(f"expected {outcome.what}; found {outcome.actual}"), err=as_json)
        code = PROVED if broken else 0
        held = f"{len(outcomes) - len(broken)} of {count_of(len(outcomes), 'expectation')} met; exit code {code}"
        typer.echo(held, err=as_json)
        sys.stdout.flush()
        return code


def check_report(path: Path | None, option: str = "--report") -> None:
    """Raise RequestError unless a report can be written to the file of ``option``."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise RequestError(f"{option} {path}: expected a file in an existing directory")
    if path is not None:
        require_no_foreign_link(path.parent)


def with_reboots(run_options: RunOptions, loader: str | None, *, reboots: bool) -> RunOptions:
    """Return ``run_options`` with ``--reboots`` and ``--loader``. Raises RequestError where they conflict."""
    if loader is not None:
        loaders = rebooting_testbed(run_options).loaders
        if loader not in loaders:
            raise RequestError(f"expected {', '.join(loaders)}", place=Place(f"--loader {loader}"))
        if not reboots:
            raise RequestError("requires --reboots", place=Place(f"--loader {loader}"))
    if reboots and run_options.cluster is not None:
        raise RequestError("conflicts with --cluster", place=Place("--reboots"))
    return replace(run_options, reboots_allowed=reboots, loader=loader or "")


def measure(
    study: Study,
    catalogue: Catalogue,
    showing: Showing,
    *,
    named: str,
    run_options: RunOptions,
    anew: Anew,
    name_chosen: bool = False,
    fail_on: Sequence[FailCondition] = (),
    expected: Expected | None = None,
) -> int:
    """Carry out ``study``, show its results, and return the exit code.

    ``anew`` and ``name_chosen`` are those of ``measured``. The exit code is 3 where a condition of ``fail_on`` came
    true or ``expected`` was not met.

    Raises:
        RunError: The study failed. Its results, if there are any, are shown before.
    """
    check_report(showing.report)
    carry_out = partial(
        _carry_out, study, catalogue, showing, named=named, name_chosen=name_chosen, fail_on=fail_on, expected=expected
    )
    if study.across_boots and run_options.reboots_allowed:
        return rebooting_testbed(run_options).carry_out(study, catalogue, anew, carry_out)
    return carry_out(run_options, anew)


def _carry_out(
    study: Study,
    catalogue: Catalogue,
    showing: Showing,
    run_options: RunOptions,
    anew: Anew,
    *,
    named: str,
    name_chosen: bool,
    fail_on: Sequence[FailCondition],
    expected: Expected | None,
) -> int:
    names = built_for(study, catalogue, run_options, quiet=showing.silent)
    study = with_kernels(study, names)
    with measured(
        study, catalogue, run_options, named=named, anew=anew, quiet=showing.quiet, name_chosen=name_chosen
    ) as measurement:
        done, results = measurement.run, measurement.results()
    failed = done.stopped == "failed"
    if showing.as_json or results.answer or not failed:
        showing.show(results, again=done.created if measurement.again else "")
    expected = expected and expected.on(names, measurement.experiment.images)
    if failed and expected:
        typer.echo(visible_line(f"the study failed: {done.stopped_because}"), err=True)
    elif failed:
        raise measurement.failure()
    code = exit_code_of(fail_on, results, as_json=showing.as_json) if fail_on else 0
    if results.facets.get("canary", {}).get("stopped"):
        code = PROVED
    return max(code, expected.exit_code(results, as_json=showing.as_json)) if expected else code
