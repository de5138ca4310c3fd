"""A sheet as a notebook: it is valid, and its cells work."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest
from packages.course.tests.cheating import LIGHT

from ajuste.model.error import RequestError
from ajuste_course.hand_in import open_hand_in
from ajuste_course.notebook import notebook_text, open_sheet
from ajuste_course.sheet import read_sheet, sheet_files
from ajuste_course.translation import translated
from own_home import own_home


def cells(text: str, kind: str) -> list[Any]:
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    return [cell for cell in notebook.cells if cell.cell_type == kind]


@pytest.mark.parametrize("name", sheet_files())
@pytest.mark.parametrize("language", ["en", "es", "ru"])
def test_every_sheet_is_a_valid_notebook(name: str, language: str) -> None:
    sheet = translated(sheet_files()[name], language)
    text = notebook_text(name, sheet, 'it\'s "me"', language)
    for cell in cells(text, "code"):
        ast.parse(cell.source)
    assert sheet.title in cells(text, "markdown")[0].source


@pytest.fixture
def light(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AJUSTE_HOME", str(own_home(tmp_path / "home")))
    monkeypatch.delenv("AJUSTE_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "light.toml").write_text(LIGHT.read_text())
    return tmp_path / "light.toml"


def test_nothing_is_measured_before_its_prediction(light: Path) -> None:
    sheet = open_sheet(str(light), "1001")
    with pytest.raises(RequestError, match="switches"):
        sheet.measure("levels")
    assert sheet.missing() == ["switches", "levels", "mean", "turn", "verdict", "why"]
    with pytest.raises(RequestError, match="how much it falls"):
        sheet.predict("switches", "falls", "a lot", "because of the tick")


@pytest.mark.vm
def test_the_code_of_a_notebook_works(light: Path) -> None:
    text = notebook_text("./light.toml", read_sheet(light), "1001", "en")
    words = {
        '"rises | falls | same", "30%", why=""': '"falls", "30%", why="longer turns mean fewer"',
        'sheet.answer("why", "")': 'sheet.answer("why", "The tick.")',
        'sheet.answer("verdict", "")': 'sheet.answer("verdict", 1)',
        'sheet.answer("mean", "")': 'sheet.answer("mean", run.verdicts[0].new)',
        'sheet.answer("turn", "")': 'sheet.answer("turn", "4.2 ms")',
    }
    program = "\n".join(cell.source for cell in cells(text, "code"))
    for before, after in words.items():
        assert before in program
        program = program.replace(before, after)
    names: dict[str, Any] = {}
    exec(program, names)
    assert names["sheet"].missing() == []
    assert len(names["run"].results.trials) == 6
    with open_hand_in(light.parent / "light-1001.ajuste") as opened:
        assert opened.about.workbook.answers["turn"].value == 4.2
