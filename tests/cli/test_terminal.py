"""Output on a terminal: progress that stays in place, then the answer and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from namespace import needs_root
from screen import Screen
from shell import Shell
from small_kernel import small_kernel

HOST_STUDY = """\
schema = 1
name = "waiting"
question = "How long does it wait?"
factor = []

[workload]
command = ["sleep", "0.2"]

[target]
kind = "host"

[analysis]
metrics = ["elapsed"]

[budget]
min_blocks = 4
max_blocks = 4
"""
COMPARE = ("compare", "--blocks", "4", "--", "sleep", "0.2")


def require_clean(screen: Screen, progress: str, answer: str) -> None:
    """``progress`` was there, has gone, and the ``answer`` stands; no control code is to be read."""
    assert screen.showed(progress)
    assert progress not in screen.text
    assert answer in " ".join(screen.text.split())
    assert not re.search(r"\\x1b|\\u00|\[2K", screen.text)
    assert not screen.cursor_is_hidden


@pytest.mark.usefixtures("machine_lock")
@pytest.mark.parametrize(
    ("words", "columns", "progress", "answer"),
    [
        (COMPARE, 80, "Running sleep 0.2 (block", "Elapsed time of sleep 0.2: "),
        (COMPARE, 40, "Running sleep 0.2 (block", "Elapsed time of sleep 0.2: "),
        (("run", "waiting.toml"), 80, "Running ", "4 blocks"),
        (("doctor", "--quick"), 80, "measuring the job: run ", "This machine is "),
    ],
    ids=["compare", "compare in 40 columns", "run", "doctor"],
)
def test_progress_stays_in_place_and_leaves_only_the_answer(
    ajuste: Shell, words: tuple[str, ...], columns: int, progress: str, answer: str
) -> None:
    (ajuste.directory / "waiting.toml").write_text(HOST_STUDY)
    screen = ajuste.on_a_terminal(*words, columns=columns)
    assert screen.code == 0
    require_clean(screen, progress, answer)


@pytest.mark.usefixtures("machine_lock")
def test_an_interruption_leaves_its_message_alone(ajuste: Shell) -> None:
    screen = ajuste.on_a_terminal("compare", "--", "sleep", "0.2", columns=40, interrupt_at="Running")
    assert screen.code == 130
    assert screen.text.splitlines()[0] == "ajuste: interrupted"
    assert "block" not in screen.text
    assert not screen.cursor_is_hidden


def test_in_a_narrow_terminal_an_error_breaks_between_words(ajuste: Shell) -> None:
    screen = ajuste.on_a_terminal("run", "granularitee", columns=40)
    assert screen.code == 2
    plain = re.sub(r"\x1b\[[\d;]*m", "", screen.written.decode())
    assert plain.startswith("ajuste: ")
    assert all(len(line) <= 40 for line in plain.splitlines())


@pytest.mark.usefixtures("machine_lock")
def test_a_dumb_terminal_gets_plain_lines(ajuste: Shell) -> None:
    screen = ajuste.on_a_terminal(*COMPARE, term="dumb")
    assert screen.text.startswith("Elapsed time of sleep 0.2: ")
    assert b"\x1b" not in screen.written


@pytest.mark.usefixtures("machine_lock")
def test_what_goes_to_a_file_is_plain_and_progress_stays_on_the_terminal(ajuste: Shell, tmp_path: Path) -> None:
    screen = ajuste.on_a_terminal(*COMPARE, output=tmp_path / "answer")
    assert screen.showed("Running sleep")
    assert screen.text == ""
    assert (tmp_path / "answer").read_text().startswith("Elapsed time of sleep 0.2: ")
    assert "\x1b" not in (tmp_path / "answer").read_text()
    screen = ajuste.on_a_terminal(*COMPARE, errors=tmp_path / "errors")
    assert not screen.showed("Running")
    assert screen.text.startswith("Elapsed time of sleep 0.2: ")
    assert (tmp_path / "errors").read_text() == ""


@pytest.mark.slow
def test_so_does_the_building_of_a_kernel(ajuste: Shell, tmp_path: Path) -> None:
    small_kernel(ajuste.directory / "linux")
    alone = Shell(ajuste.directory, tmp_path / "alone")  # Nothing was built in it before.
    screen = alone.on_a_terminal("kernel", "build", "--source", "linux", "--name", "tiny")
    assert screen.code == 0
    require_clean(screen, "Compiling: ", "mine:tiny: 6.1.7 from ")


@needs_root
@pytest.mark.slow
@pytest.mark.usefixtures("machine_lock")
def test_so_does_a_live_experiment(ajuste: Shell) -> None:
    words = ("--set", "vm.dirty_background_ratio=10,9", "--slice", "2s", "--washout", "0", "--for", "10s")
    metric = ("--metric", "dirty,B,lower=proc:meminfo.Dirty")
    screen = ajuste.on_a_terminal("live", *words, *metric)
    assert screen.code == 0
    require_clean(screen, "Measuring vm.dirty_background_ratio = ", "after 4 slices")
