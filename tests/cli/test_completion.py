"""Completion as shells ask for it: ``_AJUSTE_COMPLETE`` in the environment, one value a line."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ajuste.cli.main import COMMANDS
from ajuste.store.store import Store

MAIN = "from ajuste.cli.main import main; main()"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty home, and a directory to be in."""
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path


def completions(place: Path, line: str, **environment: str) -> list[str]:
    """Return what Bash is answered at the end of ``line``."""
    words = line.split(" ")
    answer = run_ajuste(
        place, _AJUSTE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1), **environment
    )
    return answer.stdout.split()


def run_ajuste(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        cwd=place,
        env={**os.environ, "AJUSTE_HOME": str(place / "home"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def keep_runs(place: Path, runs: dict[str, str]) -> None:
    """A store that says so many runs of studies of these names."""
    data = place / "home" / "data"
    data.mkdir(mode=0o700, parents=True)
    with sqlite3.connect(data / "store.sqlite") as store:
        store.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, study TEXT)")
        store.executemany("INSERT INTO runs VALUES (?, ?)", runs.items())
    store.close()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ajuste comp", ["compare", "completion"]),
        ("ajuste kernel re", ["remove"]),
        ("ajuste run gran", ["granularity"]),
        ("ajuste compare --set vm.swapp", ["vm.swappiness="]),
        ("ajuste tunables show vm.swapp", ["vm.swappiness"]),
        ("ajuste compare --kernel debian:5", ["debian:5.10"]),
        ("ajuste compare --kernel debian:5.10,debian:6.12", ["debian:5.10,debian:6.12"]),
        ("ajuste compare --kernel=debian:5", ["debian:5.10"]),
        ("ajuste run granularity --targ", ["--target"]),
        ("ajuste run granularity --target ", ["vm", "host"]),
        ("ajuste run granularity --no-", ["--no-snapshot"]),
        ("ajuste compare -- hackb", ["hackbench"]),
        ("ajuste completion ", ["bash", "zsh", "fish"]),
        ("ajuste compare --set vm.swappiness=", []),
        ("ajuste compare --report ", []),
    ],
)
def test_the_command_line_and_the_catalogue_are_offered(place: Path, line: str, expected: list[str]) -> None:
    assert completions(place, line) == expected


def test_all_commands_are_offered(place: Path) -> None:
    assert set(completions(place, "ajuste ")) == set(COMMANDS)


def test_study_files_here_are_offered_beside_the_studies(place: Path) -> None:
    (place / "granular.toml").touch()
    assert completions(place, "ajuste plan granul") == ["granularity", "granular.toml"]


def test_kernels_that_are_there_are_offered(place: Path) -> None:
    for kernel in ("kernels/6.18.15+deb13-cloud-amd64_6.18.15-1~bpo13+1", "kernels/6.1.0-9-rt-amd64_6.1.90-1"):
        (place / "home" / "cache" / kernel).mkdir(parents=True)
    (place / "home" / "cache" / "built" / "names").mkdir(parents=True)
    (place / "home" / "cache" / "built" / "names" / "mine").touch()
    assert completions(place, "ajuste run granularity --kernel debian:6.18") == ["debian:6.18"]
    assert completions(place, "ajuste kernel remove m") == ["mine:mine"]


def test_runs_are_offered_by_study_and_by_id(place: Path) -> None:
    keep_runs(place, {"20260101-1": "messages", "20260102-2": "messages"})
    assert completions(place, "ajuste report ") == ["messages", "20260102-2", "20260101-1"]
    assert completions(place, "ajuste export 20260101") == ["20260101-1"]


def test_the_columns_are_those_of_a_real_store(place: Path) -> None:
    with Store(f"sqlite:///{place}/home/data/store.sqlite"):
        pass
    with sqlite3.connect(place / "home" / "data" / "store.sqlite") as store:
        assert store.execute("SELECT id, study FROM runs").fetchall() == []
    store.close()


HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "'; touch pwned; '",
    "a b",
    "*",
    "\x1b]0;x\x07",
    'a"b',
    "a\nb",
    "~",
    "-\u202ex",
)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_hostile_names_are_never_offered(place: Path, shell: str) -> None:
    keep_runs(place, {f"{number}-{name}": name for number, name in enumerate((*HOSTILE, "plain"))})
    environment = {"_TYPER_COMPLETE_ARGS": "ajuste report ", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    environment |= {"COMP_WORDS": "ajuste report ", "COMP_CWORD": "2", "_AJUSTE_COMPLETE": f"complete_{shell}"}
    text = run_ajuste(place, **environment).stdout
    assert "10-plain" in text
    assert not set("$`*~;\x1b\x07\u202e").intersection(text.removeprefix("_arguments '*: :((").removesuffix("))'\n"))


@pytest.mark.parametrize("content", [b"", b"no store", b"SQLite format 3\0" + bytes(100)])
def test_a_damaged_store_offers_nothing_and_says_nothing(place: Path, content: bytes) -> None:
    (place / "home" / "data").mkdir(mode=0o700)
    (place / "home" / "data" / "store.sqlite").write_bytes(content)
    done = run_ajuste(place, _AJUSTE_COMPLETE="complete_bash", COMP_WORDS="ajuste report ", COMP_CWORD="2")
    assert (done.stdout.strip(), done.stderr) == ("", "")
    assert (place / "home" / "data" / "store.sqlite").read_bytes() == content


def test_asking_makes_nothing(place: Path) -> None:
    completions(place, "ajuste report ")
    completions(place, "ajuste run x --kernel ")
    assert list((place / "home").iterdir()) == []


def test_nothing_of_the_program_is_loaded_for_it() -> None:
    program = (
        "import sys; from ajuste.cli.completion import answer\n"
        "try: answer()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    environment = {**os.environ, "_AJUSTE_COMPLETE": "complete_bash", "COMP_WORDS": "ajuste comp", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "ajuste.cli.completion" in loaded
    assert not loaded.intersection({"numpy", "sqlalchemy", "scipy", "ajuste.catalogue.loader"})


def command(place: Path) -> Path:
    """``ajuste`` as a program in ``place``."""
    program = place / "ajuste"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{MAIN}' \"$@\"\n")
    program.chmod(0o755)
    return program


def bash(place: Path, line: str) -> list[str]:
    """Return what Bash itself puts into COMPREPLY at the end of ``line``, which it has taken apart."""
    program = command(place)
    words = line.replace(":", " : ").replace("=", " = ").split(" ")
    script = (
        f'eval "$("{program}" completion bash)"; compopt() {{ :; }}\n'
        f'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ajuste_completion "{program}"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environment = {**os.environ, "AJUSTE_HOME": str(place / "home")}
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *words], env=environment, cwd=place, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ajuste compare --kernel debian:5", ["5.10"]),
        ("ajuste compare --kernel=debian:5", ["5.10"]),
        ("ajuste compare --set vm.swapp", ["vm.swappiness="]),
        ("ajuste compare --set vm.swappiness=", []),
        ("ajuste run gran", ["granularity"]),
    ],
)
def test_bash_takes_names_apart_at_colons_and_gets_the_rest(place: Path, line: str, expected: list[str]) -> None:
    assert bash(place, line) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_accepts_its_script(place: Path, shell: str) -> None:
    done = run_ajuste(place, "completion", shell)
    assert done.returncode == 0
    assert f"_AJUSTE_COMPLETE=complete_{shell}" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_is_offered_values(place: Path) -> None:
    command(place)
    environment = {**os.environ, "AJUSTE_HOME": str(place / "home"), "HOME": str(place)}
    script = "set -x PATH $PWD $PATH; ajuste completion fish | source; complete -C 'ajuste run gran'"
    done = subprocess.run(["fish", "-c", script], env=environment, cwd=place, capture_output=True, text=True)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["granularity"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_loads_the_function_from_its_path_and_completes_at_the_first_tab(place: Path) -> None:
    command(place)
    (place / "_ajuste").write_text(run_ajuste(place, "completion", "zsh").stdout)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(place)
        path = f"{place}:{os.environ['PATH']}"
        os.environ.update(AJUSTE_HOME=str(place / "home"), HOME=str(place), PATH=path, TERM="dumb")
        os.execvp("zsh", ["zsh", "-f", "-i"])  # noqa: S606 - the shell itself is what is tried
    try:
        os.write(terminal, b"fpath=($PWD $fpath); autoload -Uz compinit; compinit -u; print rea''dy\n")
        wait_for_text(terminal, b"ready")
        os.write(terminal, b"ajuste run gran\t")
        wait_for_text(terminal, b"granularity")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


def wait_for_text(terminal: int, text: bytes, seconds: float = 60) -> None:
    """Wait until the terminal has shown ``text``."""
    output, end = b"", time.monotonic() + seconds
    while text not in output:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, output.decode(errors="replace")
        output += os.read(terminal, 4096)
