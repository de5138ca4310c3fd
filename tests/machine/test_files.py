"""Files that take the place of others whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.cli.log import begin_log
from ajuste.cli.measuring import check_report
from ajuste.machine.files import open_named, replace_file, replaced
from ajuste.model.error import RequestError
from ajuste.store.bundle import write_bundle
from namespace import needs_root


def test_two_who_replace_a_file_at_once_do_not_write_to_the_same(tmp_path: Path) -> None:
    """In one process, as in two containers, the PID is the same."""
    file = tmp_path / "file"
    with replaced(file) as first, replaced(file) as second:
        first.write_text("first")
        second.write_text("second")
        assert not file.exists()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "first")]


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with pytest.raises(IsADirectoryError), replaced(file) as new:
        new.write_bytes(tmp_path.read_bytes())
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "before")]


STRANGER = 54321
WRITERS: dict[str, Callable[[Path], object]] = {
    "named": open_named,
    "replaced": lambda path: replace_file(path, b"new"),
    "bundle": lambda path: write_bundle(path, (), 0),
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
    assert [(one.name, one.read_text()) for one in (tmp_path / "roots").iterdir()] == [("file", "secret")]


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
