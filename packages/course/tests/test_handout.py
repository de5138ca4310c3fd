"""Handouts: two pages in each language, and whatever a run says stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typst

from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.run.outcome import original_results
from ajuste.store.store import Store
from ajuste_course.handout import handout_text, write_handout
from small_stores import DECIDED, small_store

HOSTILE = '#import "/etc/passwd": * ] } $ \\ " \' #panic("x") // /* = * _ ` @x <y> ]]'


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    file = small_store(tmp_path_factory.mktemp("small") / "store.sqlite")
    with Store(f"sqlite:///{file}") as store:
        yield original_results(store.find_run(DECIDED), store)


def pages(file: Path) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", file.read_bytes()))


@pytest.mark.parametrize("language", ["en", "es", "ru"])
def test_a_handout_has_at_most_two_pages(results: Results, tmp_path: Path, language: str) -> None:
    file = tmp_path / "handout.pdf"
    write_handout(results, file, language)
    assert file.read_bytes().startswith(b"%PDF-")
    assert 1 <= pages(file) <= 2


def test_a_handout_is_in_its_language(results: Results) -> None:
    texts = {language: handout_text(results, "", language) for language in ("en", "es", "ru")}
    assert len(set(texts.values())) == 3
    assert re.search("[а-я]{5}", texts["ru"])
    assert not re.search("[а-я]{5}", texts["en"])


def test_the_source_has_its_picture_beside_it_and_compiles(results: Results, tmp_path: Path) -> None:
    write_handout(results, tmp_path / "handout.typ", "en")
    assert (tmp_path / "handout-figure.svg").read_text().count("<svg") == 1
    assert bytes(typst.compile(str(tmp_path / "handout.typ"))).startswith(b"%PDF-")


def test_whatever_a_run_says_stays_text(results: Results, tmp_path: Path) -> None:
    hostile = results.model_copy(
        update={"title": HOSTILE, "question": HOSTILE, "reproduce": (HOSTILE,), "study": HOSTILE}
    )
    write_handout(hostile, tmp_path / "handout.pdf", "en")
    assert 1 <= pages(tmp_path / "handout.pdf") <= 2
    source = tmp_path / "handout.typ"
    source.write_text(handout_text(hostile, "", "en"), encoding="utf-8")
    # Typst finds the whole text as text, not as markup.
    assert HOSTILE.split()[0] in source.read_text()
    headings = typst.query(str(source), "heading.where(level: 1)")
    assert "panic" in headings
    assert "passwd" in headings


def test_control_characters_do_not_reach_the_page(results: Results, tmp_path: Path) -> None:
    hostile = results.model_copy(update={"title": "a\x1b[2Jb\x00c\u202ed", "question": "x\ny\x07"})
    write_handout(hostile, tmp_path / "handout.pdf", "en")
    assert pages(tmp_path / "handout.pdf") >= 1
    assert not set("\x1b\x00\x07") & set(handout_text(hostile, "", "en"))


def test_another_kind_of_file_is_refused(results: Results, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"\.pdf"):
        write_handout(results, tmp_path / "handout.docx", "en")
    with pytest.raises(RequestError, match="absent"):
        write_handout(results, tmp_path / "absent" / "handout.pdf", "en")
