"""Journals that sessions have left, and those that nobody should believe, as ``ajuste-agent restore`` reads them."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.agent.conftest import Runner, Told
from tests.agent.serving import EXPIRE, SETTINGS, write

from ajuste.model.event import Failed, Journal, Restored, parse_event

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: settings of this machine are changed")


@pytest.fixture
def as_before(own_machine: None) -> Iterator[str]:
    before = Path(EXPIRE).read_text()
    yield before.strip()
    assert Path(EXPIRE).read_text() == before


def header(**changes: Any) -> dict[str, Any]:
    """Return that of a session whose agent is gone: no process ever has the number 0."""
    plain = {"journal": 1, "session": "s", "boot": BOOT, "pid": 0, "started_ticks": 1, "began_s": int(time.time())}
    return plain | changes


def step(path: str, before: str) -> dict[str, Any]:
    return {"undo": "value", "tunable": Path(path).name, "location": {"kind": "file", "path": path}, "before": before}


def journal(directory: Path, *lines: dict[str, Any] | str, name: str = "s.journal") -> Path:
    file = directory / name
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    file.write_text(text)
    file.chmod(0o600)
    return file


class Restoring:
    """``ajuste-agent restore`` with a registry of its own, permitted to write ``permit``."""

    def __init__(self, agent: str, registry: Path) -> None:
        self.agent = agent
        self.registry = registry

    def __call__(self, *places: Path | str, permit: Iterable[str] = SETTINGS) -> Told:
        argv = [self.agent, "restore", "--registry", self.registry, "--permit", "-", *places]
        permitted = json.dumps([{"kind": "file", "path": path} for path in permit])
        done = subprocess.run(argv, input=permitted, capture_output=True, text=True, timeout=60)
        return Told(done.returncode, done.stderr, tuple(parse_event(line) for line in done.stdout.splitlines()))


@pytest.fixture
def restore(agent: str, tmp_path_factory: pytest.TempPathFactory) -> Restoring:
    return Restoring(agent, tmp_path_factory.mktemp("registry"))


def states(trial: Told) -> list[str]:
    return [event.state for event in trial.of(Journal)]


@is_root
def test_what_a_journal_says_is_put_back_and_the_journal_is_gone(
    restore: Restoring, tmp_path: Path, as_before: str
) -> None:
    journal(tmp_path, header(), step(EXPIRE, as_before))
    Path(EXPIRE).write_text("2986")
    trial = restore(tmp_path)
    (restored,) = trial.of(Restored)
    assert (restored.found, restored.value) == ("2986", as_before)
    assert (states(trial), trial.exit_code) == (["restored"], 0)
    assert list(tmp_path.iterdir()) == []
    assert restore(tmp_path).events == ()


@is_root
def test_the_last_that_it_says_of_a_place_counts(restore: Restoring, tmp_path: Path, as_before: str) -> None:
    file = journal(tmp_path, header(), step(EXPIRE, "1111"), step(EXPIRE, as_before))
    trial = restore(file)
    assert [event.value for event in trial.of(Restored)] == [as_before]


@is_root
def test_what_cannot_be_put_back_stays_in_it_and_the_rest_does_not(
    restore: Restoring, tmp_path: Path, as_before: str
) -> None:
    file = journal(tmp_path, header(), step("/proc/sys/kernel/ostype", "Plan 9"), step(EXPIRE, as_before))
    Path(EXPIRE).write_text("2986")
    trial = restore(file, permit=[EXPIRE, "/proc/sys/kernel/ostype"])
    assert (states(trial), trial.exit_code) == (["kept"], 1)
    assert [event.tunable for event in trial.of(Restored)] == ["dirty_expire_centisecs"]
    assert "Permission denied" in trial.failed.message
    assert json.loads(file.read_text().splitlines()[-1]) == {"done": 1}
    Path(EXPIRE).write_text("2986")
    assert restore(file).of(Restored) == []
    Path(EXPIRE).write_text(as_before)


@is_root
def test_a_place_that_is_gone_is_said_and_keeps_nobody(restore: Restoring, tmp_path: Path, as_before: str) -> None:
    gone = "/sys/block/loop99999/queue/scheduler"
    trial = restore(journal(tmp_path, header(), step(gone, "none"), step(EXPIRE, as_before)), permit=[gone, EXPIRE])
    assert (trial.failed.tunable, states(trial), trial.exit_code) == ("scheduler", ["restored"], 0)
    assert [event.value for event in trial.of(Restored)] == [as_before]


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/sys/../../etc/passwd", "/proc/self/root/etc/passwd"])
def test_nothing_is_written_where_tunables_are_not(restore: Restoring, tmp_path: Path, path: str) -> None:
    before = Path("/etc/passwd").read_bytes()
    trial = restore(journal(tmp_path, header(), step(path, "x")), permit=[path])
    assert (states(trial), trial.exit_code) == (["kept"], 1)
    assert "plain path" in trial.failed.message
    assert Path("/etc/passwd").read_bytes() == before


@pytest.mark.parametrize("path", ["/sys/fs/cgroup", "/sys/fs/cgroup/ajuste-1/..", "tmp", "/", "/etc"])
def test_nothing_is_removed_that_no_agent_has_made(restore: Restoring, tmp_path: Path, path: str) -> None:
    trial = restore(journal(tmp_path, header(), {"undo": "made", "path": path}))
    assert (states(trial), trial.exit_code) == (["kept"], 1)
    assert len(trial.of(Failed)) == 1


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["no header"], "no line of it can be read"),
        ([header(journal=3)], "it is of version 3, this agent understands 2"),
    ],
)
def test_a_malformed_one_is_kept(restore: Restoring, tmp_path: Path, lines: list[Any], words: str) -> None:
    file = journal(tmp_path, *lines)
    trial = restore(file)
    assert (states(trial), trial.exit_code) == (["malformed"], 1)
    assert (trial.of(Journal)[0].message or "").startswith(words)
    assert file.exists()


def test_one_that_others_can_write_is_not_believed(restore: Restoring, tmp_path: Path) -> None:
    file = journal(tmp_path, header())
    file.chmod(0o622)
    (event,) = restore(file).of(Journal)
    assert (event.state, event.message) == ("malformed", "others may write it")


@is_root
def test_one_of_another_user_is_not_believed(restore: Restoring, tmp_path: Path) -> None:
    file = journal(tmp_path, header(), step(EXPIRE, "1111"))
    os.chown(file, 65534, 65534)
    (event,) = restore(file).of(Journal)
    assert (event.state, event.message) == (
        "malformed",
        "it belongs to the user 65534, neither to root nor to the caller",
    )


def test_a_link_and_a_pipe_are_no_journals(restore: Restoring, tmp_path: Path) -> None:
    (tmp_path / "a.journal").symlink_to(journal(tmp_path, header(), name="elsewhere"))
    os.mkfifo(tmp_path / "b.journal")
    trial = restore(tmp_path)
    assert (states(trial), trial.exit_code) == (["malformed", "malformed"], 1)


def test_a_directory_that_is_not_there_is_said(restore: Restoring, tmp_path: Path) -> None:
    trial = restore(tmp_path / "none")
    assert (trial.failed.stage, trial.exit_code) == ("journal", 1)
    assert trial.failed.message == f"{tmp_path}/none: No such file or directory"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 400))
def test_wherever_it_is_cut_off_the_whole_lines_count(restore: Restoring, as_before: str, cut: int) -> None:
    """The values are those that are there, so that nothing changes; under the lock, for other tests change them."""
    steps = [step(place, Path(place).read_text().strip()) for place in SETTINGS[:2]]
    whole = "".join(json.dumps(line) + "\n" for line in (header(), *steps))
    with tempfile.TemporaryDirectory() as directory:
        file = journal(Path(directory))
        file.write_text(whole[:cut])
        lines = whole[:cut].count("\n")
        trial = restore(file)
        assert (states(trial), trial.exit_code) == (["restored" if lines else "foreign"], 0)
        assert len(trial.of(Restored)) == max(lines - 1, 0)
        assert file.exists() == (not lines)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(garbage=st.binary(max_size=300))
def test_garbage_changes_nothing_and_never_crashes(restore: Restoring, garbage: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = journal(Path(directory))
        file.write_bytes(json.dumps(header()).encode() + b"\n" + garbage + b"\n")
        trial = restore(file)
        assert trial.exit_code in (0, 1)
        assert trial.complaint == ""
        assert len(states(trial)) == 1
        assert trial.of(Restored) == []


@is_root
def test_a_full_disk_changes_nothing(run: Runner, agent: str, tmp_path: Path, as_before: str) -> None:
    """Fill the file system of the journal, which has one page and no second."""
    place, mark = tmp_path / "small", tmp_path / "mark"
    place.mkdir()
    writes = [write(EXPIRE, "2986") | {"tunable": "x" * 5000}]
    plan = tmp_path / "plan"
    plan.write_text(json.dumps({"id": "t", "writes": writes, "workload": {"argv": ["touch", str(mark)]}}))
    command = f"{agent} run --journal {place} --registry {tmp_path}/registry --plan {plan}"
    script = f"mount -t tmpfs -o size=4k none {place} && {command}; ls {place}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=60)
    trial = run.trial(
        done.returncode, done.stderr, "".join(line for line in done.stdout.splitlines(True) if "{" in line)
    )
    assert trial.failed.stage == "journal"
    assert trial.failed.message.endswith(".journal: No space left on device")
    assert done.stdout.splitlines()[-1].startswith("{"), "no journal is left"
    assert not mark.exists()


@is_root
def test_without_a_place_for_the_journal_nothing_is_changed(run: Runner, agent: str, tmp_path: Path) -> None:
    plan = json.dumps({"id": "t", "writes": [write(EXPIRE, "2986")]})
    argv = [agent, "run", "--journal", str(tmp_path / "none"), "--registry", str(tmp_path / "registry")]
    done = subprocess.run(argv, input=plan, capture_output=True, text=True, timeout=60)
    trial = run.trial(done.returncode, done.stderr, done.stdout)
    assert (trial.failed.stage, trial.exit_code) == ("journal", 1)
    assert trial.failed.message.endswith("No such file or directory")
