"""The question of advice: a workload, and studies of it, made as a command line makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import typer

from ajuste.catalogue.loader import Catalogue
from ajuste.design.goal import constrained_metric
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.search import Search
from ajuste.model.verdict import Verdict
from ajuste.model.wording import visible_line
from ajuste.run.experiment import MeasuredExperiment, measured
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.request import CommandLine, Request
from ajuste.study.command_line.study import AS_IT_IS, adhoc_document
from ajuste.study.read import checked_study
from ajuste.study.schema import Study
from ajuste_advise.budget import Budget
from ajuste_search.tuning.goal import Constraint, resolve_goal
from ajuste_stats.terms import Direction

NAME: Final = "advise"


@dataclass(frozen=True)
class Question:
    """The question what makes a workload better: workload and metrics are those of ``request``.

    ``named`` is the command as typed; ``fresh`` measures again what the store has. ``direction`` is the better one of
    a metric that has none by itself. ``constraints`` must hold of what is advised, as those of a search.
    """

    request: Request
    catalogue: Catalogue
    options: RunOptions
    budget: Budget
    named: str
    fresh: bool = False
    quiet: bool = False
    accept_risk: bool = False
    direction: Direction | None = None
    constraints: tuple[str, ...] = ()

    @property
    def in_guest(self) -> bool:
        return self.request.in_guest

    def study(self, stage: str, factors: Sequence[Mapping[str, Any]], **tables: Mapping[str, Any]) -> Study:
        """Return the study of ``stage`` in which ``factors`` vary, with the fields of ``tables`` instead of those of a
        comparison. Raises RequestError for what is wrong with the request.
        """
        document, origin = self._document
        if document["factor"]:
            name = document["factor"][0]["name"]
            raise RequestError(
                f"{name} has several levels; expected one: advice is on a workload as it is",
                hint="ajuste compare compares several kernels or file systems",
            )
        document = document | {
            "name": f"{document['name']}-{stage}",
            "factor": list(factors),
            **{name: document[name] | dict(table) for name, table in tables.items()},
        }
        return checked_study(document, origin, self.catalogue, parse_kernel=parse_spec)

    @cached_property
    def _document(self) -> tuple[dict[str, Any], CommandLine]:
        document, origin = adhoc_document(self.request, self.catalogue)
        return document, CommandLine(origin.options, command="ajuste advise")

    @property
    def objective(self) -> str:
        """Return the metric to improve: the first that decides."""
        return self.deciding[0]

    @property
    def deciding(self) -> tuple[str, ...]:
        """Return the metrics that were named, or those of the workload."""
        return tuple(self._document[0]["analysis"]["metrics"])

    @property
    def objective_words(self) -> str:
        """Return the objective as a search takes it, with the direction that was given."""
        return self.objective if self.direction is None else f"{self.objective}={self.direction}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics that decide what is advised: the objective, and those of the constraints."""
        return tuple(dict.fromkeys((self.objective, *map(constrained_metric, self.constraints))))

    @property
    def goal(self) -> Search:
        """Return objective and constraints, as a search has them."""
        return Search(objectives=(self.objective_words,), constraints=self.constraints)

    def limits(self, measurement: MeasuredExperiment) -> tuple[Constraint, ...]:
        """Return the constraints in terms of the metrics that were measured."""
        return resolve_goal(self.goal, measurement.experiment.resolved.deciding).limits

    def keeps(self, limits: Sequence[Constraint], results: Results, configuration: str) -> bool:
        """Return whether a configuration keeps the relative ``limits``, by all that is known of it so far."""
        estimates = {
            verdict.metric: verdict.estimate
            for verdict in results.verdicts
            if verdict.configuration == configuration and verdict.scale == "ratio"
        }
        return all(
            limit.excess(estimate, 1.0) <= 0
            for limit in limits
            if limit.relative and (estimate := estimates.get(limit.metric.name)) is not None
        )

    @property
    def smallest_effect(self) -> float:
        """Return the smallest effect that matters, as a share of the baseline."""
        return float(self._document[0]["analysis"]["smallest_effect"])

    @contextmanager
    def measured(self, study: Study, *, may_fail: bool = False) -> Iterator[MeasuredExperiment]:
        """Carry out ``study``, or show the run of it that the store has. Raises RunError where it failed, unless it
        ``may_fail``.
        """
        with measured(
            study,
            self.catalogue,
            self.options,
            named=self.named,
            anew=lambda *_: self.fresh,
            quiet=self.quiet,
        ) as measurement:
            if measurement.run.stopped == "failed" and not may_fail:
                raise measurement.failure(f"the workload of {study.name}")
            yield measurement

    def directed(self, verdict: Verdict) -> Verdict:
        """Return a verdict on the objective, with *improves* or *worsens* by the question's own direction."""
        if self.direction is None or verdict.metric != self.objective or verdict.direction != "none":
            return verdict
        word = verdict.verdict
        if word == "differs" and verdict.estimate is not None:
            falls = verdict.estimate < (1.0 if verdict.scale == "ratio" else 0.0)
            word = "improves" if falls == (self.direction == "lower") else "worsens"
        reason = verdict.reason.partition(";")[0]
        return verdict.model_copy(update={"direction": self.direction, "verdict": word, "reason": reason})

    def say(self, text: str) -> None:
        """Print a line about the step that begins, unless quiet."""
        if not self.quiet:
            typer.echo(visible_line(text), err=True)


def setting_factor(setting: str, levels: Sequence[str]) -> dict[str, Any]:
    """Return a factor that leaves ``setting`` as it is, or sets it to one of ``levels``."""
    return {"name": setting, "settings": {AS_IT_IS: {}} | {level: {setting: level} for level in levels}}


def together(name: str, lines: Mapping[str, str]) -> dict[str, Any]:
    """Return a factor with two levels: all as it is, and all settings of ``lines`` together."""
    return {"name": name, "settings": {AS_IT_IS: {}, " and ".join(map(named_level, lines.items())): dict(lines)}}


def one_factor(name: str, levels: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return a factor that leaves all as it is, or sets one setting to one level."""
    settings = {named_level(pair): {pair[0]: pair[1]} for pair in levels}
    return {"name": name, "settings": {AS_IT_IS: {}} | settings}


def named_level(pair: tuple[str, str]) -> str:
    """Return a setting with its level as they are typed: ``vm.swappiness=10``."""
    return "=".join(pair)


def require_one_command(request: Request) -> None:
    """Raise RequestError unless there is one workload to advise on."""
    if not any(request.commands):
        raise RequestError(
            "the command to make better is missing", hint="ajuste advise [OPTIONS] -- COMMAND [ARGUMENT…]"
        )
    if len(request.commands) > 1:
        raise RequestError(
            f"found {len(request.commands)} commands; expected one", hint="ajuste compare measures several commands"
        )
