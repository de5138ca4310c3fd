"""Man pages say what the help says, and man has nothing to complain about."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import typer.main
from writing.manual import man_pages

from ajuste.cli.main import COMMANDS, whole_application

PAGES = man_pages()
ONE_LINE = {"LC_ALL": "C.UTF-8", "MANWIDTH": "4000"}


def test_every_command_has_a_page() -> None:
    assert list(PAGES) == ["ajuste", *(f"ajuste-{name}" for name in COMMANDS)]


@pytest.mark.skipif(shutil.which("man") is None or shutil.which("groff") is None, reason="man is not installed")
def test_man_finds_nothing_wrong_and_shows_every_option(tmp_path: Path) -> None:
    commands = typer.main.get_command(whole_application()).commands  # type: ignore[attr-defined]
    for name, text in PAGES.items():
        page = tmp_path / f"{name}.1"
        page.write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["man", "--warnings", "--encoding=UTF-8", "--local-file", page],
            env={**os.environ, **ONE_LINE},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        rendered = " ".join(done.stdout.split())
        for option in commands[name.partition("-")[2]].params if "-" in name else ():
            for word in (*option.opts, *option.secondary_opts) if option.param_type_name == "option" else ():
                assert word in rendered, f"{name}: {word}"
            description = " ".join((getattr(option, "help", "") or "").split())
            assert description.rstrip(".").replace("…", "...") in rendered, f"{name}: {description}"


def test_a_line_that_begins_like_a_request_is_text() -> None:
    assert not any(line.startswith("'") for text in PAGES.values() for line in text.splitlines())
