"""The question of advice: a workload, and studies of it, made as a command line makes them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ajuste.catalogue.loader import Catalogue
from ajuste.design.search.sampler import Search
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.model.wording import visible_line
from ajuste.run.experiment import MeasuredExperiment, measured
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.request import CommandLine, Request
from ajuste.study.command_line.study import AS_IT_IS, adhoc_document
from ajuste.study.read import checked_study
from ajuste.study.schema import Study

NAME: Final = "advise"
_SHORTEST_MINUTES: Final = 0.1


@dataclass
class Clock:
    """The time for the whole advice, in seconds."""

    allowed_s: float
    _began: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        return self.allowed_s - (time.monotonic() - self._began)

    def minutes(self, share: float) -> float:
        """Return a ``share`` of the time that is left, in minutes; never quite nothing, so that a run can begin."""
        return max(_SHORTEST_MINUTES, share * self.left_s / 60)


@dataclass(frozen=True)
class Question:
    """What gets better: the workload and metrics of ``request``, where to measure, and how long it may take.

    ``named`` is the command as typed; ``fresh`` measures again what the store has.
    """

    request: Request
    catalogue: Catalogue
    options: RunOptions
    clock: Clock
    named: str
    fresh: bool = False
    quiet: bool = False
    accept_risk: bool = False

    @property
    def in_guest(self) -> bool:
        return self.request.in_guest

    def study(self, stage: str, factors: Sequence[Mapping[str, Any]], **tables: Mapping[str, Any]) -> Study:
        """Return the study of ``stage`` in which ``factors`` vary, with the fields of ``tables`` instead of those of a
        comparison. Raises RequestError for what is wrong with the request.
        """
        document, origin = self._document
        document = document | {
            "name": f"{document['name']}-{stage}",
            "factor": [*document["factor"], *factors],
            **{name: document[name] | dict(table) for name, table in tables.items()},
        }
        return checked_study(document, origin, self.catalogue, parse_kernel=parse_spec)

    @property
    def _document(self) -> tuple[dict[str, Any], CommandLine]:
        document, origin = adhoc_document(self.request, self.catalogue)
        return document, CommandLine(origin.options, command="ajuste advise")

    @property
    def objective(self) -> str:
        """Return the metric to improve: the first that decides."""
        return str(self._document[0]["analysis"]["metrics"][0])

    @contextmanager
    def measured(
        self, study: Study, search: Search | None = None, *, may_fail: bool = False
    ) -> Iterator[MeasuredExperiment]:
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
            search=search,
        ) as measurement:
            if measurement.run.stopped == "failed" and not may_fail:
                raise measurement.failure(f"the workload of {study.name}")
            yield measurement

    def say(self, text: str) -> None:
        """Print a line about the step that begins, unless quiet."""
        if not self.quiet:
            print(visible_line(text), file=sys.stderr, flush=True)


def setting_factor(setting: str, levels: Sequence[str]) -> dict[str, Any]:
    """Return a factor that leaves ``setting`` as it is, or sets it to one of ``levels``."""
    return {"name": setting, "settings": {AS_IT_IS: {}} | {level: {setting: level} for level in levels}}


def together(name: str, lines: Mapping[str, str]) -> dict[str, Any]:
    """Return a factor with two levels: all as it is, and all settings of ``lines`` together."""
    return {"name": name, "settings": {AS_IT_IS: {}, "advised": dict(lines)}}


def require_one_command(request: Request) -> None:
    """Raise RequestError unless there is one workload to advise on."""
    if len(request.commands) > 1:
        raise RequestError(
            f"found {len(request.commands)} commands; expected one", hint="ajuste compare measures several commands"
        )
