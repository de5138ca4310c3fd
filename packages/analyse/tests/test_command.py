"""``ajuste analyse``: other programs' files on the command line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from scipy import stats

from ajuste.cli.edge import exit_code
from ajuste.cli.main import application
from shell import Shell

Here = Callable[..., tuple[str, str]]
OLD = [10.31, 10.12, 10.44, 10.25, 10.38, 10.02]
NEW = [9.61, 9.52, 9.78, 9.49, 9.70, 9.55]
BLOCKED = "configuration,block,time [s]\n" + "".join(
    f"{name},{block},{value}\n" for block in range(6) for name, value in (("old", OLD[block]), ("new", NEW[block]))
)


@pytest.fixture
def shell(ajuste: Shell) -> Shell:
    for name, times in (("old", OLD), ("new", NEW)):
        document = {"results": [{"command": "job", "times": times}]}
        (ajuste.directory / f"{name}.json").write_text(json.dumps(document))
    (ajuste.directory / "blocked.csv").write_text(BLOCKED)
    return ajuste


@pytest.fixture
def here(shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Runs the command in this process: ``here(code, *words)`` is its output on stdout and stderr."""

    def run(code: int, *words: str) -> tuple[str, str]:
        assert exit_code(lambda: application(["analyse"])(["analyse", *words], standalone_mode=False)) == code
        captured = capsys.readouterr()
        return captured.out, captured.err

    monkeypatch.chdir(shell.directory)
    monkeypatch.setenv("AJUSTE_HOME", str(shell.home))
    monkeypatch.setenv("COLUMNS", "100")
    return run


def test_two_files_are_a_baseline_and_what_is_compared_with_it(shell: Shell) -> None:
    results = shell.json("analyse", "old.json", "new.json", "--difference", "time")
    [verdict] = results["verdicts"]
    theirs = stats.ttest_ind(NEW, OLD, equal_var=False)
    low, high = theirs.confidence_interval(0.95)
    assert (verdict["configuration"], verdict["verdict"], verdict["values"]) == ("new", "improves", [6, 6])
    assert verdict["p_value"] == pytest.approx(theirs.pvalue, rel=1e-9)
    assert (verdict["low"], verdict["high"]) == (pytest.approx(low, rel=1e-9), pytest.approx(high, rel=1e-9))
    assert [c["name"] for c in results["configurations"] if c["baseline"]] == ["old"]
    assert results["configurations"][0]["metrics"]["time"]["mean"] == pytest.approx(sum(OLD) / 6)
    assert results["elsewhere"]["paired"] == "none"
    assert any("not measured in common blocks" in note for note in results["notes"])
    assert (results["clock"], results["seed"], results["stopped"]) == (None, None, None)


def test_the_answer_has_the_p_value(here: Here) -> None:
    output, _ = here(0, "blocked.csv", "--lower", "time")
    theirs = stats.ttest_rel([math.log(value) for value in NEW], [math.log(value) for value in OLD])
    assert f"p = {theirs.pvalue:.2g})" in output


def test_blocks_are_compared_within_and_a_report_is_written(shell: Shell, here: Here) -> None:
    output, complained = here(
        0, "blocked.csv", "--lower", "time", "--three-sigma", "--html", "report.html", "--verbose"
    )
    assert complained == ""
    assert output.startswith("new cuts time from ")
    assert "6 blocks, compared within blocks" in output
    assert "What the 3-sigma rule says" in output
    assert "would have cancelled" not in output
    report = (shell.directory / "report.html").read_text()
    assert "How it was analysed" in report
    assert "Virtual clock" not in report
    assert "Seed" not in report


def test_names_metrics_and_the_baseline_can_be_chosen(here: Here) -> None:
    output, _ = here(0, "old.json", "new.json", "--name", "before,after", "--baseline", "after", "--json")
    results = json.loads(output)
    assert [v["configuration"] for v in results["verdicts"]] == ["before"]
    assert results["verdicts"][0]["verdict"] == "worsens"


def test_a_hostile_file_name_is_shown_and_not_obeyed(shell: Shell, here: Here) -> None:
    name = "\x1b[2J<img src=x onerror=alert(1)>.csv"
    (shell.directory / name).write_text("time [s]\n1\n2\n3\n")
    output, _ = here(0, name, "blocked.csv", "--html", "report.html")
    assert "\x1b" not in output
    report = (shell.directory / "report.html").read_text()
    assert "<img src=x" not in report
    assert "\x1b" not in report


def test_a_wrong_request_is_one_message_and_code_2(shell: Shell) -> None:
    output, complained = shell("analyse", "none.csv", expect=2)
    assert (output, complained) == ("", "ajuste: none.csv: No such file or directory\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing/*.json",), "has no files; expected at least one"),
        (("/dev/zero",), "is not a regular file; expected a regular file"),
        (("/proc/self/mem",), "/proc/self/mem: Input/output error"),
        (("old.json", "new.json", "--name", "a"), "1 names for 2 files"),
        (("old.json", "old.json"), "a file is given twice"),
        (
            ("blocked.csv", "--baseline", "older"),
            "--baseline older: configuration not found",
        ),
        (("blocked.csv", "--metric", "tim"), "--metric tim: metric not found; expected one of time"),
        (("blocked.csv", "--lower", "time", "--higher", "time"), "time is in --lower and --higher"),
        (("blocked.csv", "--format", "xml"), "--format xml: format not found"),
        (("blocked.csv", "--format", "fio"), "blocked.csv:1: not valid JSON"),
        (("blocked.csv", "--confidence", "2"), "--confidence 2"),
        (("old.json", "new.json", "--runs", "5"), "expected output of perf stat -r or of lkp"),
        (("blocked.csv", "--html", "blocked.csv"), "this file is an input"),
        (("blocked.csv", "--html", "no/such/place.html"), "expected a file in an existing directory"),
        (("old.json", "small.toml"), "small.toml:"),
        ((), "FILE"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_said(here: Here, words: tuple[str, ...], message: str) -> None:
    output, complained = here(2, *words)
    assert message in " ".join(complained.split())
    assert output == ""
