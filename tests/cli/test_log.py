"""The log of a command: JSON lines in a file of one's own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shell import Shell

EXPIRE = Path("/proc/sys/vm/dirty_expire_centisecs")


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="ascii").splitlines()]


def named(entries: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [line for line in entries if line["event"] == event]


@pytest.mark.usefixtures("machine_lock")
def test_an_experiment_is_logged_from_its_configuration_to_its_end(ajuste: Shell, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    document = json.loads(ajuste("--log", str(log), "compare", "--json", "--blocks", "2", "--", "true")[0])
    entries = lines(log)
    assert entries[0]["event"] == "command begun"
    assert entries[0]["arguments"][2:] == ["compare", "--json", "--blocks", "2", "--", "true"]
    assert (entries[-1]["event"], entries[-1]["exit_code"]) == ("command ended", 0)
    assert named(entries, "configuration read")[0]["state"].startswith(str(ajuste.home))
    assert [(line["kernel"], line["release"]) for line in named(entries, "kernel resolved")] == [
        ("host", os.uname().release)
    ]
    assert [line["run"] for line in named(entries, "run begun") + named(entries, "run ended")] == [document["run"]] * 2
    started, ended = named(entries, "trial begun"), named(entries, "trial ended")
    assert 1 <= len(started) <= len(ended)
    assert {line["block"] for line in ended} == {0, 1, 2}  # of these the first is to warm up
    assert all(line["level"] == ("INFO" if line["status"] == "ok" else "WARNING") for line in ended)
    times = [datetime.fromisoformat(line["time"]) for line in entries]
    assert times == sorted(times)
    assert all(time.utcoffset() == timedelta(0) for time in times)
    assert times[-1] <= datetime.now(UTC)
    assert {line["module"].partition(".")[0] for line in entries} == {"ajuste"}
    assert document["reproduce"] == ["ajuste compare --blocks 2 -- true"], "the log is no part of what was measured"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change settings")
@pytest.mark.usefixtures("machine_lock")
def test_settings_are_logged_as_written_and_as_restored(ajuste: Shell, tmp_path: Path) -> None:
    log, before = tmp_path / "log.jsonl", EXPIRE.read_text().strip()
    other = str(int(before) + 1)
    levels = f"vm.dirty_expire_centisecs={before},{other}"
    ajuste("--log", str(log), "compare", "--set", levels, "--blocks", "2", "--", "true")
    entries = lines(log)
    changed = {tuple(line["settings"]["vm.dirty_expire_centisecs"]) for line in named(entries, "settings written")}
    assert changed == {(before, before), (before, other)}
    restored = named(entries, "settings restored")
    assert {line["settings"]["vm.dirty_expire_centisecs"] for line in restored} == {before}
    assert len(restored) == len(named(entries, "settings written"))


@pytest.mark.vm
def test_kernels_and_guests_are_logged(ajuste: Shell, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    ajuste("--log", str(log), "run", "small.toml")
    entries = lines(log)
    assert named(entries, "study read")[0]["study"] == "small"
    (kernel,) = named(entries, "kernel resolved")
    assert kernel["kernel"] == "debian:5.10"
    (at_gate,) = named(entries, "guest booted") + named(entries, "snapshot found")
    assert at_gate["kernel"] == kernel["release"]
    assert len(named(entries, "settings written")) == len(named(entries, "trial ended"))
    assert named(entries, "settings restored") == []  # a guest is thrown away


def test_a_command_that_fails_logs_its_error(ajuste: Shell, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    ajuste(f"--log={log}", "plan", "no\nsuch\x1b[2J\u202estudy", expect=2)
    (failed,) = named(lines(log), "command failed")
    assert (failed["level"], failed["exit_code"]) == ("ERROR", 2)
    assert "not found" in failed["error"]
    assert failed["traceback"].startswith("Traceback")
    assert lines(log)[-1]["exit_code"] == 2
    assert not any(sign in log.read_text() for sign in "\x1b\u202e")


def test_a_wrong_option_is_logged_and_commands_append(ajuste: Shell, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    ajuste("--log", str(log), "studies")
    ajuste("--log", str(log), "plan", "--nonsense", expect=2)
    entries = lines(log)
    assert [line["exit_code"] for line in named(entries, "command ended")] == [0, 2]
    assert "--nonsense" in named(entries, "command failed")[0]["error"]


def test_the_terminal_shows_the_same(ajuste: Shell, tmp_path: Path) -> None:
    assert ajuste("--log", str(tmp_path / "log.jsonl"), "studies") == ajuste("studies")


def test_only_its_user_reads_the_log_whatever_it_was_before(ajuste: Shell, tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.touch(mode=0o666)
    for log in (new, old):
        ajuste("--log", str(log), "studies")
        assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("place", ["/", "/tmp"])
def test_a_directory_is_no_log(ajuste: Shell, place: str) -> None:
    assert "it is a directory" in " ".join(ajuste("--log", place, "studies", expect=2)[1].split())


@pytest.mark.parametrize("what", ["link", "dangling link", "directory", "fifo", "nowhere"])
def test_what_is_no_file_of_ones_own_is_refused_and_left_alone(ajuste: Shell, tmp_path: Path, what: str) -> None:
    log, aim = tmp_path / "log", tmp_path / "aim"
    if what == "link":
        aim.write_text("kept")
    if "link" in what:
        log.symlink_to(aim)
    elif what == "directory":
        log.mkdir()
    elif what == "fifo":
        os.mkfifo(log)
    else:
        log = tmp_path / "no" / "log"
    printed, complained = ajuste("--log", str(log), "studies", expect=2)
    assert printed == ""
    assert f"--log {log}: the log cannot be written: " in complained.replace("\n", "")
    assert not aim.exists() or aim.read_text() == "kept"


def test_a_log_that_cannot_be_finished_is_said_to_be_incomplete(ajuste: Shell, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = subprocess.run(
        [Path(sys.executable).parent / "ajuste", "--log", log, "studies"],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1)),
        env={**os.environ, "AJUSTE_HOME": str(ajuste.home), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert "granularity" in done.stdout
    assert f"the log {log} is incomplete: " in done.stderr
