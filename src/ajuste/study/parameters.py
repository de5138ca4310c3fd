"""The same study with other values of its workload's parameters, as chosen on a command line."""

from __future__ import annotations

from collections.abc import Mapping

from ajuste.catalogue.level import check_parameter
from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import Place, RequestError
from ajuste.study.factors import no_parameter
from ajuste.study.schema import Study
from ajuste.study.settings import WORKLOAD_PREFIX, varies


def with_parameters(study: Study, given: Mapping[str, str], catalogue: Catalogue) -> Study:
    """``study`` with the workload's parameters ``given`` instead of its own, on whatever target it has.

    Raises RequestError for what the workload does not have or cannot be, and for what a factor varies.
    """
    kind = catalogue.workloads.get(study.workload.kind or "")
    for name, value in given.items():
        place = Place(f"--parameter {name}={value}")
        if kind is None:
            raise RequestError("the study runs a command of its own, which has no parameters", place=place)
        if name not in kind.parameters:
            raise RequestError(no_parameter(kind, name), place=place)
        if varies(study, WORKLOAD_PREFIX + name):
            raise RequestError(f"{name} is a factor of {study.name}; change its levels in the study", place=place)
        try:
            check_parameter(f"{kind.name}'s {name}", kind.parameters[name], value)
        except RequestError as failure:
            raise RequestError(failure.message, hint=failure.hint, place=place) from None
    workload = study.workload.model_copy(update={"parameters": {**study.workload.parameters, **given}})
    return study.model_copy(update={"workload": workload})
