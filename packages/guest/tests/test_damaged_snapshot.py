"""A kept snapshot that was damaged: the figures are the same, and every report says what happened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ajuste.machine.home import home
from shell import SMALL, Shell

SAID = "The kept snapshot of debian:5.10 could not be used"


@pytest.fixture
def ajuste(tmp_path: Path) -> Shell:
    """A home with machines of its own that have booted, and the ordinary kernels."""
    place = tmp_path / "home"
    (place / "cache").mkdir(parents=True)
    for name in ("kernels", "qemu", "lists"):
        (home().cache / name).mkdir(parents=True, exist_ok=True)
        (place / "cache" / name).symlink_to(home().cache / name)
    (tmp_path / "small.toml").write_text(SMALL)
    return Shell(tmp_path, place)


@pytest.mark.vm
@pytest.mark.slow
def test_the_digest_is_the_right_one_and_terminal_json_and_report_say_it(ajuste: Shell, tmp_path: Path) -> None:
    undisturbed = ajuste.json("run", "small.toml")
    assert not any(SAID in note for note in undisturbed["notes"])
    (snapshot,) = (ajuste.home / "cache/booted").glob("*.snapshot")
    content = bytearray(snapshot.read_bytes())
    content[len(content) // 3] ^= 1
    snapshot.write_bytes(content)
    half_made = snapshot.with_name("x.snapshot.1.new")
    half_made.write_bytes(b"of a command that was killed")
    os.utime(half_made, (1_000_000, 1_000_000))
    again = ajuste.json("run", "small.toml", "--fresh", "--report", str(tmp_path / "report.html"))
    assert again["digest"] == undisturbed["digest"]
    assert sum(SAID in note for note in again["notes"]) == 1
    assert not half_made.exists()
    assert SAID in (tmp_path / "report.html").read_text()
    assert SAID in " ".join(ajuste("report", again["run"])[0].split())
    once_more = ajuste.json("run", "small.toml", "--fresh")
    assert once_more["digest"] == undisturbed["digest"]
    assert not any(SAID in note for note in once_more["notes"])
