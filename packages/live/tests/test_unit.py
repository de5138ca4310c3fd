"""The unit of a live experiment: what it says, and that it is gone at the end. A fake takes systemctl's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste_live.unit import ENDED, install_unit, is_installed, leave_unit, require_systemd, unit_text

COMMAND = ("/opt/ajuste", "live", "--metric", 'a,s,lower=regex:/log#^"(\\d+) %s$')


class Systemctl:
    """Notes what it is called with; what is in ``fails`` fails."""

    def __init__(self, *fails: str) -> None:
        self.called: list[str] = []
        self.fails = fails

    def __call__(self, *words: str) -> None:
        self.called.append(" ".join(words))
        if words[0] in self.fails:
            raise RunError(f"systemctl {words[0]} failed")


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


def test_an_installed_unit_is_enabled_started_and_gone_once_its_experiment_has_ended(
    place: Home, tmp_path: Path
) -> None:
    call = Systemctl()
    unit = install_unit(COMMAND, "live", place, {"HOME": "/root"}, tmp_path, call)
    assert call.called == ["daemon-reload", f"enable {unit}", f"restart {unit}"]
    assert is_installed("live", tmp_path)
    text = (tmp_path / unit).read_text()
    (ended,) = (line.split("=!")[1] for line in text.splitlines() if line.startswith("ConditionPathExists"))
    leave_unit({ENDED: ended}, tmp_path, call)
    assert not is_installed("live", tmp_path)
    assert Path(ended).exists(), "else a unit that systemd still knows would begin anew"
    assert call.called[3:] == [f"disable {unit}", "daemon-reload"]


def test_the_end_without_a_unit_removes_nothing(tmp_path: Path) -> None:
    call = Systemctl()
    leave_unit({}, tmp_path, call)
    assert call.called == []


@pytest.mark.parametrize("fails", ["daemon-reload", "enable", "restart"])
def test_a_unit_that_does_not_start_is_not_left(place: Home, tmp_path: Path, fails: str) -> None:
    with pytest.raises(RunError, match=fails):
        install_unit(COMMAND, "live", place, {}, tmp_path, Systemctl(fails))
    assert not is_installed("live", tmp_path)


def test_a_systemctl_that_fails_keeps_no_unit(place: Home, tmp_path: Path) -> None:
    install_unit(COMMAND, "live", place, {}, tmp_path, Systemctl())
    leave_unit({ENDED: str(tmp_path / "live.ended")}, tmp_path, Systemctl("disable", "daemon-reload"))
    assert not is_installed("live", tmp_path)


def test_the_agent_outlives_a_crash_and_what_is_left_is_restored_first() -> None:
    lines = unit_text(COMMAND, "live", Path("/state/100 %"), {"AJUSTE_HOME": "/a$b", "EDITOR": "ed"}).splitlines()
    assert "KillMode=process" in lines, "systemd would kill the agent before it has restored"
    assert "ExecStartPre=/opt/ajuste restore" in lines
    assert 'ExecStart=/opt/ajuste live --metric "a,s,lower=regex:/log#^\\"(\\\\d+) %%s$$"' in lines
    assert "ConditionPathExists=!/state/100 %%" in lines
    assert 'Environment="AJUSTE_HOME=/a$b"' in lines, "a dollar sign is only itself there"
    assert not any("EDITOR" in line for line in lines)


def test_without_systemd_nothing_is_installed(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="--install requires systemd"):
        require_systemd(tmp_path / "nothing")
