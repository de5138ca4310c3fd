"""The gallery's pages have the places that their runs are put into, and these keep what is put there."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from benchmarks.gallery.build import recorded, this_build
from benchmarks.gallery.marks import content, marks, put
from benchmarks.gallery.pages import GALLERY, INDEX, pages
from hypothesis import given
from hypothesis import strategies as st

from ajuste.study.builtin import find_study
from looped import each

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=200).filter(lambda t: "<!--" not in t)


@given(before=TEXT, inside=TEXT, after=TEXT, name=st.from_regex(r"[a-z-]+( [a-z-]+)*", fullmatch=True))
def test_what_is_put_into_a_place_stands_there_and_nothing_else_changes(
    before: str, inside: str, after: str, name: str
) -> None:
    page = f"{before}\n<!-- {name} -->\nold\n<!-- end {name} -->\n{after}"
    written = put(page, name, inside)
    assert content(written, name) == inside.strip("\n")
    assert put(written, name, inside) == written
    assert put(written, name, "old") == put(page, name, "old")
    assert written.startswith(f"{before}\n<!--")
    assert written.endswith(f"-->\n{after}")


def test_a_place_that_is_not_there_or_twice_is_refused() -> None:
    place = "<!-- a -->\n<!-- end a -->\n"
    for page in ("", place * 2, "<!-- a -->\n"):
        with pytest.raises(ValueError, match="'a'"):
            put(page, "a", "x")


@each(pages(), name=attrgetter("file"))
def test_every_page_has_a_place_for_each_of_its_runs_and_it_is_filled(page: Any) -> None:  # type: ignore[no-untyped-def]
    text = page.path.read_text(encoding="utf-8")
    assert sorted(marks(text)) == sorted(page.marks)
    assert all(content(text, mark) for mark in page.marks)
    for run in page.run:
        assert run.study is None or find_study(run.study)
        assert "Digest" in content(text, run.mark)


BY_OTHER_BENCHMARKS = {"live.md", "reboots.md", "how-to-examples.md"}
"""Pages of a live service, of a machine that reboots and of what takes hours: measured by no command of the gallery."""


def test_every_page_is_made_and_every_experiment_has_one() -> None:
    written = {path.name for path in GALLERY.glob("*.md")} - {INDEX.name} - BY_OTHER_BENCHMARKS
    assert {page.path.name for page in pages()} == written
    assert {page.experiment for page in pages()} == set("ABCDEFGH")


def test_every_page_says_which_programs_it_was_measured_with() -> None:
    builds, index = recorded(), INDEX.read_text(encoding="utf-8")
    assert set(builds.pages) == {page.file for page in pages()}
    assert {name: build.name for name, build in builds.builds.items()} == {name: name for name in builds.builds}
    assert set(builds.pages.values()) == set(builds.builds)
    for page, build in builds.pages.items():
        rows = [line for line in index.splitlines() if f"({page}.md)" in line and line.startswith("| ")]
        assert rows, page
        assert all(row.endswith(f"| `{build}` |") for row in rows), page


def test_a_page_that_is_measured_again_has_the_programs_of_today() -> None:
    today = this_build()
    again = recorded().with_page("granularity", today)
    assert again.pages["granularity"] == today.name
    assert again.builds[today.name] == today
    others = {page: build for page, build in recorded().pages.items() if page != "granularity"}
    assert {page: build for page, build in again.pages.items() if page != "granularity"} == others
