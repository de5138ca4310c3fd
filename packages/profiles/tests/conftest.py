"""Profiles that a test writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.study.profile import Profile
from ajuste_profiles.tuned import FILE, Folders, MachineFacts, read_tuned

FACTS = MachineFacts((0, 1), cpuinfo="model name\t: Some AMD CPU\n")

Write = Callable[..., Path]
Read = Callable[..., Profile]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("child", "[main]…")`` makes the profile of that name, in ``later/`` with ``folder="later"``."""

    def made(name: str, text: str, folder: str = "own") -> Path:
        path = tmp_path / folder / name / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return made


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """``read("child")`` reads a profile that was written; those in ``own/`` come before those in ``later/``."""

    def done(name: str, facts: MachineFacts = FACTS) -> Profile:
        folders = Folders([tmp_path / "own", tmp_path / "later"], tmp_path)
        return read_tuned(folders.candidates(name)[0], folders, facts, spec=f"tuned:{name}", origin="here")

    return done
