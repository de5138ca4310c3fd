"""The recipe of docs/how-to/bisect.md for BPF schedulers, on commits with a planted regression."""

from __future__ import annotations

import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from shell import Shell, has_libbpf

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
RECIPE = EXAMPLES.parent / "how-to" / "bisect.md"

pytestmark = [pytest.mark.vm, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def ajuste(tmp_path: Path, ajuste_home: Path) -> Shell:
    if not has_libbpf():
        pytest.skip("no clang with libbpf 1.2 or later")
    return Shell(tmp_path, ajuste_home)


def repository(directory: Path, planted: tuple[str, str]) -> None:
    """Commits of ``scx_fifo``: one does not compile, and one has the regression ``planted``."""
    text = (EXAMPLES / "fifo-test.toml").read_text()
    directory.mkdir()

    def git(*words: str) -> None:
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, "-C", directory, *words], check=True, capture_output=True)

    def commit(subject: str, old: str = "", new: str = "") -> None:
        file = directory / "scx_fifo.bpf.c"
        before = file.read_text()
        file.write_text(before.replace(old, new) if old else f"{before}// {subject}\n")
        assert file.read_text() != before
        git("add", "--all")
        git("commit", "--quiet", "--message", subject)

    git("init", "--quiet", "--initial-branch=main")
    for name, source in tomllib.loads(text)["scheduler"][0]["source"].items():
        (directory / name).write_text(source)
    commit("base")
    git("tag", "v1")
    commit("a longer timeout", "timeout_ms = 2000", "timeout_ms = 3000")
    commit("the regression", *planted)
    commit("does not compile", "(u64 *arguments)", "(u64 *arguments")
    commit("compiles again", "(u64 *arguments", "(u64 *arguments)")
    commit("another comment")


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(("SLICE_NS 20000000ULL", "SLICE_NS 1000000ULL"), id="short slices"),
        pytest.param(("\tscx_bpf", "\tif (0)\n\t\tscx_bpf"), id="stall"),
        pytest.param(("\tscx_bpf", "\targuments[7] = 1;\n\tscx_bpf"), id="verifier"),
    ],
)
def test_the_recipe_names_the_commit(ajuste: Shell, planted: tuple[str, str]) -> None:
    repository(ajuste.directory / "fifo", planted)
    (command,) = [line for line in RECIPE.read_text().splitlines() if "git:fifo@" in line]
    output, _ = ajuste(*shlex.split(command)[1:], "--quiet")
    assert "the regression" in " ".join(output.split()).partition(" (of ")[0]
    again, _ = ajuste(*shlex.split(command)[1:], "--quiet")
    assert again == output
