from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.machine.home import native_program
from ajuste.model.error import RequestError


def test_the_named_directory_is_the_only_one(tmp_path: Path) -> None:
    program = tmp_path / "ajuste-agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert native_program("ajuste-agent", {"AJUSTE_NATIVE": str(tmp_path)}) == program
    with pytest.raises(RequestError, match="program ajuste-workloads not found"):
        native_program("ajuste-workloads", {"AJUSTE_NATIVE": str(tmp_path)})


def test_what_cannot_be_executed_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "ajuste-agent").touch(mode=0o644)
    with pytest.raises(RequestError, match="not found"):
        native_program("ajuste-agent", {"AJUSTE_NATIVE": str(tmp_path)})


def test_what_is_no_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ajuste-agent").touch(mode=0o755)
    with pytest.raises(RequestError, match="ajuste-agent is not a program of Linux"):
        native_program("ajuste-agent", {"AJUSTE_NATIVE": str(tmp_path)})


def test_the_error_names_the_build_command() -> None:
    with pytest.raises(RequestError) as caught:
        native_program("no-such-program", {})
    assert "make setup" in (caught.value.hint or "")
