"""Bisection of BPF schedulers, on small repositories that are really built and played measurements."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelImage
from ajuste.study.schema import Study
from ajuste_kernels.bisection.bisect import Ask, Workshop, bisect
from ajuste_kernels.bisection.revisions import Ends, revision_ends
from ajuste_kernels.bisection.schedulers import recipe_of
from ajuste_kernels.bisection.session import (
    STALLS,
    BisectionResult,
    BisectionSession,
    Failures,
    StepMeasurement,
    trials_without_failure,
)

if TYPE_CHECKING:
    from packages.kernels.tests.bisection.conftest import Lab

    from ajuste_kernels.bisection.bisect import Watching

In = Callable[["Lab"], Callable[[str, int], BisectionSession]]
MAKEFILE = "out/scx_mine: state\n\t@sh -n state\n\tmkdir -p out && { cat /bin/true state; } > $@\n"


@dataclass
class Clone:
    """A repository of one scheduler; the file ``state`` says how it behaves."""

    directory: Path

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
        command = ["git", *identity, "-C", str(self.directory), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, subject: str, **files: str) -> str:
        for name, text in files.items():
            (self.directory / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def ends(self) -> Ends:
        return revision_ends(f"git:{self.directory}@base", f"git:{self.directory}@main")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    clone = Clone(tmp_path / "clone")
    clone.directory.mkdir()
    clone.git("init", "--quiet", "--initial-branch=main")
    clone.commit("base", Makefile=MAKEFILE, state="works\n")
    clone.git("tag", "base")
    return clone


@dataclass
class Rack:
    """Plays trials of two schedulers by what their programs say of themselves; ``failing`` is how many of all trials of
    one that ``stalls`` fail.
    """

    lab: Lab
    home: Home
    failing: float = 1.0
    candidates: list[str] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)

    def __call__(self, study: Study) -> StepMeasurement:
        good, candidate = (self.state(study, name) for name in study.factors[0].levels)
        self.candidates.append(candidate)
        self.blocks.append(blocks := study.budget.min_blocks)
        failures = [self.failures(state, blocks) for state in (good, candidate)]
        self.lab.ratios = {study.factors[0].levels[1]: 2.0 if "slow" in candidate else 1.0}
        measurement = self.lab(study)
        verdict = None if failures[1].failed else measurement.verdict
        return StepMeasurement(verdict, measurement.run, measurement.report, failures[0], failures[1])

    def failures(self, state: str, blocks: int) -> Failures:
        failed = max(1, round(self.failing * blocks)) if "stalls" in state else 0
        return Failures(blocks, failed, "the kernel ejected the scheduler mine meanwhile" if failed else "")

    def state(self, study: Study, name: str) -> str:
        (digest,) = [table.sha256 for table in study.schedulers if table.name == name]
        program = self.home.cache / "contained" / str(digest) / name
        return program.read_bytes()[Path("/bin/true").stat().st_size :].decode()


@dataclass
class Bench:
    """Bisects ``out/scx_mine`` of a clone."""

    clone: Clone
    home: Home
    rack: Rack
    session_in: In
    silent: Watching

    def __call__(self, metric: str = "elapsed", **more: str) -> BisectionResult:
        fields: Mapping[str, str] = {"scheduler": "out/scx_mine", "kernel": "debian:6.18", **more}
        ask = Ask(f"git:{self.clone.directory}@base", f"git:{self.clone.directory}@main", **fields)  # type: ignore[arg-type]

        def session_for(good: str, tests: int) -> BisectionSession:
            session = self.session_in(self.rack)(good, tests)  # type: ignore[arg-type]
            session.metric = metric
            return session

        return bisect(ask, Workshop(self.home, self.silent, lambda _: None), session_for)


@pytest.fixture
def bench(
    clone: Clone,
    tmp_path: Path,
    lab: type[Lab],
    session_in: In,
    silent: Watching,
    monkeypatch: pytest.MonkeyPatch,
) -> Bench:
    config = tmp_path / "config"
    config.write_text("CONFIG_DEBUG_INFO_BTF=y\nCONFIG_SCHED_CLASS_EXT=y\n")
    image = KernelImage(spec="debian:6.18", release="6.18.1", vmlinuz=config, config=config, sha256="0" * 64)
    monkeypatch.setattr("ajuste_kernels.bisection.schedulers.fetch_kernel", lambda spec, home, *, say: image)
    monkeypatch.setattr("ajuste_kernels.workplace.read_vmlinux", lambda _: b"types")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    home = Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    return Bench(clone, home, Rack(lab(), home), session_in, silent)


def subjects(result: BisectionResult) -> list[str]:
    return [text.partition(" ")[2] for text in result.culprits]


def test_the_commit_that_made_a_scheduler_slow_is_found(bench: Bench, tmp_path: Path) -> None:
    clone = bench.clone
    clone.commit("a comment", state="works\n# once more\n")
    clone.commit("does not compile", state="works (\n")
    clone.commit("compiles again", state="works\n# again\n")
    clone.commit("the regression", state="works # slow\n")
    clone.commit("a note", README="read me")
    clone.commit("later", state="works # slow, later\n")
    result = bench()
    assert (subjects(result), result.kind, result.among) == (["the regression"], "revisions", 6)
    for step in result.steps:
        if "does not compile" in step.candidate:
            assert step.outcome == "unusable"
            assert "does not build" in step.note
    assert not list(tmp_path.glob("ajuste-scheduler-*"))


def test_commits_that_do_not_compile_stay_suspects(bench: Bench) -> None:
    bench.clone.commit("does not compile", state="works (\n")
    bench.clone.commit("slow", state="works # slow\n")
    result = bench()
    assert subjects(result) == ["does not compile", "slow"]
    assert not result.is_certain


@pytest.mark.parametrize("metric", ["elapsed", STALLS])
def test_a_scheduler_that_fails_its_trials_is_what_is_sought(bench: Bench, metric: str) -> None:
    for number in range(3):
        bench.clone.commit(f"before {number}", state=f"works # {number}\n")
    bench.clone.commit("forgets a task", state="stalls\n")
    bench.clone.commit("later", state="stalls # later\n")
    result = bench(metric)
    assert (subjects(result), result.metric) == (["forgets a task"], STALLS)
    assert "the kernel ejected the scheduler" in result.steps[0].note
    assert {step.outcome for step in result.steps} == {"there", "absent"}


def test_rare_stalls_are_ruled_out_by_more_trials(bench: Bench) -> None:
    bench.clone.commit("before", state="works # before\n")
    bench.clone.commit("forgets a task", state="stalls\n")
    bench.rack.failing = 0.5
    assert subjects(bench(STALLS)) == ["forgets a task"]
    assert bench.rack.blocks[-1] > bench.rack.blocks[0]


def test_another_failure_on_the_way_is_skipped(bench: Bench) -> None:
    bench.clone.commit("stalls", state="stalls\n")
    bench.clone.commit("works again", state="works # again\n")
    bench.clone.commit("slow", state="works # slow\n")
    result = bench()
    assert subjects(result) == ["slow"]
    assert {step.outcome for step in result.steps if "stalls" in step.candidate} <= {"unusable"}


def test_what_was_built_is_not_built_again(bench: Bench) -> None:
    bench.clone.commit("slow", state="works # slow\n")
    bench()
    candidates = list(bench.rack.candidates)
    built = sorted(bench.home.cache.glob("contained/*/built"))
    before = [note.stat().st_mtime_ns for note in built]
    assert subjects(bench()) == ["slow"]
    assert [note.stat().st_mtime_ns for note in built] == before
    assert bench.rack.candidates == [*candidates, *candidates]
    with pytest.raises(RunError, match="does not build"):
        bench(make="sh -c 'exit 1'")


def test_a_commit_with_the_same_program_is_not_measured(bench: Bench) -> None:
    for number in range(4):
        bench.clone.commit(f"note {number}", README=str(number))
    bench.clone.commit("slow", state="works # slow\n")
    assert subjects(bench()) == ["slow"]
    assert len(bench.rack.candidates) == 1


def test_ends_that_fail_or_do_not_differ_are_told(bench: Bench) -> None:
    bench.clone.commit("note", README="more")
    with pytest.raises(RequestError, match="make the same program"):
        bench()
    bench.clone.commit("comment", state="works # comment\n")
    with pytest.raises(RunError, match="succeeded, so there is nothing to bisect"):
        bench(STALLS)
    with pytest.raises(RunError, match="no significant difference"):
        bench()
    bench.clone.commit("stalls", state="stalls\n")
    bench.clone.git("tag", "-f", "base")
    bench.clone.commit("stalls too", state="stalls # too\n")
    with pytest.raises(RunError, match=r"good end .*fails as well: .*ejected"):
        bench(STALLS)


def test_bad_input_is_told_before_anything_is_built(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.clone.commit("slow", state="works # slow\n")
    for words, message in (
        ({"scheduler": "../scx_mine"}, "expected a name or a path in the repository"),
        ({"make": "sh '"}, "expected a command"),
        ({"make": ""}, "is empty"),
    ):
        with pytest.raises(RequestError, match=message):
            bench(**words)
    monkeypatch.setenv("AJUSTE_ASKED_BY", "agent")
    with pytest.raises(RequestError, match="an agent may not name"):
        bench()
    assert not (bench.home.cache / "contained").exists()


def test_a_kernel_that_loads_no_scheduler_is_refused(bench: Bench, tmp_path: Path) -> None:
    bench.clone.commit("slow", state="works # slow\n")
    (tmp_path / "config").write_text("CONFIG_DEBUG_INFO_BTF=y\n")
    with pytest.raises(RequestError, match="cannot load"):
        bench()


def test_a_repository_is_built_as_its_kind_is(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    clone.commit("more")
    assert recipe_of("out/scx_mine", None, clone.ends()).command == ("make", "out/scx_mine")
    assert recipe_of("out/scx_mine", "ninja 'a b'", clone.ends()).command == ("ninja", "a b")
    clone.commit("cargo", **{"Cargo.toml": "", "Cargo.lock": ""})
    clone.git("tag", "-f", "base")
    clone.commit("more")
    recipe = recipe_of("scx_mine", None, clone.ends())
    assert (recipe.command[0], "--locked" in recipe.command, recipe.program) == (
        "cargo",
        True,
        "target/release/scx_mine",
    )
    (clone.directory / "tools" / "sched_ext").mkdir(parents=True)
    clone.commit("kernel", **{"tools/sched_ext/scx_simple.bpf.c": ""})
    clone.git("tag", "-f", "base")
    clone.commit("more")
    monkeypatch.setattr(
        "ajuste_kernels.bisection.schedulers.require_llvm", lambda: type("Llvm", (), {"suffix": "-19", "words": ""})()
    )
    recipe = recipe_of("scx_simple", None, clone.ends())
    assert (recipe.program, "LLVM=-19" in recipe.command[-1]) == ("tools/sched_ext/build/bin/scx_simple", True)
    clone.git("rm", "--quiet", "-r", "Makefile", "Cargo.toml", "tools")
    clone.commit("nothing")
    clone.git("tag", "-f", "base")
    clone.commit("more")
    with pytest.raises(RequestError, match="has neither"):
        recipe_of("scx_mine", None, clone.ends())


def test_the_rarer_the_failures_the_more_trials_rule_them_out() -> None:
    assert trials_without_failure(Failures(5, 5), 0.99) == 1
    assert trials_without_failure(Failures(10, 5), 0.99) == 7
    assert trials_without_failure(Failures(10, 1), 0.99) == 44
