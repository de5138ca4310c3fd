"""A project in a git repository, with a benchmark in its ajuste.toml."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from shell import Shell

PROJECT = """\
[[benchmark]]
name = "job"
build = "sh build.sh"
command = "./job"
metric = "took,ms,lower,step=0.1=regex:took ([0-9.]+) ms"
limit = "1%"
max_time = "20s"
"""
BUILD = "cp job.sh job\nchmod +x job\n"


class Project:
    """A git repository in which each commit has files of its own, and a shell in it."""

    def __init__(self, ajuste: Shell) -> None:
        self.directory = ajuste.directory
        self.home = ajuste.home
        self.ajuste = ajuste
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        done = subprocess.run(
            ["git", *identity, *words], cwd=self.directory, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.directory / name.replace("_", ".")
            path.write_text(text)

    def commit(self, message: str, **files: str) -> None:
        self.write(**files)
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)

    def gate(self, *words: str, expect: int = 0) -> Any:
        return json.loads(self.ajuste("gate", "--base", "HEAD~1", "--json", *words, expect=expect)[0])

    @property
    def left(self) -> list[str]:
        """Return what a gate has left in the repository and in Ajuste's own directory, besides logs and locks."""
        worktrees = self.git("worktree", "list").splitlines()[1:]
        remaining = [path.name for path in (self.home / "state" / "gate").glob("*") if path.suffix != ".lock"]
        return [*worktrees, *(name for name in remaining if not name.endswith("-logs"))]


def prints(milliseconds: str) -> str:
    return f'#!/bin/sh\necho "took {milliseconds} ms"\n'
