"""Files that take the place of others whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ajuste.cli.log import begin_log
from ajuste.cli.measuring import check_report
from ajuste.machine.files import (
    create_file,
    give_to_caller,
    make_directory,
    open_named,
    remove_file,
    remove_tree,
    replace_file,
    replaced,
    write_text,
)
from ajuste.model.error import RequestError
from ajuste_share.bundle import write_bundle
from namespace import needs_root


def test_two_who_replace_a_file_at_once_do_not_write_to_the_same(tmp_path: Path) -> None:
    """Replace a file twice in one process; as in two containers, the PID is the same."""
    file = tmp_path / "file"
    with replaced(file) as first, replaced(file) as second:
        first.write_text("first")
        second.write_text("second")
        assert not file.exists()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "first")]


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with pytest.raises(IsADirectoryError), replaced(file) as new:
        new.write_bytes(tmp_path.read_bytes())
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "before")]


STRANGER = 54321
WRITERS: dict[str, Callable[[Path], object]] = {
    "named": open_named,
    "new": create_file,
    "directory": lambda path: make_directory(path.parent / "made"),
    "removed": remove_file,
    "replaced": lambda path: replace_file(path, b"new"),
    "bundle": lambda path: write_bundle(path, (), 1),
    "log": begin_log,
    "report": check_report,
}


@needs_root
@pytest.mark.parametrize("writer", WRITERS)
def test_root_writes_through_no_directory_link_of_another_user(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Be it a stranger or the one who called sudo."""
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots" / "file").write_text("secret")
    (tmp_path / "link").symlink_to("roots")
    os.lchown(tmp_path / "link", STRANGER, STRANGER)
    monkeypatch.chdir(tmp_path)
    for environment in ({}, {"SUDO_UID": str(STRANGER), "SUDO_GID": str(STRANGER)}):
        with monkeypatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(name, value)
            for path in (Path("link/file"), tmp_path / "link" / "file"):
                with pytest.raises(RequestError, match="is a link owned by"):
                    WRITERS[writer](path)
    assert [(path.name, path.read_text()) for path in (tmp_path / "roots").iterdir()] == [("file", "secret")]


@needs_root
@pytest.mark.timeout(20)
def test_a_fifo_that_nobody_reads_is_an_error_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "file")
    with pytest.raises(OSError, match="No such device or address"):
        open_named(tmp_path / "file")


def test_root_writes_into_no_fifo_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "file")
    os.chown(tmp_path / "file", STRANGER, STRANGER)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    monkeypatch.setenv("SUDO_GID", str(STRANGER))
    with pytest.raises(RequestError, match="is a FIFO"):
        open_named(tmp_path / "file")


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the one who called sudo, beside one of root's with a file."""
    (tmp_path / "roots").mkdir()
    (tmp_path / "roots" / "file").write_text("secret")
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", STRANGER, STRANGER)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    monkeypatch.setenv("SUDO_GID", str(STRANGER))
    return tmp_path / "theirs"


def exchange(theirs: Path) -> None:
    """Do what its owner may do at any moment, once."""
    if theirs.with_name("moved").exists():
        return
    theirs.rename(theirs.with_name("moved"))
    theirs.symlink_to("roots")
    os.lchown(theirs, STRANGER, STRANGER)


def require_untouched(theirs: Path) -> None:
    (file,) = (theirs.parent / "roots").iterdir()
    assert (file.name, file.read_text(), file.stat().st_uid) == ("file", "secret", 0)


@needs_root
@pytest.mark.parametrize("name", ["file", "new"])
@pytest.mark.parametrize("writer", ["named", "new", "replaced", "bundle", "log"])
def test_a_directory_that_is_exchanged_before_it_is_written_to_leads_root_nowhere(
    writer: str, name: str, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = os.open

    def exchanging(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            exchange(theirs)
        return ordinary(path, flags, *more, **options)

    monkeypatch.setattr(os, "open", exchanging)
    WRITERS[writer](theirs / name)
    require_untouched(theirs)
    assert [file.name for file in (theirs.parent / "moved").iterdir()] == [name]


@needs_root
def test_nor_does_one_that_is_exchanged_before_a_file_in_it_is_given_away(
    theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordinary = Path.stat

    def exchanging(path: Path, **options: Any) -> os.stat_result:
        status = ordinary(path, **options)
        monkeypatch.setattr(Path, "stat", ordinary)
        exchange(theirs)
        return status

    (theirs / "file").touch()
    monkeypatch.setattr(Path, "stat", exchanging)
    give_to_caller(theirs / "file")
    monkeypatch.undo()
    require_untouched(theirs)
    assert (theirs.parent / "moved" / "file").stat().st_uid == STRANGER


@needs_root
def test_nor_is_anything_else_written_to_than_the_file_that_takes_its_place(theirs: Path) -> None:
    with replaced(theirs / "file") as new:
        (made,) = theirs.iterdir()
        made.unlink()
        made.symlink_to("../roots/file")
        new.write_text("report")
    require_untouched(theirs)


@needs_root
def test_nor_is_the_mode_of_anything_else_changed(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (theirs.parent / "roots" / "file").chmod(0o600)
    ordinary = os.fchmod

    def exchanging(descriptor: int, mode: int) -> None:
        exchange(theirs)
        ordinary(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", exchanging)
    write_text(theirs / "file", "new", mode=0o755)
    require_untouched(theirs)
    assert (theirs.parent / "roots" / "file").stat().st_mode & 0o777 == 0o600
    assert (theirs.parent / "moved" / "file").stat().st_mode & 0o777 == 0o755


@needs_root
def test_a_directory_that_is_exchanged_is_removed_where_it_was(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (theirs / "file").mkdir()
    ordinary = os.lstat

    def exchanging(path: Any, **options: Any) -> os.stat_result:
        exchange(theirs)
        return ordinary(path, **options)

    monkeypatch.setattr(os, "lstat", exchanging)
    remove_tree(theirs / "file")
    monkeypatch.undo()
    require_untouched(theirs)
    assert not any((theirs.parent / "moved").iterdir())


@needs_root
@pytest.mark.parametrize("place", ["link", "file"])
def test_root_follows_no_link_of_its_own_that_the_caller_can_give_another_name(theirs: Path, place: str) -> None:
    (theirs / place).symlink_to("../roots/file" if place == "file" else "../roots")
    with pytest.raises(RequestError, match="is a link in a directory that belongs to"):
        open_named(theirs / "file" if place == "file" else theirs / "link" / "file")
    require_untouched(theirs)


def test_links_of_root_and_of_the_kernel_are_followed(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "file").touch()
    (tmp_path / "link").symlink_to("directory")
    (tmp_path / "named").symlink_to("link/file")
    descriptor = os.open(tmp_path / "directory", os.O_RDONLY)
    for place in (tmp_path / "link" / "file", tmp_path / "named", Path(f"/dev/fd/{descriptor}/file")):
        with open_named(place) as file:
            file.write(bytes(place))
        assert (tmp_path / "directory" / "file").read_bytes() == bytes(place)
    os.close(descriptor)
    (tmp_path / "dangling").symlink_to("nothing")
    with pytest.raises(FileNotFoundError):
        open_named(tmp_path / "dangling")
    reads, writes = os.pipe()
    with open_named(Path(f"/dev/fd/{writes}")) as file:
        file.write(b"through a pipe")
    assert os.read(reads, 100) == b"through a pipe"
    os.close(reads)
    os.close(writes)
