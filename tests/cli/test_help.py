"""Help of commands: each has an example, and every example works."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import warm
from ajuste.cli.command_line import help_text
from ajuste.cli.main import COMMANDS, GROUPS, OLD_NAMES, current_names, whole_application
from ajuste.cli.options import examples_in
from looped import each
from own_home import own_home
from pages import parse, words_of
from shell import SMALL, patiently, takes_the_machine

STUDY = SMALL.replace('name = "small"', 'name = "my-study"')
DOCUMENTS = "\n".join(
    document.read_text(encoding="utf-8")
    for root in [Path(__file__).parents[2]]
    for document in (root / "README.md", *(root / "docs").rglob("*.md"))
)
GUESTS = re.compile(r"ajuste (run|tune|kernel|why)\b|--kernel|--vm")
"""Examples that boot a guest, or want the kernels that are fetched for guests."""


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands and groups of commands with what is typed for them."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


def help_of(path: tuple[str, ...], command: Any) -> str:
    context = typer.Context(command, info_name=" ".join(("ajuste", *path)))
    return str(command.get_help(context))


HELP = {path: help_of(path, command) for path, command in commands(typer.main.get_command(whole_application()))}
EXAMPLES = [
    # Those that stand in a document too are run from there: see tests/docs. A worker and a scheduler work until they
    # are ended: see test_cluster.py; so does the lab page: see tests/lab. Building kernels and bisecting takes minutes:
    # see tests/kernel. Two runs of the same in a guest and here are compared in packages/guest/tests/test_transfer.py,
    # live experiments in test_live.py; agents' requests in tests/lab; a referee in test_referee.py. A student's way
    # through a sheet, and marking, are in packages/course/tests.
    example
    for example in dict.fromkeys(example for text in HELP.values() for example in examples_in(text))
    if f"$ {example}\n" not in DOCUMENTS
    and not example.startswith(
        (
            *("ajuste cluster worker", "ajuste cluster scheduler", "ajuste serve", "ajuste transfer"),
            *("ajuste live status", "ajuste live stop", "ajuste live result"),
            *("ajuste mcp --http", "ajuste campaign propose", "ajuste campaign referee"),
            *("ajuste kernel build", "ajuste kernel bisect", "ajuste kernel remove"),
            *("ajuste course predict", "ajuste course measure", "ajuste course data", "ajuste course answer"),
            *("ajuste course status", "ajuste course hand-in", "ajuste course mark"),
            *("ajuste course check my-sheet", "ajuste course students my-sheet", "ajuste course translate my-sheet"),
        )
    )
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the examples name, and a home whose kernels are the ordinary ones."""
    directory = tmp_path_factory.mktemp("examples")
    (directory / "my-study.toml").write_text(STUDY)
    (directory / "job").write_text("#!/bin/sh\nseq 1000 | sort -R | tail -n 1\n")
    (directory / "job").chmod(0o755)
    (directory / "local.conf").write_text("vm.swappiness = 11\nvm.dirty_expire_centisecs = 1234\n")
    own_home(directory / "home")
    ajuste("ajuste inventory --json > here.json", directory)
    return directory


def ajuste(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command as a person would who copies it from the help: in a shell, where it asks anything of one."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "AJUSTE_HOME": str(directory / "home"), "PATH": path}
    if not re.search("[|&<>$;~*?#]", command):
        return warm.run(shlex.split(command)[1:], directory, environment)
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )


@each(HELP)
def test_every_command_shows_an_example_of_itself(path: tuple[str, ...]) -> None:
    examples = examples_in(HELP[path])
    assert examples, f"ajuste {' '.join(path)} --help has no example; ajuste.cli.options adds them"
    for example in examples:
        assert example.startswith(" ".join(("ajuste", *path)))


def test_every_command_is_there() -> None:
    assert {path[0] for path in HELP if path} == set(COMMANDS)


@each(EXAMPLES)
def test_an_example_is_understood(example: str) -> None:
    parse(words_of(example)[1:])


def marks(example: str) -> list[pytest.MarkDecorator]:
    if not GUESTS.search(example):
        return []
    return [pytest.mark.vm] + [pytest.mark.slow] * ("--dry-run" not in example or "tuned:" in example)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_help_fits_the_terminal_and_cuts_nothing(columns: int) -> None:
    for path, full_text in HELP.items():
        text = help_text(path, everything=True, columns=columns)
        for line in text.splitlines():
            word = line.strip().removesuffix(" \\")  # a long word of an example stays whole
            assert len(line) <= columns or f"{word} " in f"{' '.join(examples_in(full_text))} ", line
        assert not re.search(r"[a-z]\.\.\.", text), "a summary is cut"
        assert examples_in(text) == examples_in(full_text)


def test_commands_and_options_are_in_groups_and_rare_ones_wait_for_help_all() -> None:
    text = help_text(())
    assert [head for head in GROUPS if f"\n{head}:\n" in text] == list(GROUPS)
    short, whole = (help_text(["compare"], everything=everything) for everything in (False, True))
    assert "--help-all" in short
    assert "--cluster-keys" in whole
    assert "--cluster-keys" not in short
    assert "--help-all" not in help_text(["doctor"])


@pytest.mark.parametrize("name", OLD_NAMES)
def test_a_command_that_moved_still_has_its_old_name(name: str) -> None:
    assert current_names(["--log", "x", name, "--insecure"]) == ["--log", "x", *OLD_NAMES[name], "--insecure"]
    assert current_names(["compare", "--", name]) == ["compare", "--", name]


@pytest.mark.machine  # all of them: one example needs the run of another
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, marks=marks(example))
        for example in EXAMPLES
        if "--scheduler build/" not in example  # it has to be built: see tests/run/test_contained.py
    ],
)
def test_an_example_works(example: str, place: Path, request: pytest.FixtureRequest) -> None:
    if takes_the_machine(example):
        request.getfixturevalue("machine_lock")
    done = patiently(lambda: ajuste(example, place))
    assert done.returncode == 0, f"{example}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert done.stderr == "" or GUESTS.search(example)


@pytest.mark.parametrize("words", [[], ["kernel"], ["store"], ["cluster"]])
def test_what_asks_for_nothing_is_shown_the_help(words: list[str]) -> None:
    program = "from ajuste.cli.main import main; main()"
    done, helped = (
        subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
        for arguments in (words, [*words, "--help"])
    )
    assert done.stdout == helped.stdout
    assert done.stdout.startswith("Usage: ")
    assert not done.stderr
