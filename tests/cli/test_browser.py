"""``--open``: a browser as the caller's own, or a note that says why there is none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ajuste.cli.showing import open_report

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


class Started:
    def __init__(self, code: int = 0) -> None:
        self.code, self.words, self.options = code, [], {}  # type: ignore[var-annotated]

    def __call__(self, words: list[Any], **options: Any) -> subprocess.CompletedProcess[str]:
        self.words, self.options = words, options
        return subprocess.CompletedProcess(words, self.code)


@pytest.fixture
def desktop(tmp_path: Path) -> dict[str, str]:
    program = tmp_path / "xdg-open"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return {"PATH": str(tmp_path), "DISPLAY": ":0"}


def test_the_report_is_opened(desktop: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    started = Started()
    open_report(Path("r.html"), desktop, started)
    assert started.words == [f"{desktop['PATH']}/xdg-open", Path.cwd() / "r.html"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"PATH": "/nowhere"}, 0, "xdg-utils"),
        ({"DISPLAY": ""}, 0, "no display"),
        ({}, 3, "exit code 3"),
    ],
)
def test_where_there_is_none_the_reason_and_the_path_are_said(
    desktop: dict[str, str], changes: dict[str, str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    open_report(Path("r.html"), desktop | changes, Started(code))
    messages = capsys.readouterr().err
    assert words in messages
    assert "r.html" in messages


@as_root
def test_under_sudo_the_browser_is_the_callers(desktop: dict[str, str]) -> None:
    started = Started()
    open_report(Path("r.html"), desktop | {"SUDO_UID": "65534", "SUDO_GID": "65534"}, started)
    assert (started.options["user"], started.options["group"]) == (65534, 65534)
    assert started.options["env"]["XDG_RUNTIME_DIR"] == "/run/user/65534"
    assert not any(name.startswith("SUDO_") for name in started.options["env"])
