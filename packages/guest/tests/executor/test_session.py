from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ajuste.machine.home import Home
from ajuste.machine.session import MARKER
from ajuste.model.error import RequestError
from ajuste_guest.session import MachineSession, remove_stale

OWNER = """
import sys
from pathlib import Path
from ajuste.machine.home import Home
from ajuste_guest.session import MachineSession
root = Path(sys.argv[1])
with MachineSession(Home(root, root, root)) as session:
    print(session.directory, flush=True)
    (session.directory / "large").write_bytes(bytes(100_000))
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path, tmp_path, tmp_path)


def test_leaving_removes_the_directory_and_the_guardian(place: Home) -> None:
    with MachineSession(place) as session:
        directory = session.directory
        assert directory.parent == place.sessions
        assert oct(directory.stat().st_mode & 0o777) == "0o700"
        (directory / "folder").mkdir()
    assert list(place.sessions.iterdir()) == []
    command_lines = [child.as_dict(["cmdline"])["cmdline"] or () for child in psutil.Process().children()]
    assert not [words for words in command_lines if str(directory) in " ".join(words)]


def test_an_error_inside_removes_it_as_well(place: Home) -> None:
    with pytest.raises(KeyboardInterrupt), MachineSession(place):
        raise KeyboardInterrupt
    assert list(place.sessions.iterdir()) == []


def test_a_killed_owner_leaves_nothing(place: Home) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, place.state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    directory = Path(owner.stdout.readline().strip())
    assert directory.is_dir()
    guardians = psutil.Process(owner.pid).children()
    assert len(guardians) == 1
    owner.kill()
    owner.wait()
    psutil.wait_procs(guardians, timeout=30)
    assert not directory.exists()


def test_directories_of_dead_owners_are_removed_and_others_kept(place: Home) -> None:
    with MachineSession(place) as session:
        mine = json.loads((session.directory / MARKER).read_text())
        others = {
            "vm-dead": {**mine, "pid": 2**22 + 1},
            "vm-recycled": {**mine, "started_ticks": mine["started_ticks"] - 1000},
            "vm-boot": {**mine, "boot": "another"},
        }
        for name, owner in others.items():
            (place.sessions / name).mkdir()
            (place.sessions / name / MARKER).write_text(json.dumps(owner))
        (place.sessions / "vm-unmarked").mkdir()
        (place.sessions / "something").mkdir()
        remove_stale(place.sessions)
        assert {path.name for path in place.sessions.iterdir()} == {
            session.directory.name,
            "vm-unmarked",
            "something",
        }


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with (
        pytest.raises(RequestError, match="cannot create a directory in"),
        MachineSession(Home(blocked, blocked, blocked)),
    ):
        pass
    assert list(tmp_path.iterdir()) == [blocked]
