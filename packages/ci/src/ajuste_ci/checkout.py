"""Revisions of a git repository, each in a directory of its own. The user's tree is only read.

git and the builds run as the user who called Ajuste. Each revision is a worktree of the repository (git-worktree(1)),
so that a build finds its history and tags.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from ajuste.catalogue.programs import require_git
from ajuste.executor.host.caller import LAST_LINES, Caller, all_ended, finished, invoking_user, user_here
from ajuste.machine.files import make_directory, remove_tree
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.outputs.builds import says_full
from ajuste.store.location import exclusive
from ajuste_ci.model import GateRevision, ProjectCommit

# The user's hooks and monitors must not run for Ajuste's worktrees.
_QUIET: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")


@dataclass(frozen=True)
class ProjectRepository:
    """A git repository; ``top`` is the root of the user's working tree."""

    top: Path
    caller: Caller

    @classmethod
    def around(cls, directory: Path) -> Self:
        """Return the repository around ``directory``. Raises RequestError."""
        require_git()
        caller = Caller(invoking_user())
        try:
            top = _git(caller, directory, "rev-parse", "--show-toplevel")
        except RunError as failure:
            why = "" if "not a git repository" in failure.message else f": {failure.message}"
            raise RequestError(
                f"{directory} is not in the working tree of a git repository{why}",
                hint="change to a directory of your project's repository",
            ) from None
        return cls(Path(os.fsdecode(top.removesuffix(b"\n"))), caller)

    def hint_for_more(self, otherwise: str) -> str:
        """Return a hint on fetching older commits if the clone is shallow, else ``otherwise``."""
        is_shallow = self.git("rev-parse", "--is-shallow-repository").strip() == b"true"
        return "this clone is shallow; get its older commits: git fetch --unshallow" if is_shallow else otherwise

    def revision(self, text: str, option: str) -> GateRevision:
        """Return the commit named by ``text``, which is not trusted. Raises RequestError."""
        try:
            # No argument of a program can have a NUL.
            if "\0" in text or not text:
                raise RunError("a revision must have a name")
            commit = self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
        except RunError:
            raise RequestError(
                f'{option} "{text}": revision not found in {self.top}',
                hint=self.hint_for_more("name a branch, tag or commit; in CI fetch it first: git fetch origin main"),
            ) from None
        return GateRevision(revision=text, commit=commit.decode().strip())

    def working_tree(self) -> GateRevision:
        """Return the user's tree as a revision. Raises RequestError in a repository without commits."""
        return GateRevision(revision="", commit=self.revision("HEAD", "--head").commit)

    def commits(self, *words: str) -> tuple[ProjectCommit, ...]:
        """Return the commits of ``git log WORDS`` along first parents, oldest first. Raises RunError."""
        form = "--format=%H%x00%cs%x00%s"
        log = self.git("log", "--first-parent", "--reverse", "--no-show-signature", form, *words, "--")
        fields = (line.split("\0") for line in log.decode(errors="replace").split("\n") if line)
        return tuple(ProjectCommit(commit=commit, date=date, subject=subject) for commit, date, subject in fields)

    def is_changed(self) -> bool:
        """Return whether the user's tree has uncommitted changes. Raises RunError."""
        return bool(self.git("status", "--porcelain"))

    def parting(self, base: str, head: str) -> str:
        """Return the last common commit of two revisions; empty if there is none."""
        try:
            return self.git("merge-base", base, head).decode().strip()
        except RunError:
            return ""

    def git(self, *words: str, **variables: str) -> bytes:
        """Run git at the top of the working tree and return its output. Raises RunError."""
        return _git(self.caller, self.top, *words, **variables)


def _git(caller: Caller, directory: Path, *words: str, **variables: str) -> bytes:
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        ["git", *_QUIET, *words],
        cwd=directory,
        # Messages of git are matched in English.
        env={**caller.environment, "LC_ALL": "C", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        **caller.options,
    )
    if done.returncode:
        message = done.stderr.decode(errors="replace").strip()
        raise RunError(f"git {words[0]} failed: {message[:500] or f'exit code {done.returncode}'}")
    return done.stdout


@contextmanager
def checked_out(
    repository: ProjectRepository, revisions: Mapping[str, GateRevision], home: Home, *, renewable: bool = False
) -> Iterator[Checkouts]:
    """Yield ``revisions``, each in the directory of its name; all are removed at the end, also after errors. Raises
    RequestError during another gate of the repository, RunError if git fails.
    """
    name = hashlib.sha256(os.fsencode(repository.top)).hexdigest()[:16]
    place = home.state / "gate"
    with exclusive(place / f"{name}.lock", f"a gate of {repository.top}"), ExitStack() as stack:
        directory = _directory(repository, place / name)
        stack.callback(remove_tree, directory)
        logs = place / f"{name}-logs"
        remove_tree(logs)
        checkouts = Checkouts(repository, directory, logs, home, renewable)
        for side, revision in revisions.items():
            stack.callback(checkouts.remove, side)
            checkouts.add(side, revision)
        yield checkouts


def _directory(repository: ProjectRepository, usual: Path) -> Path:
    # Always the same directory, so that equal trials have equal commands. Another user than Ajuste's cannot reach it,
    # and gets a temporary one.
    if repository.caller.user is not None:
        made = Path(tempfile.mkdtemp(prefix="ajuste-gate-"))
        repository.caller.give(made)
        return made
    for side in usual.glob("*"):  # left by a gate that was killed
        _remove(repository, side)
    remove_tree(usual)
    make_directory(usual)
    return usual


def _remove(repository: ProjectRepository, there: Path) -> None:
    with suppress(RunError):
        repository.git("worktree", "remove", "--force", "--", str(there))
    remove_tree(there)


def _copy_working_tree(repository: ProjectRepository, there: Path, objects: Path, home: Home) -> None:
    # The index and new objects are those of the worktree and of a database aside: the repository keeps none of it.
    # Ignored files and Ajuste's own directories are left out.
    make_directory(objects)
    of_user = repository.git("rev-parse", "--path-format=absolute", "--git-path", "objects")
    alternate = os.fsdecode(of_user.removesuffix(b"\n")).replace("\\", "\\\\").replace('"', '\\"')
    git_directory = os.fsdecode(_git(repository.caller, there, "rev-parse", "--absolute-git-dir").removesuffix(b"\n"))
    database = {
        "GIT_DIR": git_directory,
        "GIT_OBJECT_DIRECTORY": str(objects),
        # Colons separate the paths of this list, so a path is quoted (git(1)).
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{alternate}"',
    }
    reading = {**database, "GIT_WORK_TREE": str(repository.top)}
    repository.git("read-tree", "HEAD", **reading)
    # Caches of CI systems are in the user's tree, and Ajuste's directories may be among them.
    top = repository.top.resolve()
    directories = {directory.resolve() for directory in (home.data, home.cache, home.state)}
    inside = sorted(directory.relative_to(top) for directory in directories if directory.is_relative_to(top))
    without = [f":(top,exclude,literal){directory}" for directory in inside]
    repository.git("add", "--all", "--", ".", *without, **reading)
    repository.git("checkout-index", "--all", "--force", "--quiet", **database, GIT_WORK_TREE=str(there))
    _git(repository.caller, there, "read-tree", "HEAD")


@dataclass(frozen=True)
class Checkouts:
    """Worktrees of revisions in ``directory``, with the output of builds in ``logs``. If ``renewable``, each can be
    reset to its state before any build.
    """

    repository: ProjectRepository
    directory: Path
    logs: Path
    home: Home
    renewable: bool = False

    def add(self, side: str, revision: GateRevision) -> None:
        """Add a worktree of ``revision`` as ``side``. Raises RunError."""
        there = self.directory / side
        words = ("--no-checkout",) if not revision.revision else ()
        self.repository.git("worktree", "add", "--force", "--detach", *words, "--", str(there), revision.commit)
        if not revision.revision:
            _copy_working_tree(self.repository, there, self.directory / "objects", self.home)
        if self.renewable:
            self._copy(there, self._pristine(side))

    def renew(self, side: str) -> None:
        """Reset a worktree to its state before any build. Raises RunError."""
        there = self.directory / side
        remove_tree(there)
        self._copy(self._pristine(side), there)

    def remove(self, side: str) -> None:
        """Remove a worktree, with everything built in it."""
        remove_tree(self._pristine(side))
        _remove(self.repository, self.directory / side)

    def _pristine(self, side: str) -> Path:
        return self.directory / f"{side}.pristine"

    def _copy(self, tree: Path, there: Path) -> None:
        # A reflink takes no space, on file systems that have them.
        command = ("cp", "-a", "--reflink=auto", "--", str(tree), str(there))
        done = subprocess.run(command, capture_output=True, check=False, **self.repository.caller.options)
        if done.returncode:
            raise RunError(f"cannot copy {tree}: {done.stderr.decode(errors='replace').strip()[:500]}")

    def output(self, command: Sequence[str], directory: Path, label: str, timeout_s: float) -> str:
        """Run a program of a worktree in ``directory`` and return what it prints. Raises RunError, also where it goes
        on after ``timeout_s``.
        """
        caller, words = self.repository.caller, shlex.join(command)
        try:
            with all_ended():
                done: subprocess.CompletedProcess[bytes] = subprocess.run(
                    list(command),
                    cwd=directory,
                    env=caller.environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    timeout=timeout_s,
                    **caller.options,
                )
        except subprocess.TimeoutExpired:
            hint = "raise timeout of the benchmark, if it needs longer"
            message = f'{label}: "{words}" did not end within {timeout_s:g} s'
            raise RunError(message, hint=hint, of_candidate=True) from None
        except OSError as failure:
            hint = "use a program that is in PATH or in the project"
            message = f'cannot start "{words}" in {label} as {user_here()}: {failure.strerror}'
            raise RunError(message, hint=hint, of_candidate=True) from None
        if done.returncode:
            lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()[-LAST_LINES:]
            ended = (
                f"was killed by signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
            )
            raise RunError("\n".join((f'{label}: "{words}" failed: {ended}', *lines)), of_candidate=True)
        return done.stdout.decode(errors="replace")

    def build(self, command: Sequence[str], side: str, project: Path, label: str) -> None:
        """Run ``command`` in the ``project`` of a worktree. Raises RunError with the last lines of its output."""
        make_directory(self.logs)
        log = self.logs / f"{side}.log"
        there = self.directory / side / project
        caller = self.repository.caller
        words = shlex.join(command)
        try:
            with log.open("ab") as out:
                out.write(f"$ {words}\n".encode())
                out.flush()
                begin = out.tell()
                code = finished(command, there, out.fileno(), caller.environment, caller.options)
        except OSError as failure:
            if not there.is_dir():
                raise RunError(f"{label} has no directory {project}", of_candidate=True) from None
            raise RunError(
                f'cannot start "{words}" in {label} as {user_here()}: {failure.strerror}',
                hint="use a program that is in PATH or in the project",
                of_candidate=True,
            ) from None
        if code:
            lines = log.read_bytes()[begin:].decode(errors="replace").splitlines()[-LAST_LINES:]
            ended = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
            raise RunError(
                "\n".join((f'{label} does not build: "{words}" {ended}', *lines)),
                hint=f"see all of its output: {log}",
                of_candidate=code > 0 and not says_full(lines),
            )
