"""Hand-ins come from anybody: each file is whole, or refused with its name."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packages.course.tests.cheating import LIGHT, STEP, write_members

from ajuste.model.error import RequestError
from ajuste.store.store import Store
from ajuste_course.hand_in import HandIn, missing, open_hand_in, write_hand_in
from ajuste_course.sheet import read_sheet
from ajuste_course.workbook import Workbook, read_prediction
from ajuste_share.bundle import LARGEST_FILE, write_bundle
from ajuste_share.sharing import to_bundle
from small_stores import DECIDED, small_store

TRIALS = 7
"""Trials of the small store's run."""


@pytest.fixture(scope="module")
def workbook() -> Workbook:
    sheet = read_sheet(LIGHT)
    plain = Workbook(sheet="light", version=1, digest=sheet.digest, student="1", language="en")
    predicted = plain.with_prediction(
        sheet, "switches", read_prediction("falls", "50%", "longer turns, fewer switches")
    )
    return predicted.with_run(STEP, DECIDED).with_answer(sheet, "why", "Ünïcode ☃ \u202e and 'quotes'")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, workbook: Workbook) -> Path:
    directory = tmp_path_factory.mktemp("written")
    small_store(directory / "store.sqlite")
    with Store(f"sqlite:///{directory / 'store.sqlite'}") as store:
        write_hand_in(directory / "1.ajuste", workbook, store, "0.1.0")
    return directory / "1.ajuste"


def members(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def refused(file: Path) -> str:
    with pytest.raises(RequestError) as failure, open_hand_in(file):
        pass
    assert str(file) in failure.value.message or "hand-in" in failure.value.message
    return failure.value.message


def test_a_hand_in_is_read_as_it_was_written(written: Path, workbook: Workbook) -> None:
    with open_hand_in(written) as opened:
        assert opened.about.workbook == workbook
        assert opened.about.digest == opened.about.computed
        assert set(opened.runs) == {STEP}
        assert len(list(opened.runs[STEP].trials)) == TRIALS
        assert opened.different == {DECIDED: ()}


def test_an_unfinished_sheet_can_be_handed_in(tmp_path: Path, workbook: Workbook, store: Store) -> None:
    plain = workbook.model_copy(update={"runs": {}})
    write_hand_in(tmp_path / "2.ajuste", plain, store, "0.1.0")
    with open_hand_in(tmp_path / "2.ajuste") as opened:
        assert (opened.about.workbook, opened.runs) == (plain, {})
    assert missing(read_sheet(LIGHT), plain) == [STEP, "mean", "turn", "verdict"]


def test_a_file_that_is_there_is_not_replaced(written: Path, workbook: Workbook, store: Store) -> None:
    before = written.read_bytes()
    with pytest.raises(RequestError, match=r"1\.ajuste"):
        write_hand_in(written, workbook.model_copy(update={"runs": {}}), store, "0.1.0")
    assert written.read_bytes() == before


def test_a_run_that_is_not_there_leaves_no_file(tmp_path: Path, workbook: Workbook, store: Store) -> None:
    with pytest.raises(RequestError, match="not found"):
        write_hand_in(tmp_path / "1.ajuste", workbook, store, "0.1.0")
    assert list(tmp_path.glob("*.ajuste")) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_half_a_file_is_refused(written: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = written.read_bytes()
    cut = data.draw(st.integers(0, len(content) - 1))
    (tmp_path / "half.ajuste").write_bytes(content[:cut])
    refused(tmp_path / "half.ajuste")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_byte_is_refused_or_changes_nothing(
    written: Path, tmp_path: Path, workbook: Workbook, data: st.DataObject
) -> None:
    content = bytearray(written.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    file = tmp_path / "flipped.ajuste"
    file.write_bytes(content)
    try:
        with open_hand_in(file) as opened:
            assert opened.about.workbook == workbook
            assert len(list(opened.runs[STEP].trials)) == TRIALS
    except RequestError:
        pass


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400))
def test_any_bytes_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "any.ajuste").write_bytes(content)
    refused(tmp_path / "any.ajuste")


def test_a_huge_sparse_file_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "huge.ajuste"
    with file.open("wb") as opened:
        opened.truncate(2 << 30)
    assert f"{LARGEST_FILE >> 20} MiB" in refused(file)


def test_a_compressed_member_is_refused(written: Path, tmp_path: Path) -> None:
    for packed in members(written):
        file = tmp_path / f"{packed}.ajuste"
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members(written).items():
                kind = zipfile.ZIP_DEFLATED if name == packed else zipfile.ZIP_STORED
                archive.writestr(name, content, compress_type=kind)
        assert "compressed" in refused(file)


def test_an_archive_without_a_workbook_is_no_hand_in(written: Path, tmp_path: Path) -> None:
    file = tmp_path / "other.ajuste"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("runs.ajuste", members(written)["runs.ajuste"])
    assert "is not a hand-in" in refused(file)


def test_runs_that_are_missing_or_others_are_refused(written: Path, tmp_path: Path, workbook: Workbook) -> None:
    write_members(tmp_path / "none.ajuste", workbook, b"")
    assert "half a hand-in" in refused(tmp_path / "none.ajuste")
    runs = members(written)["runs.ajuste"]
    write_members(tmp_path / "lost.ajuste", workbook.with_run("second", "20261122-163035-ffffff"), runs)
    assert "is missing" in refused(tmp_path / "lost.ajuste")
    write_members(tmp_path / "others.ajuste", workbook, runs, digest="0" * 64)
    assert "its runs are not those" in refused(tmp_path / "others.ajuste")
    write_members(tmp_path / "noise.ajuste", workbook, b"\0" * 100)
    message = refused(tmp_path / "noise.ajuste")
    assert str(tmp_path / "noise.ajuste") in message


def test_a_changed_workbook_needs_another_digest(written: Path, tmp_path: Path) -> None:
    parts = members(written)
    about = HandIn.model_validate_json(parts["hand-in.json"])
    other = about.model_copy(update={"workbook": about.workbook.model_copy(update={"student": "2"})})
    file = tmp_path / "changed.ajuste"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("hand-in.json", other.model_dump_json())
        archive.writestr("runs.ajuste", parts["runs.ajuste"])
    assert "its digest is not that of its content" in refused(file)


def test_a_plain_bundle_a_directory_and_nothing_are_refused(written: Path, tmp_path: Path) -> None:
    with Store(f"sqlite:///{written.parent / 'store.sqlite'}") as store:
        write_bundle(tmp_path / "bundle.ajuste", to_bundle([DECIDED], store), 1)
    refused(tmp_path / "bundle.ajuste")
    refused(tmp_path)
    refused(tmp_path / "nothing.ajuste")


def test_a_file_that_was_made_before_stays_until_its_successor_is_whole(
    tmp_path: Path, workbook: Workbook, store: Store
) -> None:
    file = tmp_path / "mine.ajuste"
    plain = workbook.model_copy(update={"runs": {}})
    write_hand_in(file, plain, store, "1")
    content = file.read_bytes()
    with pytest.raises(RequestError):
        write_hand_in(file, plain.with_run(STEP, "no-run"), store, "2", overwrite=True)
    assert file.read_bytes() == content
    assert write_hand_in(file, plain, store, "2", overwrite=True).ajuste == "2"
    assert file.read_bytes() != content
