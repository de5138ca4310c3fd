"""Bisection over the revisions of a git repository, merges and all: git itself says which commit to test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.kernel.spec import PackagedKernel
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import Say
from ajuste_guest.kernel.fetch import available_kernels, fetch_kernel
from ajuste_kernels.building.sources import revision_source
from ajuste_stats.bisection import Outcome, culprits, next_candidate

FORM: Final = "git:DIR@REVISION"
_SHORT: Final = 12

Test = Callable[[str, str], Outcome]
"""Takes a commit and its label."""


@dataclass(frozen=True)
class Ends:
    """Two commits of one repository, by their full names."""

    repository: Path
    good: str
    bad: str


def revision_ends(good: str, bad: str) -> Ends:
    """Return the commits named by two texts such as ``git:~/linux@v6.1``. Raises RequestError, also if the good end is
    not an ancestor of the bad one.
    """
    named = []
    for text in (good, bad):
        directory, at, revision = text.removeprefix("git:").partition("@")
        if not directory or not at or not revision:
            raise RequestError(f"{text!r}: expected {FORM}")
        named.append((Path(directory), revision))
    first, second = (revision_source(*end) for end in named)
    if first.repository != second.repository:
        raise RequestError("both ends must be revisions of one repository", hint=f"give {FORM} twice")
    ends = Ends(first.repository, first.commit, second.commit)
    if first.commit == second.commit:
        raise RequestError(f"{good} and {bad} are the same commit", hint="give an older commit as --good")
    if not _git(ends.repository, "rev-list", "--max-count=1", ends.bad, f"^{ends.good}"):
        raise RequestError(f"{bad} is an ancestor of {good}", hint="exchange them: --good requires the older commit")
    merge_base = _git(ends.repository, "merge-base", ends.good, ends.bad)
    if merge_base != [ends.good]:
        raise RequestError(
            f"{good} is not an ancestor of {bad}, so the change may be on either branch",
            hint=f"use their common ancestor if it is good: --good git:DIR@{merge_base[0][:_SHORT]}",
        )
    return ends


def count_between(ends: Ends) -> int:
    """Return the number of suspected commits, including the bad end."""
    return len(_git(ends.repository, "rev-list", ends.bad, f"^{ends.good}"))


def bisect_revisions(ends: Ends, test: Test) -> tuple[str, ...]:
    """Return the titles of the commits one of which brought the difference, oldest first. A commit that cannot be built
    or decided stays a suspect, as with ``git bisect skip``.
    """
    bad, good = ends.bad, [ends.good]
    untold: set[str] = set()
    while (commit := _next(ends.repository, bad, good, untold)) is not None:
        outcome = test(commit, title(ends.repository, commit))
        if outcome == "there":
            bad = commit
        elif outcome == "absent":
            good.append(commit)
        else:
            untold.add(commit)
    suspects = _git(ends.repository, "rev-list", "--topo-order", "--reverse", *_range(bad, good))
    return tuple(title(ends.repository, suspect) for suspect in suspects)


def title(repository: Path, commit: str) -> str:
    """Return the short hash and subject, such as ``1a2b3c4d5e6f sched/fair: Fix the lag``."""
    (subject,) = _git(repository, "log", "--max-count=1", "--format=%s", commit) or [""]
    return f"{commit[:_SHORT]} {subject}".rstrip()


def _range(bad: str, good: Sequence[str]) -> list[str]:
    return [bad, *(f"^{commit}" for commit in good)]


def _next(repository: Path, bad: str, good: Sequence[str], untold: set[str]) -> str | None:
    # git-rev-list(1), `--bisect-all`: the commit that halves the rest comes first.
    lines = _git(repository, "rev-list", "--bisect-all", *_range(bad, good))
    commits = [line.partition(" ")[0] for line in lines]
    return next((commit for commit in commits if commit != bad and commit not in untold), None)


def _git(repository: Path, *arguments: str) -> list[str]:
    # Revisions are full hashes here, never typed text, so none can be taken for an option.
    done = subprocess.run(
        ["git", "-C", repository, *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode:
        raise RunError(f"git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()[:300]}")
    return done.stdout.decode(errors="replace").splitlines()


# Bisection over the versions of a distribution's kernel.


TestVersion = Callable[[str, Callable[[], str]], Outcome]


def versions_between(good: PackagedKernel, bad: PackagedKernel, home: Home, say: Say, *, every: bool) -> list[str]:
    """Return the specs from ``good`` to ``bad`` in the order of the search: the newest of each series, or ``every``
    version in the mirror or the cache. Raises RequestError.
    """
    if (good.source, good.flavour) != (bad.source, bad.flavour):
        raise RequestError(
            f"{good} and {bad} have different sources or flavours, so there are no versions between them",
            hint="compare them with ajuste kernel diff, or build both with ajuste kernel build to bisect options",
        )
    releases = {str(end): fetch_kernel(str(end), home, say=say).release for end in (good, bad)}
    rows = [row for row in available_kernels(home, say, every=every) if row.flavour == good.flavour]
    places = {row.release: number for number, row in enumerate(rows)}
    missing = [spec for spec, release in releases.items() if release not in places]
    if missing:
        raise RequestError(
            f"{missing[0]} is not in the list of kernels", hint="list kernels with ajuste kernel list --all"
        )
    first, last = places[releases[str(good)]], places[releases[str(bad)]]
    if first == last:
        raise RequestError(
            f"{good} and {bad} are the same kernel, {releases[str(good)]}", hint="give two versions of the kernel"
        )
    # The good kernel may be the newer one.
    step = 1 if first < last else -1
    between = [row.spec for row in rows[first + step : last : step]]
    return [str(good), *between, str(bad)]


def bisect_versions(specs: list[str], test: TestVersion) -> tuple[str, ...]:
    """Return the versions one of which brought the difference; ``specs`` run from the good end to the bad one."""
    outcomes: dict[int, Outcome] = {0: "absent", len(specs) - 1: "there"}
    while (place := next_candidate(len(specs), outcomes)) is not None:
        spec = specs[place]
        # Packaged kernels need no build.
        outcomes[place] = test(spec, lambda spec=spec: spec)  # type: ignore[misc]
    return tuple(specs[place] for place in culprits(len(specs), outcomes))
