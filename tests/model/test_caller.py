"""Root reads no more of what a person names than the one who called sudo could."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ajuste.cli.studies import show
from ajuste.machine.home import Home
from ajuste.model.caller import open_given
from ajuste.model.error import RequestError
from ajuste.store.head import RunNotes
from ajuste.study.project import read_project
from ajuste.study.read import read_study
from namespace import needs_root

CALLER = 54321


def show_study(file: Path) -> None:
    show(str(file))


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of root's with a secret, and one of the caller's; everybody may come there."""
    monkeypatch.setenv("SUDO_UID", str(CALLER))
    monkeypatch.setenv("SUDO_GID", str(CALLER))
    with TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o755)
        (place / "secret").write_text("[secret]\npassword = 1\n")
        (place / "secret").chmod(0o600)
        (place / "callers").mkdir()
        os.chown(place / "callers", CALLER, CALLER)
        yield place


@needs_root
@pytest.mark.parametrize(
    "read", [open_given, read_study, read_project, show_study], ids=lambda function: function.__name__
)
def test_the_callers_link_to_what_the_caller_cannot_read_is_not_followed(
    place: Path, read: Callable[[Path], object]
) -> None:
    link = place / "callers" / "ajuste.toml"
    link.symlink_to(place / "secret")
    with pytest.raises((RequestError, PermissionError)) as refused:
        read(link)
    assert "Permission denied" in str(refused.value)
    assert "password" not in str(refused.value)


@needs_root
def test_nor_is_a_note(place: Path) -> None:
    notes = place / "callers" / "notes"
    notes.mkdir()
    (notes / "run.txt").symlink_to(place / "secret")
    assert RunNotes(Home(place / "callers", place, place)).of("run") == ""


@needs_root
def test_what_the_caller_can_read_is_read_also_through_a_link(place: Path) -> None:
    for name, owner, mode in (("all", 0, 0o644), ("own", CALLER, 0o400), ("group", 0, 0o040)):
        file = place / name
        file.write_text(name)
        os.chown(file, owner, CALLER)
        file.chmod(mode)
        (place / "callers" / name).symlink_to(file)
        with open_given(place / "callers" / name) as opened:
            assert opened.read() == name.encode()


@needs_root
def test_what_is_roots_all_the_way_is_read_by_its_own_name_alone(place: Path) -> None:
    """Root reads it, as in a shell of root's that sudo has started."""
    with open_given(place / "secret") as opened:
        assert b"password" in opened.read()
    (place / "callers" / "secret").hardlink_to(place / "secret")
    with pytest.raises(PermissionError):
        open_given(place / "callers" / "secret")


@needs_root
def test_root_is_root_again_afterwards(place: Path) -> None:
    before = Path("/proc/thread-self/status").read_text()
    with open_given(place / "secret"), pytest.raises(FileNotFoundError):
        open_given(place / "nothing")
    lines = ("Uid:", "Gid:", "Groups:", "CapEff:")
    after = Path("/proc/thread-self/status").read_text()
    assert [line for line in after.splitlines() if line.startswith(lines)] == [
        line for line in before.splitlines() if line.startswith(lines)
    ]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for odd in (tmp_path / "fifo", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            open_given(odd)
