"""The precision of a study: in a file, on a command line, and where there is none."""

from __future__ import annotations

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.study.command_line.request import Request
from ajuste.study.command_line.study import adhoc_document, adhoc_study
from ajuste.study.metrics import check_precision
from ajuste.study.overrides import with_precision
from ajuste.study.schema import DesignTable, Study

TWO = (("sleep", "0.01"), ("sleep", "0.02"))


def study(**more: str) -> Study:
    return adhoc_study(Request(TWO, **more), catalogue())  # type: ignore[arg-type]


def test_it_is_a_field_of_the_analysis_that_is_absent_by_default() -> None:
    assert "precision" not in study().model_dump()["analysis"]
    precise = study(precision="2%")
    assert precise.analysis.precision == 0.02
    document, _ = adhoc_document(Request(TWO, precision="2%"), catalogue())
    assert document["analysis"]["precision"] == 0.02
    assert Study.model_validate(precise.model_dump(by_alias=True)).analysis.precision == 0.02


def test_a_command_line_overrides_that_of_a_study() -> None:
    assert with_precision(study(precision="2%"), "0.5%").analysis.precision == pytest.approx(0.005)


@pytest.mark.parametrize("text", ["0%", "-1%", "narrow", "2000%"])
def test_a_precision_that_is_none_is_refused(text: str) -> None:
    for wrong in (lambda: with_precision(study(), text), lambda: study(precision=text)):
        with pytest.raises(RequestError) as failure:
            wrong()
        assert str(failure.value).startswith(f"--precision {text}: ")


@pytest.mark.parametrize(
    ("design", "word"),
    [
        (DesignTable(combine="screening"), "screening"),
        (DesignTable(combine="ablation"), "ablation"),
        (DesignTable(allocation="refine"), "refine"),
        (DesignTable(allocation="best"), "best"),
    ],
)
def test_it_conflicts_with_studies_that_stop_for_another_reason(design: DesignTable, word: str) -> None:
    other = study().model_copy(update={"design": design})
    with pytest.raises(RequestError, match=f"conflicts with {word}"):
        with_precision(other, "2%")
    (problem,) = check_precision(study(precision="2%").model_copy(update={"design": design}))
    assert problem.message.endswith(f"conflicts with {word}")
    assert not list(check_precision(other))
