"""Other values of a workload's parameters, as chosen on a command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.study.overrides import with_parameters
from ajuste.study.schema import Study

Read = Callable[..., Study]


def test_what_is_given_replaces_what_the_study_says(read: Read, catalogue: Catalogue) -> None:
    study = read(('kind = "matrix"', 'kind = "matrix"\nparameters = { size = 50, repetitions = 3 }'))
    assert with_parameters(study, {"size": "60"}, catalogue).workload.parameters == {"size": "60", "repetitions": "3"}


@pytest.mark.parametrize(
    ("change", "parameters", "words"),
    [
        (("", ""), {"sise": "3"}, "did you mean size"),
        (("", ""), {"size": "0"}, "out of range"),
        (
            ('"sched_min_granularity_ns"\nlevels = [750000, 7500000]', '"workload.size"\nlevels = [1, 2]'),
            None,
            "factor",
        ),
        (('kind = "matrix"', 'command = ["true"]'), {"size": "3"}, "a custom command"),
    ],
)
def test_what_cannot_be_chosen_names_the_option(
    read: Read, catalogue: Catalogue, change: tuple[str, str], parameters: dict[str, str] | None, words: str
) -> None:
    study = read(change)
    with pytest.raises(RequestError, match=words) as caught:
        with_parameters(study, parameters or {"size": "3"}, catalogue)
    assert "--parameter " in str(caught.value.place)
