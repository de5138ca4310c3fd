from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste_guest.executor.tree import check_self_contained, find_interpreters


def script(folder: Path, first_line: bytes) -> Path:
    path = folder / "script"
    path.write_bytes(first_line + b"\necho hello\n")
    return path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"#!/bin/sh", ["/bin/sh"]),
        (b"#! /bin/sh -e", ["/bin/sh"]),
        (b"#!/usr/bin/env bash", ["/usr/bin/env", "/usr/bin/bash"]),
        (b"#!/usr/bin/env -S LANG=C bash -e", ["/usr/bin/env", "/usr/bin/bash"]),
        (b"echo no interpreter", []),
        (b"", []),
    ],
)
def test_the_first_line_names_the_interpreters(tmp_path: Path, line: bytes, expected: list[str]) -> None:
    assert [path.resolve() for path in find_interpreters(script(tmp_path, line))] == [
        Path(path).resolve() for path in expected
    ]


@pytest.mark.parametrize("line", [b"#!", b"#!sh", b"#!/no/such/program", b"#!/usr/bin/env no-such-program", b"#!\xff"])
def test_an_interpreter_that_is_not_there_is_said(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(RequestError):
        find_interpreters(script(tmp_path, line))


@pytest.mark.parametrize("name", ["python3", "python3.11", "perl", "ruby3.1", "node"])
def test_interpreters_with_a_tree_of_their_own_are_refused(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.touch()
    with pytest.raises(RequestError, match=f"job needs .*{name}.*tree"):
        check_self_contained(program, "job")
    other = tmp_path / "job"
    other.symlink_to(program)
    with pytest.raises(RequestError):
        check_self_contained(other, "job")


@pytest.mark.parametrize("name", ["sh", "bash", "dash", "awk", "perlbench", "nodes", "phpbench"])
def test_other_programs_are_not(tmp_path: Path, name: str) -> None:
    check_self_contained(tmp_path / name, "job")
