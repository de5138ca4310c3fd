"""A sheet that its author checks: what does not exist is named before a student meets it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from packages.course.tests.cheating import LIGHT

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.run.testbed import RunOptions
from ajuste_course.check import checked_studies
from ajuste_course.sheet import parse_sheet

pytestmark = pytest.mark.vm  # a kernel is looked up


def check(tmp_path: Path, change: Any) -> dict[str, list[str]]:
    document = tomllib.loads(LIGHT.read_text(encoding="utf-8"))
    change(document)
    home = Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    return checked_studies(parse_sheet(document), "1", catalogue(), RunOptions(home))


def step_of(document: dict[str, Any], kind: str) -> dict[str, Any]:
    step: dict[str, Any] = next(step for step in document["step"] if step["kind"] == kind)
    return step


def test_a_configuration_that_is_not_there_is_named(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        step_of(document, "predict")["configuration"] = "nice=99"

    with pytest.raises(RequestError, match="nice=99"):
        check(tmp_path, change)


def test_a_metric_that_is_not_measured_is_named(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        step_of(document, "predict")["metric"] = "involuntary-switch"

    with pytest.raises(RequestError, match="involuntary-switch"):
        check(tmp_path, change)


def test_a_word_that_is_no_verdict_is_named(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        question = next(
            s for s in document["step"] if s["kind"] == "ask" and s.get("figure", {}).get("of") == "verdict"
        )
        question["values"][0] = "equal"

    with pytest.raises(RequestError, match="equal"):
        check(tmp_path, change)


def test_a_value_that_only_another_student_gets_is_checked_too(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        name, draw = next(iter(document["draw"].items()))
        draw["values"].append("nonsense")
        assert name

    with pytest.raises(RequestError):
        check(tmp_path, change)
