"""The kernels that commands build for themselves: what they become, and that no wrong request costs one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.choice import Choices, built_for, chosen_study, savable, with_kernels_of_source
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import home
from ajuste.model.error import RequestError
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.request import Request
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.overrides import with_kernels
from ajuste.study.schema import Study
from guests import in_guests
from shell import SMALL, Shell
from small_kernel import PATCH, RELEASE, small_kernel


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source, a patch for it and a home without any kernel."""
    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turns.patch").write_text(PATCH)
    return small_kernel(tmp_path / "linux")


def request_for(kernel: str | None) -> Request:
    return Request((("true",),), kernel=kernel)


def of_source(source: str | None, **options: Any) -> Request:
    return with_kernels_of_source(Request((("true",),), source=source, **options))


def study_of(request: Request) -> Study:
    return adhoc_study(request, catalogue(), parse_kernel=parse_spec)


def built(study: Study) -> dict[str, str]:
    return built_for(study, catalogue(), RunOptions(home()), quiet=True)


def test_a_source_with_changes_means_two_kernels_to_be_built() -> None:
    request = of_source("debian:6.1", patch=(Path("a+b.patch"),), kernel_option=("CONFIG_NUMA=n", "HZ=100"))
    assert request.kernel == r"build:debian:6.1,build:debian:6.1+NUMA=n+HZ=100+a\+b.patch"
    assert request.kernel_words == "--source debian:6.1 --patch a+b.patch --option CONFIG_NUMA=n --option HZ=100"
    assert of_source(None, kernel="debian:5.10") == request_for("debian:5.10")


@in_guests
@pytest.mark.usefixtures("tree")
def test_built_kernels_stand_by_their_names_for_all_the_rest() -> None:
    request = of_source("linux", patch=(Path("turns.patch"),), baseline=(f"build:linux+{Path('turns.patch')}",))
    names = built(study_of(request))
    assert list(names.values()) == [f"mine:{RELEASE}-lab", f"mine:{RELEASE}-lab-turns"]
    named = study_of(request.with_kernels(names))
    assert named.kernels == tuple(names.values())
    assert named.factors[0].baseline == f"mine:{RELEASE}-lab-turns"
    assert named.title == f"true: kernel mine:{RELEASE}-lab, mine:{RELEASE}-lab-turns"
    assert built(named) == {}
    assert built(study_of(request)) == names, "found again"


@in_guests
@pytest.mark.usefixtures("tree")
def test_a_study_has_the_names_wherever_it_speaks_of_its_kernels(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        SMALL.replace('"sched_min_granularity_ns"\nlevels = [750000, 75000000]', '"nice"\nlevels = [0, 10]')
    )
    study = chosen_study("small.toml", catalogue(), Choices("build:linux+HZ=100,build:linux"))
    named = with_kernels(study, built(study))
    levels = (f"mine:{RELEASE}-lab-hz-100", f"mine:{RELEASE}-lab")
    assert (named.factors[0].levels, named.factors[0].baseline_level) == (levels, levels[0])
    alone = chosen_study("small.toml", catalogue(), Choices("build:linux"))
    assert with_kernels(alone, built(alone)).target.kernel == f"mine:{RELEASE}-lab"


@in_guests
@pytest.mark.usefixtures("tree")
def test_an_option_that_changes_nothing_is_nothing_to_compare() -> None:
    with pytest.raises(RequestError, match=r"build:linux and build:linux\+EXPERT=y give the same kernel"):
        built(study_of(request_for("build:linux,build:linux+EXPERT=y")))


def test_what_does_not_go_together() -> None:
    with pytest.raises(RequestError, match="requires --patch or --option"):
        of_source("debian:6.1")
    with pytest.raises(RequestError, match="--patch and --option require --source"):
        of_source(None, patch=(Path("my.patch"),))
    with pytest.raises(RequestError, match=r"conflicts with --kernel debian:5\.10; remove one of them"):
        of_source("debian:6.1", patch=(Path("my.patch"),), kernel="debian:5.10")


@in_guests
def test_errors_name_the_option_that_was_typed(tree: Path) -> None:
    with pytest.raises(RequestError, match=r"^--option NUMA=: NUMA has no value"):
        of_source("debian:6.1", kernel_option=("NUMA=",))
    with pytest.raises(RequestError, match=r"^--source debian:5\.11: .*kernel 5\.11 not found"):
        of_source("debian:5.11", kernel_option=("NUMA=n",))
    with pytest.raises(RequestError, match=rf"^--source {tree} --option HZZ=1: option HZZ is not supported"):
        built(study_of(of_source(str(tree), kernel_option=("HZZ=1",))))


def test_a_saved_study_says_what_a_study_file_may_say_and_has_names_for_the_rest() -> None:
    request = request_for("build:debian:6.1+NUMA=n,build:./linux,debian:6.1")
    names = {"build:debian:6.1+NUMA=n": "mine:numa", "build:./linux": "mine:linux"}
    assert savable(request, names).kernel == "build:debian:6.1+NUMA=n,mine:linux,debian:6.1"
    with pytest.raises(RequestError, match=r"^--save: .*the source \./linux is not allowed in a study file"):
        savable(request, {})


# No typo costs a kernel: building runs the source's Makefile, which leaves a file.


KERNELS = "build:linux+HZ=100,build:linux,debian:5.10"
COMPARE = ("compare", "--kernel", KERNELS)
RUN = ("run", "small.toml", "--kernel", "build:linux")
TYPOS: dict[str, tuple[tuple[str, ...], str]] = {
    "an option": (("compare", "--kernel", "build:linux+HZZ=100,build:linux", "--", "true"), "HZZ .*\n.*nearest: HZ"),
    "the value of an option": (("compare", "--kernel", "build:linux+NUMA=of", "--", "true"), "expected y or n"),
    "a patch": (("compare", "--kernel", "build:linux+trns.patch,build:linux", "--", "true"), "patch trns.patch: No"),
    "a source": (("compare", "--kernel", "build:linx,build:linux", "--", "true"), "source linx: directory not found"),
    "another kernel": (("compare", "--kernel", f"{KERNELS},mine:bse", "--", "true"), "built kernel 'bse' not found"),
    "another series": (("compare", "--kernel", f"{KERNELS},debian:6.2", "--", "true"), "kernel 6.2 not found"),
    "a workload's parameter": ((*COMPARE, "--set", "workload.mood=a,b", "--", "hackbench"), 'no parameter "mood"'),
    "a program": ((*COMPARE, "--", "truee"), 'program "truee" not found'),
    "a program beside it": ((*COMPARE, "--background", "spinn", "--", "true"), 'program "spinn" not found'),
    "a tunable": ((*COMPARE, "--set", "vm.swapines=1,2", "--", "true"), "did you mean vm.swappiness"),
    "a tunable's level": ((*COMPARE, "--set", "vm.swappiness=1,900", "--", "true"), "900"),
    "a metric": ((*COMPARE, "--metric", "elapsd", "--", "true"), "did you mean elapsed"),
    "a baseline": ((*COMPARE, "--baseline", "build:linux+HZ=10", "--", "true"), r"--baseline build:linux\+HZ=10"),
    "a report": ((*COMPARE, "--report", "no/where.html", "--", "true"), "--report no/where.html"),
    "a file to save to": ((*COMPARE, "--save", "no/where.toml", "--", "true"), "--save no/where.toml: No such file"),
    "a cluster": ((*COMPARE, "--cluster", "labs", "--", "true"), "--cluster 'labs'"),
    "a profile": (("compare", "--kernel", "build:linux", "--profile", "no.conf", "--", "true"), r"no\.conf"),
    "a profile to take apart": (("ablate", "--kernel", "build:linux", "--profile", "no.conf", "--", "true"), "no.conf"),
    "a study": (("run", "granularty", "--kernel", "build:linux"), "did you mean granularity"),
    "a parameter of a study": ((*RUN, "--parameter", "sice=1"), "did you mean size"),
    "a level left out": ((*RUN, "--without", "sched_min_granularity_ns=7"), "no level '7'"),
    "an objective": (
        ("tune", "small.toml", "--kernel", "build:linux", "--objective", "elapsd"),
        "did you mean elapsed",
    ),
    "a claim": (("kernel", "prove", "build:linux", "nuna"), "nuna"),
    "the other side": (("kernel", "diff", "build:linux", "mine:bse"), "built kernel 'bse' not found"),
    "a source of reasons": (("kernel", "diff", "build:linux", "running", "--source", "linx"), "directory not found"),
    "the good end": (
        ("kernel", "bisect", "--good", "mine:bse", "--bad", "build:linux", "--study", "granularity"),
        "built kernel 'bse' not found",
    ),
    "the study of a bisection": (
        ("kernel", "bisect", "--good", "build:linux", "--bad", "build:linux+HZ=100", "--study", "granularty"),
        "did you mean granularity",
    ),
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell in a directory with a source whose Makefile leaves a trace when it is run; its home has no kernel."""
    makefile = small_kernel(tmp_path / "linux") / "Makefile"
    makefile.write_text(f"$(shell touch {tmp_path}/ran)\n{makefile.read_text()}")
    (tmp_path / "small.toml").write_text(SMALL)
    return Shell(tmp_path, tmp_path / "home")


@in_guests
@pytest.mark.parametrize(("words", "message"), TYPOS.values(), ids=TYPOS.keys())
def test_a_typo_costs_no_kernel_and_no_download(shell: Shell, words: tuple[str, ...], message: str) -> None:
    _, complained = shell(*words, expect=2)
    assert re.search(message, complained), complained
    assert not (shell.directory / "ran").exists()
    assert not any((shell.home / "cache" / place).exists() for place in ("built/names", "kernels", "sources"))


@in_guests
def test_a_plan_builds_nothing(shell: Shell) -> None:
    (shell.directory / "turns.patch").write_text(PATCH)
    output, _ = shell("compare", "--source", "linux", "--patch", "turns.patch", "--dry-run", "--", "true")
    assert "kernel: build:linux (baseline), build:linux+turns.patch" in output
    output, _ = shell("plan", "small.toml", "--kernel", "build:linux+HZ=100,build:debian:6.1+NUMA=n")
    assert "build:linux+HZ=100 (baseline), build:debian:6.1+NUMA=n" in output
    assert not (shell.directory / "ran").exists()


@in_guests
def test_a_study_file_builds_no_source_of_its_own(shell: Shell) -> None:
    def planned(kernel: str, expect: int) -> tuple[str, str]:
        (shell.directory / "small.toml").write_text(SMALL.replace("debian:5.10", kernel))
        return shell("run" if expect else "plan", "small.toml", expect=expect)

    assert "build:debian:5.10+NUMA=n" in planned("build:debian:5.10+NUMA=n", 0)[0]
    for kernel in ("build:./linux", "build:debian:5.10+turns.patch", "build:debian:5.10+TEXT=$(shell touch ran)"):
        _, complained = planned(kernel, 2)
        assert complained.startswith("ajuste: small.toml:17: target.kernel: ")
        assert "is not allowed in a study file" in complained
        assert "give this kernel on the command line, with --kernel" in complained
    assert not (shell.directory / "ran").exists()
