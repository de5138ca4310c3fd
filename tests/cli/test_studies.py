"""``ajuste studies show``: a study to begin with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ajuste.catalogue.loader import catalogue
from ajuste.cli.main import application
from ajuste.kernel.spec import parse_study_spec
from ajuste.model.error import RequestError
from ajuste.study.builtin import builtin_studies
from ajuste.study.read import read_study


def printed(*words: str) -> str:
    done = CliRunner().invoke(application(["studies"]), ["studies", *words], catch_exceptions=False)
    return done.stdout


def test_what_is_printed_is_a_file_that_says_the_same(tmp_path: Path) -> None:
    for study in builtin_studies():
        mine = tmp_path / f"my-{study.name}.toml"
        mine.write_text(printed("show", study.name))
        of_mine, original = (
            read_study(path, catalogue(), parse_kernel=parse_study_spec) for path in (mine, study.path)
        )
        assert of_mine.model_dump_json() == original.model_dump_json(), study.name


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(RequestError, match="did you mean granularity"):
        printed("show", "granlarity")
    with pytest.raises(RequestError, match="--json applies only to the list"):
        printed("--json", "show", "granularity")


def test_the_list_breaks_lines_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = printed()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "50")
    lines = re.sub(r"\x1b\[[\d;]*m", "", printed()).splitlines()
    assert max(map(len, lines)) <= 50 < max(map(len, whole.splitlines()))
    assert " ".join(" ".join(lines).split()) == " ".join(whole.split())


def test_the_list_is_as_before() -> None:
    assert all(study.name in printed() for study in builtin_studies())
