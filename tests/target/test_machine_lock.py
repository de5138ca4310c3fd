"""The machine's lock, in a directory of the test's own that everybody may write into."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ajuste.model.error import RequestError
from ajuste.target.machine_lock import MachineLock
from ajuste.this_boot import boot_id

HOLD = """
import os, sys, time
from pathlib import Path
from ajuste.target.machine_lock import MachineLock
lock = MachineLock(Path("/of/another/home"), Path(sys.argv[1]))
if len(sys.argv) > 2:
    os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
with lock:
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o1777)
        yield Path(directory) / "ajuste.lock"


@pytest.fixture
def other(path: Path, request: pytest.FixtureRequest) -> subprocess.Popen[str]:
    """Another process that holds the lock."""
    return hold(path, request)


def hold(path: Path, request: pytest.FixtureRequest, *more: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, path, *more], stdout=subprocess.PIPE, text=True)

    def end() -> None:
        process.kill()
        process.communicate()

    request.addfinalizer(end)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_one_is_refused_and_told_who_and_since_when(path: Path, other: subprocess.Popen[str]) -> None:
    since = json.loads(path.read_text())["since"]
    with (
        pytest.raises(RequestError, match=f"process {other.pid}, since {since[:4]}-") as caught,
        MachineLock(path, path),
    ):
        pass
    assert caught.value.exit_code == 2


def test_it_is_free_when_its_holder_is_killed(path: Path, other: subprocess.Popen[str]) -> None:
    other.send_signal(signal.SIGKILL)
    other.wait()
    with MachineLock(path, path) as lock:
        assert json.loads(path.read_text())["pid"] == os.getpid()
        assert lock.journals_before == Path("/of/another/home")


def test_whoever_has_the_descriptor_holds_it_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MachineLock(path, path) as lock:
        heir = subprocess.Popen(["sleep", "600"], pass_fds=[lock.descriptor])
    monkeypatch.setattr("ajuste.target.machine_lock.CLEARING_SECONDS", 0.2)
    try:
        with pytest.raises(RequestError, match="still puts values back"), MachineLock(path, path):
            pass
    finally:
        heir.kill()
        heir.wait()
    with MachineLock(path, path):
        pass


def test_what_an_own_experiment_started_is_waited_for(path: Path) -> None:
    with MachineLock(path, path) as lock:
        heir = subprocess.Popen(["sleep", "0.3"], pass_fds=[lock.descriptor])
    with MachineLock(path, path):
        pass
    heir.wait()


def test_a_second_one_of_the_same_process_is_refused_at_once(path: Path) -> None:
    with (
        MachineLock(path, path),
        pytest.raises(RequestError, match="another experiment goes on"),
        MachineLock(path, path),
    ):
        pass


def test_nothing_is_written_through_a_link(path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for make in (path.symlink_to, path.hardlink_to):
        make(victim)
        with pytest.raises(RequestError, match="no file that can be used"), MachineLock(path, path):
            pass
        assert victim.read_text() == "precious"
        path.unlink()


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_what_is_no_file_is_refused(path: Path, kind: str) -> None:
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    with pytest.raises(RequestError, match=f"rm {path}|no file that can be used"), MachineLock(path, path):
        pass


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00nonsense",
        b"[" * 4000,
        b'{"pid": -1, "boot": "BOOT", "since": "never", "journals": 7}',
        b'{"pid": 1e999, "boot": "BOOT", "since": [], "journals": "relative"}',
        b'{"pid": 1, "boot": "of another boot", "journals": "/elsewhere"}',
    ],
)
def test_hostile_content_is_no_matter(path: Path, content: bytes) -> None:
    path.write_bytes(content.replace(b"BOOT", boot_id().encode()))
    with MachineLock(path, path) as lock:
        assert lock.journals_before is None
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_a_liar_cannot_name_another_holder(path: Path, other: subprocess.Popen[str]) -> None:
    path.write_text(json.dumps({"pid": 1, "boot": boot_id(), "since": "2001-01-01T00:00:00+00:00"}))
    with pytest.raises(RequestError, match=f"process {other.pid}$"), MachineLock(path, path):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
class TestOfSeveralUsers:
    def test_roots_file_locks_others_out(self, path: Path, request: pytest.FixtureRequest) -> None:
        with MachineLock(path, path):
            pass
        nobody = hold(path, request, "nobody")
        with pytest.raises(RequestError, match=f"process {nobody.pid}"), MachineLock(path, path):
            pass

    def test_anothers_file_becomes_roots(self, path: Path, request: pytest.FixtureRequest) -> None:
        nobody = hold(path, request, "nobody")
        assert path.stat().st_uid == 65534
        with pytest.raises(RequestError, match=f"process {nobody.pid}, since"), MachineLock(path, path):
            pass
        nobody.kill()
        nobody.wait()
        with MachineLock(path, path) as lock:
            assert lock.journals_before is None, "another user's word is not believed"
            assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (0, 0o644)
