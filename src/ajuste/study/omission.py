"""The same study without some levels of its factors, as chosen on a command line."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.model.error import Place, RequestError
from ajuste.study.problem import nearest
from ajuste.study.schema import FactorTable, Study


def without_levels(study: Study, given: Sequence[str]) -> Study:
    """``study`` without the levels ``given``, each ``FACTOR=LEVEL`` as the study has them.

    Raises RequestError for what is no level of the study, and for the baseline.
    """
    for text in given:
        study = _without(study, text)
    return study


def _without(study: Study, text: str) -> Study:
    place = Place(f"--without {text}")
    name, equals, level = (part.strip() for part in text.partition("="))
    if not (equals and name and level):
        raise RequestError("expected FACTOR=LEVEL, such as nice=10", place=place)
    names = [factor.name for factor in study.factors]
    if name not in names:
        near = nearest(name, names) or f"; it has {', '.join(names) or 'none'}"
        raise RequestError(f"{study.name} has no factor {name!r}{near}", place=place)
    index = names.index(name)
    factor = study.factors[index]
    if level not in factor.levels:
        raise RequestError(f"{name} has no level {level!r}; it has {'; '.join(factor.levels)}", place=place)
    if level == factor.baseline_level:
        raise RequestError("it is the baseline, which the others are compared with", place=place)
    factors = (*study.factors[:index], _less(factor, level), *study.factors[index + 1 :])
    return study.model_copy(update={"factors": factors})


def _less(factor: FactorTable, level: str) -> FactorTable:
    return factor.model_copy(
        update={
            "levels": tuple(other for other in factor.levels if other != level),
            "settings": {name: own for name, own in factor.settings.items() if name != level},
            "prove": {name: claims for name, claims in factor.prove.items() if name != level},
        }
    )
