"""Commands that the documents show are understood, and what they would measure is planned. The slow tests run them,
in the order the documents show them, and each must succeed.

A fenced ``toml`` block whose first line is a comment with a file name is written to that file first, and so is a block
whose fence names a file after the language. Lines that begin
with ``$ `` in a fenced ``console`` block are the commands. A document is one test, in a directory of its own.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import warm
from ajuste.machine.home import home
from pages import blocks, commands, file_name, parse, words_of
from shell import patiently, takes_the_machine
from tiers import slow

ROOT = Path(__file__).parents[2]
BY_A_NEW_USER = ROOT / "docs" / "install.md"
"""Page whose commands are run by tests/dist/test_install.py."""
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(ROOT.glob("packages/*/README.md")),
    *sorted(set((ROOT / "docs").rglob("*.md")) - {BY_A_NEW_USER}),
]
CLAIMS = ROOT / "tests" / "studies" / "test_claims.py"
"""Carries out studies of the pages."""
IS_SHORT = re.compile(r"ajuste compare (?!.*(--kernel|--vm|--max-time|--source))|--dry-run|--precision")
"""Commands that are carried out as they are: in no guest, or nothing is measured, or as long as the answer takes."""
NOT_BUILT = re.compile("built kernel '.*' not found")
"""Kernels take long to build: few have those of the pages."""
MISSING = re.compile(f'{NOT_BUILT.pattern}|program ".*" not found')
"""Problems that a plan may have: the programs of the pages are Debian packages of the purpose ``test-all``."""
SET_UP = ("make ", "git clone ", "cd ", "sudo ")
"""Commands that install and build: who runs this test has run them (see ``.ci/run``)."""


@pytest.fixture(scope="module")
def home_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home for all documents: a study that several of them carry out is measured once."""
    root = tmp_path_factory.mktemp("documents")
    home().cache.mkdir(parents=True, exist_ok=True)
    (root / "cache").symlink_to(home().cache)
    return root


def to_run(document: Path) -> list[str]:
    return [c for b in blocks(document) for c in commands(b) if not c.startswith(SET_UP)]


def marks(document: Path) -> list[pytest.MarkDecorator]:
    return [pytest.mark.vm] + [pytest.mark.machine] * any(map(takes_the_machine, to_run(document)))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "document", [pytest.param(d, id=str(d.relative_to(ROOT)), marks=marks(d)) for d in DOCUMENTS if to_run(d)]
)
def test_every_command_of_a_document_works(
    document: Path, tmp_path: Path, home_of_all: Path, request: pytest.FixtureRequest
) -> None:
    if request.node.get_closest_marker("machine"):
        request.getfixturevalue("machine_lock")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    for block in blocks(document):
        if name := file_name(block):
            (tmp_path / name).write_text(block.text)
        for command in commands(block):
            if not command.startswith(SET_UP):
                run(shortened(command, document), tmp_path, home_of_all, f"{document.name}:{block.line}")


@pytest.mark.vm
@pytest.mark.parametrize("planned_of_each", [1, *slow(1000)])
def test_every_command_of_a_document_is_understood_and_planned(
    tmp_path: Path, home_of_all: Path, planned_of_each: int
) -> None:
    """Many stand in several documents: each is looked at once."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    environment = {**os.environ, "AJUSTE_HOME": str(home_of_all)}
    known: set[str] = set()
    unwritten: set[str] = set()
    problems = []
    for document in DOCUMENTS:
        left = planned_of_each
        for block in blocks(document):
            if name := file_name(block):
                (tmp_path / name).write_text(block.text)
            new = [command for command in commands(block) if command.startswith("ajuste ") and command not in known]
            known.update(new)
            for words in map(words_of, new):
                place = f"{document.name}:{block.line}: {shlex.join(words)}"
                try:
                    parse(words[1:])
                except Exception as error:  # noqa: BLE001 - of whatever kind, it is named with the others
                    problems.append(f"{place}\n{error!r}")
                    continue
                if words[1] == "reproduce":
                    unwritten.add(words[-1])  # It is not carried out here.
                if left and (planned := planning(words)) and unwritten.isdisjoint(planned):
                    left -= 1
                    done = warm.run(planned, tmp_path, environment)
                    if done.returncode and not MISSING.search(done.stderr):
                        problems.append(f"{place}\n{done.stderr}")
    assert not problems, "\n\n".join(problems)


def planning(words: Sequence[str]) -> list[str] | None:
    """The command that plans what this one measures."""
    _, verb, *rest = words
    if verb == "compare":
        return ["compare", "--dry-run", *rest]
    if "--machine" in rest:
        at = rest.index("--machine")
        del rest[at : at + 2]
    for option in ("--junit", "--tap", "--ktap"):  # What comes out, which a plan does not know.
        if option in rest:
            at = rest.index(option)
            del rest[at : at + 2]
    return ["plan", *(word for word in rest if word != "--json")] if verb in ("run", "plan") else None


def shortened(command: str, document: Path) -> str:
    """The command with as little time as it can be given, which is one block, where a guest or a whole study takes
    longer: its words are the page's. The figures of a page are those of ``make gallery``; what they show is tested in
    ``tests/studies``, and that a study goes on to its verdict in ``tests/cli``. Studies that are carried out there, and
    kernels, which take long to build, are only planned here.
    """
    if not command.startswith(("ajuste run ", "ajuste compare ")) or IS_SHORT.search(command):
        return command
    # Only what a verdict supports is exported.
    exported = command.replace("ajuste run ", "$ ajuste export ")
    if exported != command and f"{exported} " in document.read_text():
        return command
    if f'"{command.split()[2]}"' in CLAIMS.read_text():
        return command.replace("ajuste run", "ajuste plan")
    short = "--dry-run" if " --source " in command else "--max-time 1s"
    return re.sub("^ajuste (run|compare)", rf"\g<0> {short}", re.sub(r" --max-time \S+", "", command))


def run(command: str, directory: Path, ajuste_home: Path, place: str) -> None:
    environment = {
        **os.environ,
        "AJUSTE_HOME": str(ajuste_home),
        **{f"GIT_{who}_{what}": "n@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
    }
    done = patiently(
        lambda: subprocess.run(
            ["/bin/sh", "-c", command], cwd=directory, env=environment, capture_output=True, text=True, timeout=500
        )
    )
    if NOT_BUILT.search(done.stderr):
        pytest.skip(f"{place}: built kernel not found: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, f"{place}: {shlex.quote(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def test_the_documents_have_commands_at_all() -> None:
    assert sum(len(commands(b)) for d in DOCUMENTS for b in blocks(d)) > 10
