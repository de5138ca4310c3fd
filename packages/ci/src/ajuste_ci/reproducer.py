"""A reproducer: the study of a run with its expected results, for others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ajuste.analysis.condition import renamed
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of
from ajuste.study.overrides import with_kernels
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import ExpectedFigure, ExpectTable, Study
from ajuste_share.shared_study import contained_kernel, patches_of

if TYPE_CHECKING:
    from ajuste.store.store import Run

_TO_FIX: Final = frozenset({"worsens", "differs"})


def reproducer(
    run: Run, results: Results, home: Home, within: float | None = None, *, fixed: bool = False
) -> tuple[Study, tuple[str, ...]]:
    """Return the study of ``run`` on its exact kernels, with their patches and the expected results, and sentences on
    what it cannot expect or contain.

    ``within`` is the allowed deviation of deciding metrics' means, as a share. With ``fixed`` the study expects what a
    fix brings instead: no failed trial, and of what worsens or differs at most half of the difference. Raises
    RequestError if other machines cannot measure it, or if there is nothing to fix.
    """
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    study = resolved.study
    if study.target.on_host:
        raise RequestError(f"run {run.id} measured this machine, which others do not have; expected a run of guests")
    if not run.stopped:
        raise RequestError(f"run {run.id} is not finished", hint="finish it with its own command")
    figures = tuple(
        _half_of_difference(results, verdict)
        if fixed and verdict.verdict in _TO_FIX
        else ExpectedFigure(
            metric=verdict.metric,
            configuration=verdict.configuration,
            verdict=(verdict.verdict,),
            **_limits(results, verdict, within),
        )
        for verdict in results.verdicts
        if verdict.deciding
    )
    if (
        fixed
        and not results.tally.failed
        and not any(verdict.verdict in _TO_FIX for verdict in results.verdicts if verdict.deciding)
    ):
        raise RequestError(
            f"run {run.id} has nothing to fix: no trial failed, and nothing worsens or differs",
            hint="omit --fixed to expect what came out",
        )
    varied = {spec for factor in study.factors for spec in factor.kernels}
    parts = {spec: contained_kernel(spec, run, home) for spec in study.kernels}
    names = {spec: part.spec for spec, part in parts.items()}
    inexact = next((spec for spec in varied if not parts[spec].exact), None)
    if inexact is not None:
        raise RequestError(
            f"run {run.id} compares {inexact}, which is not one kernel for ever; expected packages by their release",
            hint="measure with exact kernels, as `ajuste kernel list` names them: --kernel debian:6.1.0-50-amd64,…",
        )
    notes = [note for part in parts.values() for note in part.notes]
    notes += [
        f"{spec} is a level, and is called otherwise where it is built: the digest is not expected"
        for spec in sorted(varied)
        if parts[spec].called not in ("", spec)
    ]
    included = {scheduler.name for scheduler in study.schedulers}
    named = {configuration.scheduler for configuration in resolved.configurations}
    elsewhere = {
        scheduler.name: scheduler
        for part in parts.values()
        for scheduler in part.schedulers
        if scheduler.name in named - included
    }
    lacking = [*elsewhere, *(scheduler.name for scheduler in study.schedulers if scheduler.build is None)]
    notes += [f"{name} is not contained: ajuste run FILE --scheduler DIR/{name}" for name in lacking]
    exact = study.target.clock == "virtual" and all(part.exact for part in parts.values()) and not notes
    if run.stopped == "failed":
        notes.append(f"{count_of(results.tally.failed, 'trial')} failed; the file expects none, and fails until then")
    fixed = fixed or run.stopped == "failed"
    notes += [
        f"{verdict.metric} of {verdict.configuration} is undecided, so the file tests little: measure more blocks first"
        for verdict in results.verdicts
        if verdict.deciding and verdict.verdict == "undecided" and run.stopped != "failed"
    ]
    expect = ExpectTable(
        digest=results.digest if exact and not fixed else "",
        stalls=0 if fixed else results.tally.failed,
        kernels=tuple(dict.fromkeys(part.sha256 for part in parts.values() if part.sha256)),
        ajuste=results.ajuste if exact else "",
        figures=figures,
    )
    # A program that is not built is a file of this machine only.
    own_schedulers = (
        scheduler if scheduler.build is not None else scheduler.model_copy(update={"program": None})
        for scheduler in study.schedulers
    )
    schedulers = [*own_schedulers, *elsewhere.values()]
    patches = patches_of(parts.values())
    contained = {"expect": renamed(expect, names), "patches": patches, "schedulers": tuple(schedulers)}
    return with_kernels(study, names).model_copy(update=contained), tuple(notes)


def _limits(results: Results, verdict: Verdict, within: float | None) -> dict[str, float]:
    configuration = next(entry for entry in results.configurations if entry.name == verdict.configuration)
    if within is None or verdict.metric not in configuration.metrics:
        return {}
    mean = configuration.metrics[verdict.metric].mean
    return {"least": mean - within * abs(mean), "most": mean + within * abs(mean)}


def _half_of_difference(results: Results, verdict: Verdict) -> ExpectedFigure:
    # As in a bisection: what a fix leaves of the difference is smaller than that.
    compared = next(measured for measured in results.configurations if measured.name == verdict.configuration)
    baseline = next(measured for measured in results.configurations if measured.baseline)
    bad, good = (measured.metrics[verdict.metric].mean for measured in (compared, baseline))
    half = math.sqrt(bad * good) if verdict.scale == "ratio" and min(bad, good) > 0 else (bad + good) / 2
    return ExpectedFigure(
        metric=verdict.metric, configuration=verdict.configuration, **{"most" if bad > good else "least": half}
    )
