"""The gallery's pages have the places that their runs are put into, and these keep what is put there."""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from benchmarks.gallery.build import PageRecord, records, results, written
from benchmarks.gallery.code import code, parse
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


def test_every_page_is_consistent_with_what_is_kept_beside_it() -> None:
    stored, index = records(), INDEX.read_text(encoding="utf-8")
    assert set(stored) == {page.file for page in pages()}
    for page in pages():
        record = stored[page.file]
        assert record.results == results(page), page.file
        assert set(record.results) == {run.mark for run in page.run}, page.file
        assert record.written == written(page), f"{page.file}: what a program wrote was changed by hand"
        rows = [line for line in index.splitlines() if f"({page.file}.md)" in line and line.startswith("| ")]
        assert rows, page.file
        assert all(row.endswith(f"| `{record.digest}` |") for row in rows), page.file


@each(sorted(GALLERY.glob("*.md")), name=attrgetter("name"))
def test_no_page_names_a_line_of_our_sources(path: Path) -> None:
    assert not re.findall(r"\w+\.(?:rs|py):\d+", path.read_text(encoding="utf-8"))


RECORD = PageRecord(inputs={"kernel debian:6.1": "56", "workload spin": "a"}, agent="1", written="")


def test_a_page_is_stale_with_the_inputs_that_changed() -> None:
    assert RECORD.changes(RECORD.inputs) == []
    (reason,) = RECORD.changes({"kernel debian:6.1": "57", "workload spin": "a"})
    assert "kernel debian:6.1" in reason
    assert "57" in reason


def test_what_is_not_on_this_machine_is_not_compared_and_what_was_not_recorded_is_named() -> None:
    assert RECORD.changes({"workload spin": "a"}) == []
    (reason,) = RECORD.changes({"workload spin": "a", "QEMU": "10"})
    assert "QEMU" in reason


def test_the_agent_is_no_input() -> None:
    assert RECORD.model_copy(update={"agent": "2"}).digest == RECORD.digest
    assert RECORD.model_copy(update={"inputs": {"workload spin": "b"}}).digest != RECORD.digest


def listing(*, start: int, line: int, pace: int = 5) -> list[str]:
    """A listing of objdump with two workloads: the addresses follow ``start``, a panic loads its ``line``."""
    return [
        f"{start:016x} <w::spin::run>:",
        f"  {start:x}:\tcall   {start + 64:x} <w::clock::now>",
        f"  {start + 5:x}:\tjne    {start + 9:x} <w::spin::run+0x9>",
        f"  {start + 7:x}:\tlea    0x{line:x}(%rip),%rdi        # {start + line:x} <table+0x18>",
        f"{start + 32:016x} <w::frames::run>:",
        f"  {start + 32:x}:\tmov    $0x{pace:x},%eax",
        f"{start + 64:016x} <w::clock::now>:",
        f"  {start + 64:x}:\tmovsd  0x{start:x}(%rip),%xmm0        # 100 <x>",
    ]


def test_code_is_the_same_at_another_address_and_line() -> None:
    before = parse(listing(start=0x1000, line=10), lambda _address, size: b"1" * size)
    after = parse(listing(start=0x2000, line=99), lambda _address, size: b"1" * size)
    assert code(before) == code(after)


def test_a_change_reaches_only_the_code_that_it_is_in_and_what_calls_it() -> None:
    before = parse(listing(start=0x1000, line=10), lambda _address, size: b"1" * size)
    other_frames = parse(listing(start=0x1000, line=10, pace=6), lambda _address, size: b"1" * size)
    other_clock = parse(listing(start=0x1000, line=10), lambda _address, size: b"2" * size)
    assert code(before, "w::spin::") == code(other_frames, "w::spin::")
    assert code(before, "w::frames::") != code(other_frames, "w::frames::")
    assert code(before, "w::spin::") != code(other_clock, "w::spin::")
    assert code(before, "w::frames::") == code(other_clock, "w::frames::")


def test_code_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        code(parse(listing(start=0x1000, line=10), lambda _address, size: b""), "w::hog::")
