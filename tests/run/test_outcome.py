"""What is said of a run beside its figures: the command that measures the same again."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.kernel import KernelVersion
from ajuste.run.outcome import results_of
from ajuste.store.store import Store
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from shell import SMALL


@pytest.mark.parametrize(
    "words",
    [
        ["granularity"],
        ["granularity", "--machine", "zen4-8c"],
        ["my studies/small.toml", "--max-time", "5m"],
        ["small.toml", "--parameter", "command=sleep 1", "--without", "nice=5"],
    ],
)
def test_a_run_says_its_command_again_word_by_word(words: list[str], tmp_path: Path, store: Store) -> None:
    said = shlex.split(reproduced(shlex.join(words), tmp_path, store))
    assert said[:3] == ["ajuste", "run", words[0]]
    assert said[5:] == [*words[1:], "--seed", "1", "--fresh"]
    assert said[3:5] == ["--kernel", "debian:5.10"]


@pytest.mark.parametrize("command", ["ajuste gate --base main", "ajuste kernel bisect a b", "ajuste live --set a=1,2"])
def test_a_run_of_another_command_is_measured_again_by_that_command(command: str, tmp_path: Path, store: Store) -> None:
    assert reproduced(command, tmp_path, store) == command


@pytest.mark.parametrize(
    ("command", "again"),
    [
        ("ajuste compare --set a=1,2", "ajuste compare --kernel debian:5.10 --set a=1,2"),
        ("ajuste compare --kernel debian:5 -- ./job", "ajuste compare --kernel debian:5.10 -- ./job"),
        ("ajuste tune --fresh --set a=1,2", "ajuste tune --kernel debian:5.10 --set a=1,2 --fresh"),
    ],
)
def test_a_command_is_given_again_with_the_kernels_that_were_measured(
    command: str, again: str, tmp_path: Path, store: Store
) -> None:
    assert reproduced(command, tmp_path, store) == again


def reproduced(named: str, tmp_path: Path, store: Store) -> str:
    """What is said of a run of that name of the small study."""
    (path := tmp_path / "small.toml").write_text(SMALL)
    read = read_study(path, catalogue(), parse_kernel=parse_spec)
    study = resolve(read, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")
    run = store.new_run(
        study="small",
        fingerprint="f",
        seed=1,
        ajuste="0",
        named=named,
        resolved=study.model_dump_json(),
        environment={},
    )
    (command,) = results_of(run, store).reproduce
    return command
