"""The machine's lock, in a directory of the test's own that everybody may write into."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ajuste.executor.host.machine_lock import CLEARING_SECONDS, MachineLock, Use, lock_name, status_name
from ajuste.machine.session import boot_id, started_ticks
from ajuste.model.error import RequestError

ADA, BOB = 65534, 65533
OWN, OWN_STATUS = lock_name(os.geteuid()), status_name(os.geteuid())

HOLD = """
import json, os, sys, time
from pathlib import Path
from ajuste.model.error import AjusteError
from ajuste.executor.host.machine_lock import MachineLock
directory, uid, use = json.loads(sys.argv[1])
if uid:
    os.setgroups([]), os.setresgid(uid, uid, uid), os.setresuid(uid, uid, uid)
lock = MachineLock(use, Path(directory))
try:
    lock.__enter__()
except AjusteError as error:
    print(error.exit_code, error, flush=True)
else:
    print("held", *lock.notes, flush=True)
    time.sleep(600)
"""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


class Users:
    """Processes of several users, each of which takes the lock and holds it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._processes: list[subprocess.Popen[str]] = []

    def begin(self, uid: int = 0, use: Use = "experiment") -> str:
        """Return what it says: ``held`` and what it found, or its exit code and why."""
        request = json.dumps([str(self.directory), uid, use])
        process = subprocess.Popen([sys.executable, "-c", HOLD, request], stdout=subprocess.PIPE, text=True)
        self._processes.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def holder(self, uid: int = 0, use: Use = "experiment") -> subprocess.Popen[str]:
        assert self.begin(uid, use) == "held"
        return self._processes[-1]

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def directory() -> Iterator[Path]:
    with TemporaryDirectory() as made:
        Path(made).chmod(0o1777)
        yield Path(made)


@pytest.fixture
def users(directory: Path) -> Iterator[Users]:
    users = Users(directory)
    yield users
    users.end()


def status(directory: Path, uid: int = os.geteuid()) -> dict[str, Any]:
    document = json.loads((directory / status_name(uid)).read_text())
    assert isinstance(document, dict)
    return document


def lie(directory: Path, name: str, owner: int, **more: object) -> Path:
    """A status of ``owner`` that says of this very process what ``more`` does not say otherwise."""
    claim = {"pid": os.getpid(), "started": started_ticks(os.getpid()), "boot": boot_id(), "use": "experiment"}
    path = directory / name
    path.write_text(json.dumps(claim | more))
    os.chown(path, owner, owner)
    return path


def test_a_second_one_is_refused_and_told_who_and_since_when(directory: Path, users: Users) -> None:
    other = users.holder()
    year = status(directory)["since"][:4]
    with (
        pytest.raises(RequestError, match=f"process {other.pid}, since {year}-") as caught,
        MachineLock("experiment", directory),
    ):
        pass
    assert caught.value.exit_code == 2


def test_it_is_waited_for_so_long_as_is_allowed(directory: Path, users: Users) -> None:
    other = users.holder()
    messages: list[str] = []

    def tell(text: str) -> None:
        messages.append(text)
        other.kill()
        other.wait()

    with MachineLock("experiment", directory, wait_s=60, say=tell):
        assert status(directory)["pid"] == os.getpid()
    (message,) = messages
    assert "waiting up to 1 min" in message
    assert f"process {other.pid}" in message


def test_when_the_wait_is_over_it_is_refused(directory: Path, users: Users) -> None:
    other = users.holder()
    with (
        pytest.raises(RequestError, match=f"process {other.pid}"),
        MachineLock("experiment", directory, wait_s=0.1),
    ):
        pass


def test_a_directory_that_is_not_there_is_named_with_what_makes_it(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=f"directory {tmp_path}/lock not found") as caught:
        MachineLock("experiment", tmp_path / "lock").__enter__()
    assert caught.value.hint == f"make it as root: mkdir -m 1777 {tmp_path}/lock"


def test_it_is_free_when_its_holder_is_killed(directory: Path, users: Users) -> None:
    other = users.holder()
    other.send_signal(signal.SIGKILL)
    other.wait()
    with MachineLock("experiment", directory):
        assert status(directory)["pid"] == os.getpid()


def test_nothing_but_the_lock_remains(directory: Path) -> None:
    with MachineLock("experiment", directory):
        assert sorted(path.name for path in directory.iterdir()) == [OWN, OWN_STATUS]
    assert [path.name for path in directory.iterdir()] == [OWN]


def test_the_lock_is_for_its_user_alone_and_the_status_for_all_to_read(directory: Path) -> None:
    old = os.umask(0)
    try:
        with MachineLock("experiment", directory):
            assert stat.S_IMODE((directory / OWN).stat().st_mode) == 0o600
            assert stat.S_IMODE((directory / OWN_STATUS).stat().st_mode) == 0o644
    finally:
        os.umask(old)


def test_whoever_has_the_descriptor_holds_it_too(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MachineLock("experiment", directory) as lock:
        heir = subprocess.Popen(["sleep", "600"], pass_fds=[lock.descriptor])
    monkeypatch.setattr("ajuste.executor.host.machine_lock.CLEARING_SECONDS", 0.2)
    try:
        uses: tuple[Use, ...] = ("experiment", "restoration")
        for use in uses:
            with (
                pytest.raises(RequestError, match="is still restoring values"),
                MachineLock(use, directory),
            ):
                pass
    finally:
        heir.kill()
        heir.wait()
    with MachineLock("experiment", directory):
        pass


def test_what_an_own_experiment_started_is_waited_for(directory: Path) -> None:
    with MachineLock("experiment", directory) as lock:
        heir = subprocess.Popen(["sleep", "0.3"], pass_fds=[lock.descriptor])
    with MachineLock("experiment", directory):
        pass
    heir.wait()


def test_a_second_one_of_the_same_process_is_refused_at_once(directory: Path) -> None:
    with (
        MachineLock("experiment", directory),
        pytest.raises(RequestError, match="another experiment is running"),
        MachineLock("experiment", directory),
    ):
        pass


def test_a_lock_that_was_removed_lets_nobody_in(directory: Path, users: Users) -> None:
    other = users.holder()
    (directory / OWN).unlink()
    with pytest.raises(RequestError, match=f"process {other.pid}, since"), MachineLock("experiment", directory):
        pass
    assert status(directory)["pid"] == other.pid


@pytest.mark.parametrize("kind", ["link", "hard link", "directory", "fifo", "device", "full directory", "for all"])
@pytest.mark.parametrize("name", [OWN, OWN_STATUS])
@pytest.mark.timeout(60)
@as_root
def test_what_is_in_roots_place_is_taken_away_and_neither_followed_nor_opened(
    directory: Path, tmp_path: Path, kind: str, name: str
) -> None:
    path, victim = directory / name, tmp_path / "victim"
    victim.write_text("precious")
    match kind:
        case "link":
            path.symlink_to(victim)
        case "hard link":
            victim = directory / "victim"
            victim.write_text("precious")
            path.hardlink_to(victim)
        case "directory" | "full directory":
            path.mkdir()
            if kind == "full directory":
                (path / "more").touch()
        case "fifo":
            os.mkfifo(path)
        case "device":
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        case "for all":
            path.touch(0o666)
    os.chown(path, BOB, BOB, follow_symlinks=False)
    with MachineLock("experiment", directory) as lock:
        status = path.lstat()
        assert stat.S_ISREG(status.st_mode)
        assert (status.st_uid, status.st_nlink) == (0, 1)
        assert lock.notes == [f"removed {path}, which Ajuste had not made (it belonged to the user {BOB})"]
    assert victim.read_text() == "precious"


@as_root
def test_a_lock_that_others_could_open_is_made_anew(directory: Path) -> None:
    (directory / OWN).touch(0o644)
    theirs = os.open(directory / OWN, os.O_RDONLY)
    fcntl.flock(theirs, fcntl.LOCK_EX)
    try:
        with MachineLock("experiment", directory):
            assert stat.S_IMODE((directory / OWN).stat().st_mode) == 0o600
    finally:
        os.close(theirs)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00nonsense",
        b"[" * 4000,
        b'{"pid": -1, "boot": "BOOT", "since": "never", "journals": 7}',
        b'{"pid": 1e999, "boot": "BOOT", "since": [], "journals": "relative"}',
        b'{"pid": 1, "started": ' + b"9" * 4000 + b"}",
        b'{"pid": 1, "boot": "of another boot", "journals": "/elsewhere"}',
    ],
)
@pytest.mark.parametrize("name", [OWN, OWN_STATUS])
def test_hostile_content_is_no_matter(directory: Path, content: bytes, name: str) -> None:
    (directory / name).write_bytes(content.replace(b"BOOT", boot_id().encode()))
    (directory / name).chmod(0o600)
    with MachineLock("experiment", directory):
        assert status(directory)["pid"] == os.getpid()


def test_a_process_that_ended_or_another_of_its_number_holds_nothing(directory: Path) -> None:
    for wrong in ({"pid": 2**31 - 1}, {"started": 1}, {"boot": "of another boot"}):
        lie(directory, OWN_STATUS, os.geteuid(), **{"pid": os.getppid(), "started": 1} | wrong)
        with MachineLock("experiment", directory):
            pass


class TestRestoring:
    def test_an_experiment_of_the_same_user_is_in_the_way(self, directory: Path, users: Users) -> None:
        other = users.holder()
        with (
            pytest.raises(RequestError, match=f"another experiment is running.*{other.pid}"),
            MachineLock("restoration", directory),
        ):
            pass

    def test_a_lock_that_is_no_experiments_is_told_and_passed_by(self, directory: Path, users: Users) -> None:
        other = users.holder(use="measurement")
        began = time.monotonic()
        with MachineLock("restoration", directory) as lock:
            assert len(lock.notes) == 1
            assert lock.notes[0].startswith(f"{directory / OWN} is held by process {other.pid}, since ")
            assert lock.notes[0].endswith("which is not an experiment")
        assert time.monotonic() - began < CLEARING_SECONDS, "nobody is waited for"
        assert status(directory)["pid"] == other.pid, "it still says that it has the machine"

    def test_so_is_one_that_any_program_holds(self, directory: Path) -> None:
        descriptor = os.open(directory / OWN, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            with MachineLock("restoration", directory) as lock:
                assert f"held by process {os.getpid()}, which is not an experiment" in lock.notes[0]
        finally:
            os.close(descriptor)

    def test_nothing_begins_meanwhile(self, directory: Path, users: Users) -> None:
        with MachineLock("restoration", directory):
            assert "2 values are being restored on this machine" in users.begin()


@as_root
class TestOfSeveralUsers:
    @pytest.mark.parametrize(("first", "second"), [(0, ADA), (ADA, 0), (ADA, BOB)])
    def test_one_experiment_at_a_time_holds_across_users(self, users: Users, first: int, second: int) -> None:
        other = users.holder(first)
        answer = users.begin(second)
        assert answer.startswith(f"2 another experiment is running on this machine: process {other.pid} of the user ")
        other.kill()
        other.wait()
        assert users.begin(second) == "held"

    def test_a_user_who_was_refused_is_in_nobodys_way(self, directory: Path, users: Users) -> None:
        other = users.holder(0)
        assert users.begin(ADA).startswith("2 ")
        other.kill()
        other.wait()
        assert not (directory / status_name(ADA)).exists()
        assert users.begin(BOB) == "held"

    def test_nobody_else_can_open_or_lock_roots_file(self, directory: Path, users: Users) -> None:
        users.holder(0)
        for mode in ("r", "a"):
            script = f"import fcntl; fcntl.flock(open({str(directory / 'ajuste.lock')!r}, {mode!r}), fcntl.LOCK_EX)"
            done = subprocess.run(
                ["setpriv", f"--reuid={ADA}", f"--regid={ADA}", "--clear-groups", "/usr/bin/python3", "-c", script],
                capture_output=True,
                text=True,
                check=False,
            )
            assert "PermissionError" in done.stderr

    def test_restoring_is_kept_up_by_no_other_user(self, users: Users) -> None:
        other = users.holder(ADA)
        answer = users.begin(0, "restoration")
        assert answer.startswith("held this machine is in use: process ")
        assert f"process {other.pid} of the user nobody" in answer

    def test_a_foreign_file_in_a_users_place_is_refused_and_says_what_to_do(
        self, directory: Path, users: Users
    ) -> None:
        for name in (lock_name(ADA), status_name(ADA)):
            (directory / name).touch(0o666)
            os.chown(directory / name, BOB, BOB)
            answer = users.begin(ADA)
            assert answer.startswith("2 ")
            assert str(directory / name) in answer
            assert (directory / name).stat().st_uid == BOB
            (directory / name).unlink()

    @pytest.mark.parametrize(
        ("name", "owner"),
        [
            (status_name(0), BOB),
            (status_name(ADA), BOB),
            (status_name(BOB), BOB),
            (status_name(BOB), ADA),
            ("ajuste-1-2.status", BOB),
            ("ajuste-0.status", 0),
        ],
    )
    def test_a_status_of_somebody_elses_process_is_not_believed(self, directory: Path, name: str, owner: int) -> None:
        path = lie(directory, name, owner, pid=os.getppid(), started=started_ticks(os.getppid()))
        with MachineLock("experiment", directory):
            pass
        assert path.exists() == (name != OWN_STATUS)

    @pytest.mark.timeout(60)
    def test_what_lies_in_the_others_places_makes_nobody_wait(self, directory: Path, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text(json.dumps({"pid": 1}))
        (directory / status_name(1)).symlink_to(secret)
        (directory / status_name(2)).mkdir()
        os.mkfifo(directory / status_name(3))
        os.mknod(directory / status_name(4), stat.S_IFCHR | 0o666, os.makedev(1, 5))
        (directory / status_name(5)).write_bytes(b"[" * (1 << 20))
        uses: tuple[Use, ...] = ("measurement", "restoration")
        for use in uses:
            with MachineLock(use, directory) as lock:
                assert lock.notes == []
