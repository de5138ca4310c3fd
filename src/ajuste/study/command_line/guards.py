"""``--guard``, and the order in which machines of a cluster begin, as they are given on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError, did_you_mean, nearest_names
from ajuste.model.fleet import FleetPlan
from ajuste.model.live import Guard, GuardSign
from ajuste.model.metric import Metric
from ajuste.outputs.base import ParseError, amount
from ajuste.study.command_line.request import share, wrong
from ajuste.study.measures import deciding_metrics, described_metrics
from ajuste.study.schema import Study

_LIMIT: Final = re.compile(r"([a-z0-9-]+)\s*(<=|>=|<|>)\s*(\S.*)")
_RELATIVE: Final = re.compile(r"([a-z0-9-]+)\s+not\s+worse\s+than\s+(\S.*)")
_ALL: Final = "all"
_STAGES: Final = "numbers of machines that rise, the last of which may be all"


def read_guard(text: str, known: Mapping[str, Metric], hint: str, otherwise: str) -> Guard:
    """Return a guard of one of the ``known`` metrics. Raises RequestError with ``hint``, for another metric with
    ``otherwise``.
    """
    relative, limit = _RELATIVE.fullmatch(text.strip()), _LIMIT.fullmatch(text.strip())
    match = relative or limit
    if match is None:
        raise wrong("--guard", repr(text), "'METRIC < LIMIT' or 'METRIC not worse than SHARE'", hint)
    metric = known.get(match[1])
    if metric is None:
        raise RequestError(
            f"metric {match[1]} is not read; expected one of {', '.join(known)}",
            hint=did_you_mean(nearest_names(match[1], known)) or otherwise.format(match[1]),
            place=Place(f"--guard {text!r}"),
        )
    if relative:
        if metric.direction == "none":
            raise wrong("--guard", repr(text), f"a direction of {metric.name}: lower or higher", hint)
        return Guard(text=text, metric=metric.name, sign=None, limit=share("--guard", match[2]))
    try:
        value = amount(match[3], metric.unit, f"the limit of --guard {text!r}")
    except ParseError as failure:
        raise RequestError(failure.message, hint=hint, place=Place(f"--guard {text!r}")) from None
    return Guard(text=text, metric=metric.name, sign=cast("GuardSign", match[2]), limit=value)


def fleet_plan(
    canary: str | None, each: int | None, guards: Sequence[str], study: Study, catalogue: Catalogue, *, on_cluster: bool
) -> FleetPlan | None:
    """Return the order in which machines of a cluster measure ``study``; None if nothing is given. Raises
    RequestError.
    """
    given = {"--canary": canary is not None, "--machine-each": each is not None, "--guard": bool(guards)}
    option = next((name for name, is_given in given.items() if is_given), None)
    if option is None:
        return None
    if not on_cluster or not study.target.on_host:
        raise RequestError(
            f"{option} requires --cluster, and machines that measure as they are",
            hint="start `ajuste cluster worker --bench` on each machine: `ajuste help several-machines`",
        )
    if study.design.judges_effects or study.allocation in ("refine", "best"):
        raise RequestError(f"{option} requires a study that compares each configuration with the baseline")
    metrics = (*deciding_metrics(study, catalogue), *described_metrics(study, catalogue))
    known = {metric.name: metric for metric in metrics if metric.quantile is None}
    return FleetPlan(
        stages=(None,) if canary is None else _stages(canary),
        each=each,
        guards=tuple(
            read_guard(text, known, "for example --guard 'elapsed < 2s'", "name a metric of the study")
            for text in guards
        ),
        cautious=canary is not None,
    )


def _stages(text: str) -> tuple[int | None, ...]:
    words = [word.strip() for word in text.split(",")]
    numbers = words[:-1] if words[-1] == _ALL else words
    if not all(number.isdecimal() and len(number) < 8 for number in numbers):
        raise wrong("--canary", text, _STAGES, "for example --canary 1,5,all")
    counts = [int(number) for number in numbers]
    if any(later <= earlier for earlier, later in zip([0, *counts], counts, strict=False)):
        raise wrong("--canary", text, _STAGES, "for example --canary 1,5,all")
    return (*counts, *([None] if words[-1] == _ALL else []))
