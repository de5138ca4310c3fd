"""Bisection over commits of a small tree, each of which is really built."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ajuste.machine.home import Home
from ajuste_kernels.bisection.bisect import Ask, Workshop, bisect
from ajuste_kernels.bisection.session import BisectionSession
from small_kernel import OPTIONS, small_kernel

if TYPE_CHECKING:
    from packages.kernels.tests.bisection.conftest import Lab

    from ajuste_kernels.bisection.bisect import Watching

In = Callable[["Lab"], Callable[[str, int], BisectionSession]]


def test_the_commit_is_found_past_one_that_does_not_compile(
    tmp_path: Path,
    session_in: In,
    lab_by_config: Callable[[Home, Callable[[str], float]], Lab],
    silent: Watching,
) -> None:
    tree = small_kernel(tmp_path / "linux")
    (tmp_path / "config").write_text(OPTIONS)

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=Someone", "-c", "user.email=s@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], cwd=tree, check=True, capture_output=True)

    def commit(subject: str, file: str, old: str, new: str) -> None:
        path = tree / file
        path.write_text(path.read_text().replace(old, new))
        git("commit", "--quiet", "--all", "--message", subject)

    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "base")
    git("tag", "base")
    commit("a larger core", "kernel/core.c", "1", "2")
    commit("does not compile", "kernel/core.c", "2;", "2")
    commit("compiles again", "kernel/core.c", "2", "2;")
    commit("fewer ticks", "Kconfig", "default 250", "default 100")
    commit("features", "kernel/fair.c", "features = 1", "features = 2")

    home = Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    played = lab_by_config(home, lambda config: 2.0 if "CONFIG_HZ=100" in config else 1.0)
    ask = Ask(f"git:{tree}@base", f"git:{tree}@main", config=str(tmp_path / "config"))
    result = bisect(ask, Workshop(home, silent, lambda _: None), session_in(played))
    assert [text.partition(" ")[2] for text in result.culprits] == ["fewer ticks"]
    assert (result.kind, result.among, result.is_certain) == ("revisions", 5, True)
    tested = {step.candidate.partition(" ")[2]: step for step in result.steps}
    if "does not compile" in tested:
        assert tested["does not compile"].outcome == "unusable"
        assert "core.c" in tested["does not compile"].note
