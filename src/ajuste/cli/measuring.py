"""Measuring a study for a command: progress while it runs, then results and report; for ``run`` and ``compare``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from ajuste.analysis.condition import Checked, check, expectations, renamed
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
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.condition import OPTION
from ajuste.study.overrides import with_kernels
from ajuste.study.schema import ExpectTable, Study

if TYPE_CHECKING:
    from ajuste.report.gate import Form

PROVED: Final = 3
"""It is proved that something worsens, or a guard was broken."""

_MOST_NAMED: Final = 3


def exit_code_of(conditions: Sequence[FailCondition], results: Results, *, as_json: bool) -> int:
    """3 where one of ``conditions`` came true, 0 otherwise; a line for each says which, the last of the output. It goes
    to standard error where standard output has one document.
    """
    found = check(conditions, results)
    code = PROVED if any(one.proving for one in found) else 0
    for one in found:
        own = PROVED if one.proving else 0
        typer.echo(visible_line(f"{OPTION} {one.condition.text}: {_said(one)}; exit code {own}"), err=as_json)
    sys.stdout.flush()
    return code


def _said(one: Checked) -> str:
    if one.proving:
        return f"{_named(one.proving)}, proved to worsen{_beyond(one.condition)}"
    if one.open:
        return f"undecided for {_named(one.open)}"
    return f"nothing worsens{_beyond(one.condition)}"


def _beyond(condition: FailCondition) -> str:
    return "" if condition.limit is None else f" by more than {percent(condition.limit)}"


def _named(verdicts: Sequence[Verdict]) -> str:
    said = [f"{one.configuration} on {one.metric} ({_interval(one)})" for one in verdicts[:_MOST_NAMED]]
    more = [f"{len(verdicts) - _MOST_NAMED} more"] if len(verdicts) > _MOST_NAMED else []
    return ", ".join((*said, *more))


def _interval(verdict: Verdict) -> str:
    return "no interval yet" if verdict.low is None and verdict.high is None else verdict.interval


@dataclass(frozen=True)
class Expected:
    """What a study expects, and the files that get the outcome as ``tests``. It was ``changed`` on the command line, or
    not; ``notes`` say what else keeps its digest from being compared.
    """

    study: str
    table: ExpectTable
    tests: Mapping[Form, Path]
    changed: bool
    notes: tuple[str, ...] = ()

    def on(self, names: Mapping[str, str], images: Mapping[str, KernelImage]) -> Expected:
        """The same with kernels by ``names``, of those that were built, and with what their ``images`` say."""
        built = {spec: images[spec] for spec in names.values() if spec in images}
        others = [spec for spec, image in built.items() if image.sha256 not in self.table.kernels]
        notes = tuple(f"{spec} was built to another kernel, as by another compiler" for spec in others)
        return replace(self, table=renamed(self.table, names), notes=self.notes + (notes if self.table.kernels else ()))

    def exit_code(self, results: Results, *, as_json: bool) -> int:
        """3 where one thing came out otherwise, 0 if none; a line for each of those, and how many hold."""
        outcomes = expectations(self.table, results, changed=self.changed or bool(self.notes))
        if self.table.digest:
            for note in self.notes:
                typer.echo(visible_line(f"digest not compared: {note}"), err=as_json)
        if self.tests:
            from ajuste.report.gate import as_tests  # few runs are tests

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
    """Whether a report can be written to the file of ``option``. Raises RequestError."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise RequestError(f"{option} {path}: expected a file in an existing directory")
    if path is not None:
        require_no_foreign_link(path.parent)


def means_of_boots(means: RunOptions, loader: str | None, *, reboots: bool) -> RunOptions:
    """``means`` with what was said of reboots. Raises RequestError."""
    if loader is not None:
        from ajuste.machine.boot.session import LOADER_NAMES  # few experiments name one

        if loader not in LOADER_NAMES:
            raise RequestError(f"expected {', '.join(LOADER_NAMES)}", place=Place(f"--loader {loader}"))
        if not reboots:
            raise RequestError("requires --reboots", place=Place(f"--loader {loader}"))
    if reboots and means.cluster is not None:
        raise RequestError("conflicts with --cluster", place=Place("--reboots"))
    return replace(means, reboots_allowed=reboots, loader=loader or "")


def measure(
    study: Study,
    catalogue: Catalogue,
    showing: Showing,
    *,
    named: str,
    means: RunOptions,
    anew: Anew,
    name_chosen: bool = False,
    fail_on: Sequence[FailCondition] = (),
    expected: Expected | None = None,
) -> int:
    """Carry out ``study`` and show what came out; returns the exit code.

    ``anew`` and ``name_chosen`` are those of ``measured``; ``fail_on`` and ``expected`` say what the exit code is 3
    for. Raises RunError for a study that failed, after its results were shown, if there are any.
    """
    check_report(showing.report)
    shown = partial(
        _shown, study, catalogue, showing, named=named, name_chosen=name_chosen, fail_on=fail_on, expected=expected
    )
    if study.across_boots and means.reboots_allowed:
        from ajuste.cli.reboots import across_boots

        return across_boots(study, catalogue, means, anew, shown)
    return shown(means, anew)


def _shown(
    study: Study,
    catalogue: Catalogue,
    showing: Showing,
    means: RunOptions,
    anew: Anew,
    *,
    named: str,
    name_chosen: bool,
    fail_on: Sequence[FailCondition],
    expected: Expected | None,
) -> int:
    names = built_for(study, catalogue, means, quiet=showing.silent)
    study = with_kernels(study, names)
    with measured(
        study, catalogue, means, named=named, anew=anew, quiet=showing.quiet, name_chosen=name_chosen
    ) as found:
        done, results = found.run, found.results()
    failed = done.stopped == "failed"
    if showing.as_json or results.answer or not failed:
        showing.show(results, again=done.created if found.again else "")
    expected = expected and expected.on(names, found.experiment.images)
    if failed and expected:
        typer.echo(visible_line(f"the study failed: {done.stopped_because}"), err=True)
    elif failed:
        raise found.failure()
    code = exit_code_of(fail_on, results, as_json=showing.as_json) if fail_on else 0
    if results.canary is not None and results.canary.stopped:
        code = PROVED
    return max(code, expected.exit_code(results, as_json=showing.as_json)) if expected else code
