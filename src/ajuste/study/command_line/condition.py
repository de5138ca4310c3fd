"""``--fail-on worsens[:METRIC][:LIMIT]``: what makes a command of a script fail, read and checked beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError
from ajuste.model.metric import Metric
from ajuste.model.verdict import FailCondition
from ajuste.study.command_line.request import share, wrong
from ajuste.study.measures import deciding_metrics
from ajuste.study.problem import nearest
from ajuste.study.schema import Study

OPTION: Final = "--fail-on"
_WORD: Final = "worsens"
_FORM: Final = "worsens, worsens:METRIC, worsens:LIMIT or worsens:METRIC:LIMIT"
_HINT: Final = f"for example {OPTION} worsens:elapsed:2%"


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
