"""Prose for people has none of the phrases of writing/vocabulary.toml."""

from __future__ import annotations

from pathlib import Path

import pytest
from writing.prose import ROOT, Found, files, newest_section, not_yet_clean, phrases_in, phrases_of, vocabulary

from looped import each

CLEAN = [path for path in files() if path.relative_to(ROOT).as_posix() not in not_yet_clean()]


def test_clean_files_have_no_such_phrase() -> None:
    matches = {str(path.relative_to(ROOT)): phrases for path in CLEAN if (phrases := phrases_in(path))}
    assert matches == {}


@pytest.mark.parametrize("name", sorted(not_yet_clean()))
def test_a_file_that_is_clean_leaves_the_list(name: str) -> None:
    path = ROOT / name
    assert path.exists(), f"run `python -m writing`: {name} is gone"
    assert phrases_in(path), f"run `python -m writing`: {name} is clean"


@each(vocabulary())
def test_each_phrase_is_found_and_its_replacement_is_clean(phrase: str) -> None:
    words = phrase.upper().replace(" ", "\n")
    matches = phrases_of(f"First.\nThe {words} there.", 10)
    assert Found(11, phrase, vocabulary()[phrase][1]) in matches
    assert phrases_of(vocabulary()[phrase][1]) == []


def test_strings_of_a_program_are_read_and_its_names_are_not(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('whoever = 1\nhint = (\n    "for who"\n    "ever asks"\n)  # whoever\n', encoding="utf-8")
    assert [(match.line, match.phrase) for match in phrases_in(path)] == [(3, "whoever")]


def test_of_the_changelog_only_the_newest_section_is_read(tmp_path: Path) -> None:
    assert newest_section("# Changes\n\n## 2\n- new\n\n## 1\n- whoever\n") == "# Changes\n\n## 2\n- new\n\n"
