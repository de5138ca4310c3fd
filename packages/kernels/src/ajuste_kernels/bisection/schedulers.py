"""BPF schedulers (sched_ext) of a git repository: each revision is built for one kernel."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from ajuste.machine.home import Home
from ajuste.model.capability import asked_here
from ajuste.model.error import RequestError
from ajuste.model.wording import Say
from ajuste.study.schema import SchedulerTable, Study
from ajuste_guest.kernel.config import kernel_options
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_guest.kernel.schedulers import OwnScheduler, require_loadable
from ajuste_kernels.bisection.revisions import Ends
from ajuste_kernels.bisection.session import scheduler_study
from ajuste_kernels.building.make import jobs_here
from ajuste_kernels.building.schedulers import EXAMPLES, require_llvm
from ajuste_kernels.building.sources import revision_source
from ajuste_kernels.workplace import SchedulerWorkplace, scheduler_workplace

_LONGEST: Final = 24


@dataclass(frozen=True)
class Recipe:
    """The command that builds a scheduler in its repository, and the program that it makes there."""

    command: tuple[str, ...]
    program: str


def recipe_of(scheduler: str, command: str | None, ends: Ends) -> Recipe:
    """Return how to build ``scheduler``: by ``command``, or by the kernel tree, cargo or make of the good end. Raises
    RequestError.
    """
    if command is not None:
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise RequestError(f"--make {command!r}: {error}; expected a command") from None
        if not words:
            raise RequestError("--make is empty; expected a command", hint='give one, such as --make "make scx_mine"')
        return Recipe(words, scheduler)
    files = revision_source(ends.repository, ends.good).manifest
    name, jobs = PurePosixPath(scheduler).name, f"-j{jobs_here()}"
    if f"{EXAMPLES}/{name}.bpf.c" in files:
        # bpftool as such requires libraries that only its other commands use.
        tool, llvm = "tools/bpf/bpftool", f"LLVM={require_llvm().suffix or 1}"
        made = f"make {jobs} {llvm} -C {tool} bootstrap"
        built = f'make {jobs} {llvm} -C {EXAMPLES} BPFTOOL="$PWD/{tool}/bootstrap/bpftool" {shlex.quote(name)}'
        return Recipe(("sh", "-c", f"{made} && {built}"), f"{EXAMPLES}/build/bin/{name}")
    if "Cargo.toml" in files:
        locked = ("--locked",) if "Cargo.lock" in files else ()
        return Recipe(("cargo", "build", "--release", *locked, "--package", name), f"target/release/{name}")
    if "Makefile" in files or "GNUmakefile" in files:
        return Recipe(("make", scheduler), scheduler)
    raise RequestError(
        f"--scheduler {scheduler}: {ends.repository} has neither {EXAMPLES}/{name}.bpf.c nor Cargo.toml nor Makefile "
        "at the good end",
        hint="name the program that building makes, and the command: --scheduler out/scx_mine --make ./build.sh",
    )


@dataclass
class SchedulerBuilds:
    """The programs of revisions, by the names that they have as levels of ``sched_ext``."""

    recipe: Recipe
    ends: Ends
    workplace: SchedulerWorkplace
    environment: dict[str, str]
    about: str
    tables: dict[str, SchedulerTable] = field(default_factory=dict)

    def build(self, commit: str) -> str:
        """Build a revision's program and return its name; equal programs share one name. Raises RequestError, RunError
        if it does not build.
        """
        program = re.sub("[^a-z0-9_]", "_", PurePosixPath(self.recipe.program).name.lower()).removeprefix("scx_")
        table = SchedulerTable(
            name=f"scx_{program[:_LONGEST]}_{commit[:12]}",
            program=self.recipe.program,
            repository=str(self.ends.repository),
            commit=commit,
            build=self.recipe.command,
        )
        digest = self.workplace.build_once(table, self.environment, self.about)
        same = next((name for name, built in self.tables.items() if built.sha256 == digest), None)
        if same is None:
            self.tables[table.name] = table.model_copy(update={"sha256": digest})
        return same or table.name

    def study_of_step(self, study: Study, metric: str, good: str, candidate: str, tests: int) -> Study:
        return scheduler_study(study, metric, self.tables[good], self.tables[candidate], tests)


@contextmanager
def scheduler_builds(
    scheduler: str, command: str | None, ends: Ends, kernel: str, home: Home, say: Say
) -> Iterator[SchedulerBuilds]:
    """Yield the builds of ``scheduler`` for ``kernel``; their directory is removed at the end.

    Raises RequestError for a command that is not allowed, or a kernel that cannot load the scheduler.
    """
    path = PurePosixPath(scheduler)
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise RequestError(f"--scheduler {scheduler}: expected a name or a path in the repository")
    recipe = recipe_of(scheduler, command, ends)
    asked_here().require("kernel source", shlex.join(recipe.command), "--scheduler")
    image = fetch_kernel(kernel, home, say=say)
    require_loadable((OwnScheduler(path.name, Path(scheduler), ""),), kernel_options(image), kernel)
    with scheduler_workplace(home, recipe.command) as workplace:
        yield SchedulerBuilds(recipe, ends, workplace, workplace.toolchain(image), image.sha256)
