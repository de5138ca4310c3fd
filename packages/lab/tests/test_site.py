"""The static site of a store: all of it, the same each time, and never over anybody's files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from ajuste_lab.site import SiteEntry, index_page
from small_stores import DECIDED, Commands, small_store


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    small_store(tmp_path / "home" / "data" / "store.sqlite")
    return Commands(tmp_path / "home", monkeypatch)


@pytest.fixture
def site(commands: Commands, tmp_path: Path) -> Path:
    assert commands.json("site", str(tmp_path / "site"))["runs"] == [DECIDED]
    return tmp_path / "site"


def content(directory: Path) -> dict[str, str]:
    files = (file for file in directory.rglob("*") if file.is_file())
    return {str(file.relative_to(directory)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_the_same_runs_give_the_same_bytes_and_pages_are_the_reports(
    commands: Commands, site: Path, tmp_path: Path
) -> None:
    before = content(site)
    assert set(before) == {"index.html", "ajuste-site.json", f"runs/{DECIDED}.html"}
    commands.json("site", str(site))
    commands.json("site", str(tmp_path / "other"))
    assert content(site) == content(tmp_path / "other") == before
    commands.json("report", DECIDED, "--html", str(tmp_path / "report.html"))
    assert (tmp_path / "report.html").read_bytes() == (site / "runs" / f"{DECIDED}.html").read_bytes()


def test_nobodys_files_are_replaced_or_removed(commands: Commands, site: Path, tmp_path: Path) -> None:
    page = site / "runs" / f"{DECIDED}.html"
    for file, text in ((page, "mine"), (site / "index.html", "mine")):
        before, contents = file.read_bytes(), content(site)
        file.write_text(text)
        code, _, complained = commands.run("site", str(site))
        assert (code, f"{file} was changed" in complained, file.read_text()) == (2, True, text)
        file.write_bytes(before)
        assert content(site) == contents
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    code, _, complained = commands.run("site", str(tmp_path / "mine"))
    assert (code, "is not empty" in complained) == (2, True)
    assert set(content(tmp_path / "mine")) == {"notes.txt"}


def test_a_record_that_names_files_elsewhere_is_refused(commands: Commands, site: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    checksum = hashlib.sha256(b"mine").hexdigest()
    record = site / "ajuste-site.json"
    record.write_text(record.read_text().replace('"files": {', f'"files": {{"../precious": "{checksum}",'))
    code, _, complained = commands.run("site", str(site))
    assert (code, "is not what ajuste site writes" in complained) == (2, True)
    assert (tmp_path / "precious").read_text() == "mine"


def entry(number: int, answer: str) -> SiteEntry:
    run = f"20261122-163035-{number:06x}"
    return SiteEntry(
        run, f"study-{number}", "", answer, "2026-11-22T16:30:35+00:00", "debian:5.10", "matrix", ("a",), ""
    )


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), pytest.param(1400, "light", marks=pytest.mark.slow)])
def test_the_list_is_searched_without_a_server(browser: Any, tmp_path: Path, width: int, theme: str) -> None:
    messages: list[str] = []
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    (tmp_path / "index.html").write_text(index_page([entry(1, "Use 75 ms."), entry(2, hostile), entry(3, "No.")]))
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = context.new_page()
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss()))  # type: ignore[func-returns-value]
    page.goto((tmp_path / "index.html").as_uri())
    assert page.locator("#runs > li:visible").count() == 3
    page.fill("#search", "MATRIX study-2")
    assert page.locator("#runs > li:visible").all_text_contents()[0].count("onerror") == 1
    assert page.locator("#runs > li:visible").count() == 1
    assert page.locator("#found").text_content() == "1 of 3"
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == ("light" if theme == "dark" else "dark")
    context.close()
    assert messages == []
