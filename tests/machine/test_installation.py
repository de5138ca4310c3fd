"""The line to type where root is needed: it works as it is printed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from ajuste.machine.home import as_root


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.touch(mode=0o755)
    return path


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person has typed a command of a program that is called by its whole path."""
    path = program(tmp_path / "lib" / "bin" / "ajuste")
    sudo = program(tmp_path / "tools" / "sudo")
    monkeypatch.setenv("PATH", str(sudo.parent))
    monkeypatch.delenv("AJUSTE_HOME", raising=False)
    monkeypatch.delenv("AJUSTE_NATIVE", raising=False)
    monkeypatch.setattr(sys, "argv", [str(path), "compare", "--set", "vm.swappiness=10,60", "--", "a b"])
    return path


def test_the_whole_path_is_given_where_sudo_does_not_find_the_name(typed: Path, tmp_path: Path) -> None:
    line = as_root(path=str(tmp_path / "tools"))
    assert shlex.split(line) == ["sudo", str(typed), *sys.argv[1:]]


def test_the_name_is_enough_where_sudo_finds_the_same_program(typed: Path, tmp_path: Path) -> None:
    secure = tmp_path / "secure"
    secure.mkdir()
    (secure / "ajuste").symlink_to(typed)
    assert shlex.split(as_root(path=str(secure)))[:3] == ["sudo", "ajuste", "compare"]
    (secure / "ajuste").unlink()
    program(tmp_path / "other" / "ajuste").rename(secure / "ajuste")
    assert shlex.split(as_root(path=str(secure)))[1] == str(typed)


def test_a_home_of_ones_own_is_named_because_sudo_forgets_it(
    typed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AJUSTE_HOME", "/some where")
    line = as_root(["restore", "/j"], path=str(tmp_path / "tools"))
    assert shlex.split(line) == ["sudo", "AJUSTE_HOME=/some where", str(typed), "restore", "/j"]


def test_without_sudo_it_is_su(typed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    su, option, command = shlex.split(as_root(path=str(tmp_path / "tools")))
    assert (su, option) == ("su", "-c")
    assert shlex.split(command) == [str(typed), *sys.argv[1:]]
