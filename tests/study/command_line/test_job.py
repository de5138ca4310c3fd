from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.study.command_line.job import LONGEST, job, names, split


@pytest.mark.parametrize(
    ("words", "table"),
    [
        (["linpack"], {"kind": "linpack"}),
        (["hackbench"], {"kind": "hackbench"}),
        (
            ["hackbench", "groups=2", "mode=threads"],
            {"kind": "hackbench", "parameters": {"groups": "2", "mode": "threads"}},
        ),
        (["hackbench", "-g", "2"], {"command": ["hackbench", "-g", "2"]}),
        (["/usr/bin/hackbench"], {"command": ["/usr/bin/hackbench"]}),
        (["./linpack"], {"command": ["./linpack"]}),
        (["dd", "if=/dev/zero"], {"command": ["dd", "if=/dev/zero"]}),
    ],
)
def test_a_name_of_the_catalogue_is_its_workload_and_all_else_a_program(words: list[str], table: object) -> None:
    assert job(words, catalogue()) == table


def test_a_program_outside_the_directory_is_named_wholly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert job(["../run", "x"], catalogue()) == {"command": [str(tmp_path / "run"), "x"]}


def test_a_command_in_one_text_is_split_without_a_shell() -> None:
    assert split("--prepare", "sh -c 'echo $HOME; ls'") == ["sh", "-c", "echo $HOME; ls"]
    with pytest.raises(
        RequestError,
        match=r"--prepare .*: found unbalanced quotes; expected a command as for a shell: No closing quotation",
    ):
        split("--prepare", "echo 'a")
    with pytest.raises(RequestError, match="expected a command"):
        split("--prepare", "  ")


def test_names_are_short_and_each_is_its_own() -> None:
    long = ["./job", *"abcdefghijklmnopqrstuvwxyz", "--threads", "4"]
    job_names = names([["sleep", "0.1"], ["sleep", "0.1"], ["echo", "a b\nc"], long, [*long[:-1], "8"]])
    assert job_names[:3] == ["sleep 0.1", "sleep 0.1 (2)", "echo 'a b c'"]
    assert job_names[3].startswith("./job a b")
    assert job_names[3].endswith("--threads 4")
    assert len(set(job_names)) == len(job_names)
    assert all(len(name) <= LONGEST + len(" (2)") for name in job_names)
