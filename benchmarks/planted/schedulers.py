"""Regressions that were planted into a BPF scheduler: ``python -m benchmarks planted-schedulers``.

The scheduler is the kernel tree's simplest example, from the sources that Ajuste fetches. Each regression is one of
eight commits, one of which does not compile. ``ajuste kernel bisect`` must name it, and the reproducer of the bad end
must fail, pass once it is reverted, and have the same digests in two homes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

import tomlkit

from ajuste.kernel.spec import PackagedKernel, parse_source
from ajuste.machine.home import home
from ajuste_kernels.building.sources import packaged_source
from benchmarks.comparison import Comparison

NAME: Final = "scx_simple"
SOURCE: Final = "debian:7.3"

_AJUSTE: Final = Path(sys.executable).parent / "ajuste"
_STUDIES: Final = Path(__file__).parent
_PROGRAM: Final = f"tools/sched_ext/{NAME}.bpf.c"
# What the example's Makefile and bpftool's are built from.
_PARTS: Final = (
    "kernel/bpf",
    "scripts/Makefile.compiler",
    "scripts/bpf_doc.py",
    "tools/arch/x86/include",
    "tools/bpf/bpftool",
    "tools/build",
    "tools/include",
    "tools/lib",
    "tools/sched_ext",
    "tools/scripts",
)
# A home of its own has these of the cache, and nothing that was built or booted.
_SHARED: Final = ("kernels", "lists", "modules", "qemu", "sources", "symbols")

Edits = tuple[tuple[str, str], ...]
"""Patterns in the scheduler's text, each with what replaces it."""


class Regression(NamedTuple):
    """``place`` is the number of its commit."""

    subject: str
    study: str
    place: int
    edits: Edits


REGRESSIONS: Final = {
    "verifier": Regression(
        "Count without a look at the pointer", "niced-job.toml", 3, ((r"\tif \(cnt_p\)\n\t\t", r"\t"),)
    ),
    "short slices": Regression(
        "Take turns more often",
        "short-slices.toml",
        6,
        ((r"(dsq_insert_vtime\(p, \w+, SCX_SLICE_DFL)", r"\1 / 50"),),
    ),
    "late wake-ups": Regression(
        "Queue by arrival", "late-wakeups.toml", 8, ((r"(_enqueue\b[^}]*)if \(fifo_sched\)", r"\1if (true)"),)
    ),
    "ejection": Regression(
        "Let niced tasks have a queue of their own",
        "niced-job.toml",
        2,
        (
            (
                r"\tstat_inc\(1\);.*\n",
                r"\g<0>\tif (p->scx.weight < 100) {\n\t\tscx_bpf_dsq_insert(p, 7, SCX_SLICE_DFL, enq_flags);\n"
                r"\t\treturn;\n\t}\n",
            ),
        ),
    ),
    "stall": Regression(
        "Leave niced tasks for later",
        "niced-job.toml",
        7,
        ((r"\tstat_inc\(1\);.*\n", r"\g<0>\tif (p->scx.weight < 100)\n\t\treturn;\n"),),
    ),
}

_TIMEOUT: Final = (r"(\n\s*)\.name(\s*)= \"simple\"", r"\1.timeout_ms\2= 2000,\g<0>")
HARMLESS: Final[tuple[tuple[str, Edits], ...]] = (
    ("Wait longer for tasks that do not run", ((r"(\.timeout_ms\s*= )2000", r"\g<1>3000"),)),
    (
        "Count what CPUs take",
        (
            (r"max_entries, 2\)", "max_entries, 3)"),
            (r"\t(scx_bpf_dsq_move_to_local\(.*\));", r"\tif (\1)\n\t\tstat_inc(2);"),
        ),
    ),
    ("Say what it is", ((r"\* A simple scheduler\.", "* A simple scheduler, for tests."),)),
    ("Forget a parenthesis", ((r"stat_inc\(0\);", "stat_inc(0;"),)),
    ("Remember it", ((r"stat_inc\(0;", "stat_inc(0);"),)),
    ("Call the queue by its tasks", ((r"SHARED_DSQ", "RUNNABLE_DSQ"),)),
    ("Have a fourth counter", ((r"max_entries, 3\)", "max_entries, 4)"),)),
)


@dataclass(frozen=True)
class Repository:
    """A clone with a branch for each regression, from the tag ``base``."""

    directory: Path

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=Planter", "-c", "user.email=planter@example.org", "-c", "commit.gpgsign=false")
        return _output(["git", *identity, "-C", str(self.directory), *words]).strip()

    def begin(self, sources: Path) -> None:
        for part in _PARTS:
            copy = self.directory / part
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(sources / part, copy) if (sources / part).is_dir() else shutil.copy(sources / part, copy)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--message", "Import the examples")
        self.commit("Wait two seconds for tasks that do not run", (_TIMEOUT,))
        self.git("tag", "base")

    def plant(self, branch: str, regression: Regression) -> str:
        """Return the commit of the regression. It is taken back on the branch ``BRANCH-fixed``."""
        history = list(HARMLESS)
        history.insert(regression.place - 1, (regression.subject, regression.edits))
        self.git("checkout", "--quiet", "-b", branch, "base")
        commits = [self.commit(subject, edits) for subject, edits in history]
        self.git("checkout", "--quiet", "-b", f"{branch}-fixed")
        self.git("checkout", "--quiet", "base", "--", _PROGRAM)
        self.commit(f"Revert: {regression.subject}", tuple(edit for _, edits in HARMLESS for edit in edits))
        return commits[regression.place - 1]

    def commit(self, subject: str, edits: Edits) -> str:
        file = self.directory / _PROGRAM
        text = file.read_text()
        for pattern, replacement in edits:
            text, count = re.subn(pattern, replacement, text)
            if not count:
                raise SystemExit(f"{subject}: {pattern} not found in {_PROGRAM} of {SOURCE}")
        file.write_text(text)
        self.git("commit", "--quiet", "--all", "--message", subject)
        return self.git("rev-parse", "HEAD")


@dataclass(frozen=True)
class Desk:
    """Directory in which somebody runs ``ajuste``, with a home that shares fetched kernels only."""

    directory: Path

    def __post_init__(self) -> None:
        cache = self.directory / "home" / "cache"
        cache.mkdir(parents=True)
        for name in _SHARED:
            (home().cache / name).mkdir(parents=True, exist_ok=True)
            (cache / name).symlink_to(home().cache / name)

    def __call__(self, *words: str, expect: Sequence[int] = (0,)) -> tuple[int, str]:
        """Return the exit code, which must be one of ``expect``, and what was printed."""
        environment = {**os.environ, "AJUSTE_HOME": str(self.directory / "home")}
        done = subprocess.run(
            [_AJUSTE, *words], cwd=self.directory, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode not in expect:
            raise SystemExit(f"ajuste {' '.join(words)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.returncode, done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json")[1])


class Findings(NamedTuple):
    """``before`` and ``after`` are exit codes of the reproducer in both homes, with its digests."""

    culprits: tuple[str, ...]
    metric: str
    minutes: float
    before: tuple[tuple[int, str], ...]
    after: tuple[tuple[int, str], ...]

    def is_named(self, commit: str) -> bool:
        return len(self.culprits) == 1 and commit.startswith(self.culprits[0].partition(" ")[0])

    @property
    def is_reproduced(self) -> bool:
        codes = [{code for code, _ in runs} for runs in (self.before, self.after)]
        digests = [{digest for _, digest in runs} for runs in (self.before, self.after)]
        return codes == [{3}, {0}] and all(len(digest) == 1 for digest in digests)


def measure(names: Sequence[str] = tuple(REGRESSIONS)) -> Iterator[Comparison]:
    """Plant, bisect and reproduce each regression."""
    figures: dict[str, list[float]] = {}
    named = reproduced = 0
    with tempfile.TemporaryDirectory() as directory:
        repository = Repository(Path(directory) / "linux")
        desks = [Desk(Path(directory) / name) for name in ("author", "reviewer")]
        wanted = parse_source(SOURCE)
        assert isinstance(wanted, PackagedKernel)
        repository.begin(packaged_source(wanted, home(), lambda _: None).tree)
        for name in names:
            regression = REGRESSIONS[name]
            branch = name.replace(" ", "-")
            planted = repository.plant(branch, regression)
            findings = _findings(repository, branch, regression, desks)
            named += findings.is_named(planted)
            reproduced += findings.is_reproduced
            words = f"{name}: {' or '.join(findings.culprits)} ({findings.metric})"
            remark = "" if findings.is_named(planted) else " (NOT IT)"
            figures[f"{words}{remark}"] = [findings.minutes]
    yield Comparison(
        name="planted-schedulers",
        what="the commits that `ajuste kernel bisect` names, and how long it takes",
        unit="min",
        figures=figures,
        goal=f"{named} of {len(names)} planted commits named; {reproduced} of {len(names)} reproducers fail before and "
        "pass after, with equal digests in two homes; goal: all",
        reached=named == reproduced == len(names),
    )


def _findings(repository: Repository, branch: str, regression: Regression, desks: Sequence[Desk]) -> Findings:
    author, study = desks[0], _STUDIES / regression.study
    ends = [f"git:{repository.directory}@{revision}" for revision in ("base", branch)]
    began = monotonic()
    result = author.json(
        "kernel", "bisect", "--scheduler", NAME, "--good", ends[0], "--bad", ends[1], "--study", str(study), "--quiet"
    )
    minutes = (monotonic() - began) / 60
    print(f"{branch}: {' or '.join(result['culprits'])}", file=sys.stderr)
    author("reproduce", result["steps"][0]["run"], "--fixed", "-o", "before.toml")
    before = (author.directory / "before.toml").read_text()
    after = before.replace(repository.git("rev-parse", branch), repository.git("rev-parse", f"{branch}-fixed"))
    runs = []
    for file, text in (("before.toml", before), ("after.toml", after)):
        for desk in desks:
            (desk.directory / file).write_text(text)
        runs.append(tuple(_run(desk, file) for desk in desks))
        print(f"{branch}: {file}: {runs[-1]}", file=sys.stderr)
    return Findings(tuple(result["culprits"]), result["metric"], minutes, runs[0], runs[1])


def _run(desk: Desk, file: str) -> tuple[int, str]:
    code, _ = desk("run", file, "--build", "--quiet", expect=(0, 3))
    name = tomlkit.parse((desk.directory / file).read_text())["name"]
    return code, desk.json("report", str(name))["digest"]


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
