"""Bisection over git revisions, on small repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste_kernels.bisection.revisions import bisect_revisions, count_between, revision_ends
from ajuste_stats.bisection import Outcome


class Repository:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.git("init", "--quiet", "--initial-branch=main", str(directory))

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=Someone", "-c", "user.email=s@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *identity, *([] if arguments[0] == "init" else ["-C", self.directory]), *arguments],  # type: ignore[list-item]
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def commit(self, subject: str, **files: str) -> str:
        for name, content in files.items():
            (self.directory / name).write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def test(self, commit: str, _: str) -> Outcome:
        """Return what the file ``state`` of a commit says of the difference."""
        return self.git("show", f"{commit}:state")  # type: ignore[return-value]

    def culprits(self, good: str, bad: str) -> tuple[str, ...]:
        ends = revision_ends(f"git:{self.directory}@{good}", f"git:{self.directory}@{bad}")
        return bisect_revisions(ends, self.test)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "linux")


def test_the_commit_is_found_in_a_line(repository: Repository) -> None:
    good = repository.commit("base", state="absent")
    for number in range(6):
        repository.commit(f"before {number}")
    guilty = repository.commit("the difference", state="there")
    for number in range(4):
        repository.commit(f"after {number}")
    assert repository.culprits(good, "main") == (f"{guilty[:12]} the difference",)


def test_it_is_found_on_a_side_branch_that_was_merged(repository: Repository) -> None:
    good = repository.commit("base", state="absent")
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("side 1")
    guilty = repository.commit("side 2, the difference", state="there")
    repository.commit("side 3")
    repository.git("checkout", "--quiet", "main")
    for number in range(4):
        repository.commit(f"main {number}")
    repository.git("merge", "--quiet", "--no-ff", "--message", "merge", "side")
    repository.commit("after")
    assert repository.culprits(good, "main") == (f"{guilty[:12]} side 2, the difference",)


def test_commits_that_cannot_be_told_stay_suspects(repository: Repository) -> None:
    good = repository.commit("base", state="absent")
    repository.commit("one")
    repository.commit("broken", state="unusable")
    repository.commit("broken too")
    repository.commit("works again", state="there")
    repository.commit("last")
    assert [text.partition(" ")[2] for text in repository.culprits(good, "main")] == [
        "broken",
        "broken too",
        "works again",
    ]


def test_how_many_there_are_is_known(repository: Repository) -> None:
    good = repository.commit("base")
    for number in range(5):
        repository.commit(str(number))
    assert count_between(revision_ends(f"git:{repository.directory}@{good}", f"git:{repository.directory}@main")) == 5


def test_ends_the_wrong_way_round_are_refused(repository: Repository) -> None:
    old = repository.commit("old")
    repository.commit("new")
    with pytest.raises(RequestError, match="is an ancestor of"):
        revision_ends(f"git:{repository.directory}@main", f"git:{repository.directory}@{old}")


def test_ends_on_two_branches_are_refused_with_their_ancestor(repository: Repository) -> None:
    base = repository.commit("base")
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("side")
    repository.git("checkout", "--quiet", "main")
    repository.commit("main")
    with pytest.raises(RequestError, match="is not an ancestor of") as error:
        revision_ends(f"git:{repository.directory}@side", f"git:{repository.directory}@main")
    assert base[:12] in (error.value.hint or "")


@pytest.mark.parametrize("text", ["git:", "git:somewhere", "git:@main", "debian:6.1"])
def test_what_names_no_revision_is_refused(repository: Repository, text: str) -> None:
    repository.commit("base")
    with pytest.raises(RequestError):
        revision_ends(text, f"git:{repository.directory}@main")


def test_an_option_of_git_is_no_revision(repository: Repository) -> None:
    repository.commit("base")
    with pytest.raises(RequestError, match=r"revision .* not found"):
        revision_ends(f"git:{repository.directory}@--output=x", f"git:{repository.directory}@main")
