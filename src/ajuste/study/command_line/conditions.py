"""Conditions on the command line: ``--fail-on``, ``--guard``, and the order in which machines begin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError, did_you_mean, nearest_names
from ajuste.model.fleet import FleetPlan
from ajuste.model.live import Guard, GuardSign
from ajuste.model.metric import Metric
from ajuste.model.verdict import FailCondition
from ajuste.outputs.base import ParseError, amount
from ajuste.study.command_line.request import share, wrong
from ajuste.study.metrics import deciding_metrics, described_metrics
from ajuste.study.problem import nearest
from ajuste.study.schema import Study

OPTION: Final = "--fail-on"
_WORD: Final = "worsens"
_FORM: Final = "worsens, worsens:METRIC, worsens:LIMIT or worsens:METRIC:LIMIT"
_HINT: Final = f"for example {OPTION} worsens:elapsed:2%"

_LIMIT: Final = re.compile(r"([a-z0-9-]+)\s*(<=|>=|<|>)\s*(\S.*)")
_RELATIVE: Final = re.compile(r"([a-z0-9-]+)\s+not\s+worse\s+than\s+(\S.*)")
_ALL: Final = "all"
_STAGES: Final = "numbers of machines that rise, the last of which may be all"


def fail_conditions(texts: Sequence[str], study: Study, catalogue: Catalogue) -> tuple[FailCondition, ...]:
    """Return the conditions that ``texts`` name for ``study``. Raises RequestError for what can never come true."""
    if not texts:
        return ()
    _check_study(study, texts[0])
    deciding = deciding_metrics(study, catalogue)
    return tuple(_condition(text, deciding) for text in texts)


def _check_study(study: Study, text: str) -> None:
    place = Place(f"{OPTION} {text}")
    if study.design.judges_effects:
        what = "effects of factors" if study.design.combine == "screening" else "lines of a profile"
        raise RequestError(
            f"this study judges {what}, not configurations against the baseline; remove the option", place=place
        )
    if all(len(factor.levels) == 1 for factor in study.factors):
        raise RequestError(
            "there is nothing to compare: found one configuration",
            hint="give a second command or a second level",
            place=place,
        )


def _condition(text: str, deciding: Sequence[Metric]) -> FailCondition:
    word, *rest = (part.strip() for part in text.split(":"))
    if word != _WORD or len(rest) > 2 or not all(rest):
        raise wrong(OPTION, text, _FORM, _HINT)
    name = rest.pop(0) if rest and not rest[0][0].isdigit() else None
    if len(rest) > 1:
        raise wrong(OPTION, text, _FORM, _HINT)
    limit = share(f"{OPTION} {text}: limit", rest[0]) if rest else None
    chosen = _chosen(text, name, deciding)
    impossible = [metric for metric in chosen if metric.direction == "higher" and metric.scale == "ratio"]
    if limit is not None and limit >= 1 and impossible:
        raise RequestError(
            f"{impossible[0].name} is positive and better if higher, so it cannot worsen by 100 % or more; expected a "
            "limit below 100%",
            place=Place(f"{OPTION} {text}"),
        )
    return FailCondition(text, tuple(metric.name for metric in chosen), limit)


def _chosen(text: str, name: str | None, deciding: Sequence[Metric]) -> list[Metric]:
    place = Place(f"{OPTION} {text}")
    known = [metric.name for metric in deciding]
    if name is not None and name not in known:
        near = nearest(name, known) or f"; expected one of {', '.join(known)}"
        raise RequestError(
            f'"{name}" is not a deciding metric{near}',
            hint="name it with --metric (in a study file in [analysis] metrics) to get a verdict on it",
            place=place,
        )
    worsening = [metric for metric in deciding if metric.direction != "none" and name in (None, metric.name)]
    if not worsening:
        which = name if name is not None else ", ".join(known)
        raise RequestError(
            f"{which}: no direction is better, so nothing worsens",
            hint="name a metric with a better direction",
            place=place,
        )
    return worsening


# `--guard`, and the order in which machines of a cluster begin, as they are given on the command line.


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
    options = {"--canary": canary is not None, "--machine-each": each is not None, "--guard": bool(guards)}
    option = next((name for name, is_given in options.items() if is_given), None)
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
