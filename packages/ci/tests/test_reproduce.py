"""A run as a regression test: what is expected of it, and what a run that comes out otherwise ends with."""

from __future__ import annotations

import tomllib
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from guests import in_guests
from own_home import own_home
from shell import SMALL, Shell, small

METRIC, OTHER = "involuntary-switches", "sched_min_granularity_ns=75000000"


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell beside ``test.toml``, the reproducer of the run of ``small.toml``."""
    root = tmp_path_factory.mktemp("reproduced")
    (root / "small.toml").write_text(SMALL)
    shell = Shell(root, own_home(root / "home"))
    shell("run", "small.toml", "--quiet")
    shell("reproduce", "small", "--within", "10%", "-o", "test.toml")
    return shell


@pytest.mark.vm
def test_a_run_is_its_own_reproducer(reproduced: Shell) -> None:
    results = reproduced.json("report", "small")
    document = tomllib.loads((reproduced.directory / "test.toml").read_text())
    assert document["expect"]["digest"] == results["digest"]
    (figure,) = document["expect"]["figure"]
    assert (figure["metric"], figure["configuration"], figure["verdict"]) == (METRIC, OTHER, ["differs"])
    assert document["target"]["kernel"].startswith("debian:5.10.")
    output, _ = reproduced(
        "run", "test.toml", "--quiet", "--junit", "test.xml", "--tap", "test.tap", "--ktap", "test.ktap"
    )
    assert output.splitlines()[-1] == "4 of 4 expectations met; exit code 0"
    suite = fromstring((reproduced.directory / "test.xml").read_text())
    assert (suite.get("tests"), suite.get("failures"), len(suite.findall(".//testcase"))) == ("4", "0", 4)
    for name, version in (("test.tap", "TAP version 14"), ("test.ktap", "KTAP version 1")):
        lines = (reproduced.directory / name).read_text().splitlines()
        assert lines[:2] == [version, "1..4"]
        assert all(line.startswith(f"ok {number}") for number, line in enumerate(lines[2:], start=1))


@pytest.mark.vm
def test_another_kernel_is_judged_by_verdicts_and_means_alone(reproduced: Shell) -> None:
    text = (reproduced.directory / "test.toml").read_text()
    (reproduced.directory / "wrong.toml").write_text(text.replace('["differs"]', '["equivalent", "improves"]'))
    output, _ = reproduced("run", "wrong.toml", "--quiet", "--blocks", "6..7", "--ktap", "wrong.ktap", expect=3)
    assert output.splitlines()[-1] == "2 of 3 expectations met; exit code 3"
    assert f"expected {METRIC} of {OTHER}: equivalent or improves; found differs" in output
    assert "3 of 3 expectations met" in reproduced("run", "test.toml", "--quiet", "--kernel", "debian:5.10")[0]
    ktap = (reproduced.directory / "wrong.ktap").read_text()
    assert "not ok 2 " in ktap
    assert "ok 3 " in ktap


@pytest.mark.vm
def test_a_digest_that_differs_is_named(reproduced: Shell) -> None:
    text = (reproduced.directory / "test.toml").read_text()
    document = tomllib.loads(text)
    (reproduced.directory / "other.toml").write_text(text.replace(document["expect"]["digest"], "0" * 64))
    output, _ = reproduced("run", "other.toml", "--quiet", expect=3)
    assert f"expected digest {'0' * 64}; found {document['expect']['digest']}" in output


@pytest.mark.vm
def test_a_test_of_a_fix_fails_before_it(reproduced: Shell) -> None:
    reproduced("reproduce", "small", "--fixed", "-o", "fixed.toml")
    expect = tomllib.loads((reproduced.directory / "fixed.toml").read_text())["expect"]
    assert (expect["stalls"], "digest" in expect) == (0, False)
    (figure,) = expect["figure"]
    good, bad = (
        configuration["metrics"][METRIC]["mean"]
        for configuration in reproduced.json("report", "small")["configurations"]
    )
    assert bad < figure["least"] < good
    assert "verdict" not in figure
    _, complained = reproduced("reproduce", "small", "-o", "fixed.toml", expect=2)
    assert "fixed.toml exists; nothing was written" in complained
    reproduced("reproduce", "small", "--fixed", "-o", "fixed.toml")
    output, _ = reproduced("run", "fixed.toml", "--quiet", expect=3)
    assert f"{METRIC} of {OTHER}: at least {(good + bad) / 2:.6g}" in output


@pytest.mark.vm
def test_an_undecided_run_is_no_test(reproduced: Shell) -> None:
    few = small(2, 2).replace('"small"', '"few"').replace("repetitions = 2", "repetitions = 1")
    (reproduced.directory / "few.toml").write_text(few)
    reproduced("run", "few.toml", "--quiet")
    output, _ = reproduced("reproduce", "few", "-o", "vague.toml")
    assert "is undecided, so the file tests little" in output
    _, complained = reproduced("reproduce", "few", "--fixed", "-o", "none.toml", expect=2)
    assert "has nothing to fix" in complained


BAD = {
    "metrics that are not measured": ("metric = 'elapsd'\nverdict = ['differs']", "elapsd"),
    "no expectation": ("metric = 'elapsed'", "expected verdict, least or most"),
    "limits that exclude each other": ("metric = 'elapsed'\nleast = 2\nmost = 1", "least is 2"),
    "an unknown verdict": ("metric = 'elapsed'\nverdict = ['better']", "verdict"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_expected_is_refused(ajuste: Shell, what: str, tmp_path: Path) -> None:
    table, named = BAD[what]
    (ajuste.directory / "bad.toml").write_text(f"{SMALL}\n[[expect.figure]]\n{table}\n")
    _, complained = ajuste("plan", "bad.toml", expect=2)
    assert named in complained
    assert "bad.toml:" in complained


def test_tests_are_of_a_study_that_expects_something(ajuste: Shell) -> None:
    (ajuste.directory / "small.toml").write_text(SMALL)
    _, complained = ajuste("run", "small.toml", "--tap", "small.tap", expect=2)
    assert "[expect]" in complained
    assert not (ajuste.directory / "small.tap").exists()


@pytest.mark.vm
def test_a_trial_that_fails_breaks_an_expectation(ajuste: Shell) -> None:
    study = SMALL.replace('kind = "matrix"\nparameters = { size = 100, repetitions = 2 }', 'command = ["false"]')
    (ajuste.directory / "stall.toml").write_text(f"{study}\n[expect]\nstalls = 0\n")
    output, complained = ajuste("run", "stall.toml", "--quiet", "--junit", "stall.xml", expect=3)
    assert "the study failed: " in complained
    assert "expected no failed trial; found " in output
    assert output.splitlines()[-1] == "0 of 1 expectation met; exit code 3"
    assert len(fromstring((ajuste.directory / "stall.xml").read_text()).findall(".//failure")) == 1


def test_a_reproducer_of_another_version_is_refused(ajuste: Shell) -> None:
    (ajuste.directory / "later.toml").write_text(SMALL.replace("schema = 1", "schema = 2"))
    _, complained = ajuste("run", "later.toml", expect=2)
    assert "later.toml:1: schema: " in complained
    (ajuste.directory / "more.toml").write_text(f"{SMALL}\n[expect]\nejections = 0\n")
    _, complained = ajuste("run", "more.toml", expect=2)
    assert "expect.ejections: unknown field" in complained


STRANGER = """
[[patch]]
name = "x.patch"
text = "--- a/Makefile\\n+++ b/Makefile\\n@@ -1 +1,2 @@\\n # x\\n+$(shell touch MARK)\\n"

[[scheduler]]
name = "scx_x"
program = "scx_x"
build = ["touch", "MARK"]
source = { x = "" }
"""


@pytest.mark.parametrize("kernel", ["build:debian:6.1.192+x.patch", pytest.param("debian:6.18", marks=in_guests)])
def test_what_a_stranger_wrote_is_built_only_with_permission(ajuste: Shell, kernel: str) -> None:
    mark = ajuste.directory / "mark"
    text = SMALL.replace("debian:5.10", kernel) + STRANGER.replace("MARK", str(mark))
    (ajuste.directory / "x.toml").write_text(text)
    _, complained = ajuste("run", "x.toml", expect=2)
    assert "--build" in complained
    assert not mark.exists()
