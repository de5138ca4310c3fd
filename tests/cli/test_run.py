"""The way from a study file to a verdict, a report and a store, through the command line."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import jsonschema
import pytest

from ajuste.study.builtin import find_study
from own_home import own_home
from shell import SMALL, Shell, small

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, str]:
    """A shell in which the small study was run once, and what that said."""
    root = tmp_path_factory.mktemp("run")
    (root / "small.toml").write_text(SMALL)
    shell = Shell(root, own_home(root / "home"))
    output, complained = shell("run", "small.toml", "--report", "report.html")
    assert all(line.startswith(("Running ", "Working ")) for line in complained.splitlines()), "a line each half minute"
    return shell, output


def test_a_study_ends_in_a_table_a_verdict_and_a_report(first: tuple[Shell, str]) -> None:
    shell, output = first
    assert "\x1b" not in output
    assert re.search(r"at 75 ms \(−\d.*differs\)", output), output
    assert "report.html" in output
    assert "Involuntary context switches" in (shell.directory / "report.html").read_text()

    results = shell.json("report", "small")
    assert (results["study"], results["clock"], results["blocks"]) == ("small", "virtual", 6)
    assert re.fullmatch(r"[0-9a-f]{64}", results["digest"])
    assert results["digest"] in shell("report", "small", "--verbose")[0]
    verdict, *_ = results["verdicts"]
    promised = {"configuration", "metric", "unit", "direction", "verdict", "estimate", "low", "high", "level", "blocks"}
    assert promised | {"reason"} <= verdict.keys()
    assert (verdict["verdict"], verdict["metric"], verdict["scale"]) == (
        "differs",
        "involuntary-switches",
        "difference",
    )
    assert verdict["high"] < 0


def test_a_finished_run_is_shown_and_not_measured_again(first: tuple[Shell, str]) -> None:
    shell, _ = first
    assert shell.json("run", "small.toml") == shell.json("report", "small")
    assert len(shell.json("report")) == 1


def test_every_trial_is_kept_as_asked_read_back_and_printed(first: tuple[Shell, str]) -> None:
    shell, _ = first
    trials = json.loads(shell("report", "small", "--trials", "--json")[0])
    assert len(trials) == 12
    for trial in trials:
        level = trial["slot"]["configuration"].removeprefix("sched_min_granularity_ns=")
        (written,) = trial["written"]
        assert (written["asked"], written["after"], written["before"]) == (level, level, "750000")
        events = [json.loads(line) for line in trial["events"].splitlines()]
        printed = [event["text"] for event in events if event["event"] == "output" and event["role"] == "workload"]
        assert printed[0].startswith("matrix size=100 repetitions=2 checksum=")
        (exited,) = (e for e in events if e["event"] == "exited" and e["role"] == "workload")
        assert trial["metrics"]["involuntary-switches"] == exited["involuntary_switches"]
    assert "involuntary_switches" in shell("report", "small", "--trials")[0]


def test_the_plan_tells_the_very_trials_that_are_run(first: tuple[Shell, str], ajuste: Shell) -> None:
    planned = ajuste.json("plan", "small.toml")
    wheres = [write["where"] for configuration in planned["configurations"] for write in configuration["writes"]]
    assert wheres == ["/proc/sys/kernel/sched_min_granularity_ns"] * 2
    assert not (ajuste.home / "data").exists(), "a plan does nothing"
    done = first[0].json("report", "small")
    assert [(t["configuration"], t["seed"]) for t in planned["trials"]] == [
        (t["configuration"], t["seed"]) for t in done["trials"]
    ]


def test_the_plan_says_what_its_blocks_cannot_decide(ajuste: Shell) -> None:
    def note(text: str) -> str:
        (ajuste.directory / "few.toml").write_text(text)
        notes = ajuste.json("plan", "few.toml")["notes"]
        return str(next(note for note in notes if "3 blocks at most" in note))

    few = small(3, 3)
    assert note(few).startswith("No verdict can come")
    # The effect of a factor is judged by all configurations together.
    factor = '[[factor]]\nname = "sched_wakeup_granularity_ns"\nlevels = [1000000, 8000000]\n\n'
    assert "single configuration" in note(few.replace("[workload]", f"{factor}[workload]", 1))


@pytest.mark.parametrize(
    ("kernel", "knob"), [("debian:6.1", "sched_min_granularity_ns"), ("debian:6.12", "base_slice_ns")]
)
@pytest.mark.slow
def test_granularity_falls_from_level_to_level_on_later_kernels_too(ajuste: Shell, kernel: str, knob: str) -> None:
    """Measure one block of the built-in study: under the virtual clock that is no matter of luck."""
    text = find_study("granularity").read_text()
    (ajuste.directory / "one-block.toml").write_text(re.sub(r"(min|max)_blocks = \d+", r"\1_blocks = 1", text))
    results = ajuste.json("run", "one-block.toml", "--kernel", kernel)
    counts = [c["metrics"]["involuntary-switches"]["mean"] for c in results["configurations"]]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 4
    assert results["factors"][0]["name"] == knob
    assert any("successor" in note for note in results["notes"]) == (knob == "base_slice_ns")


def test_the_schema_accepts_what_ajuste_accepts(ajuste: Shell) -> None:
    schema = json.loads(ajuste("schema")[0])
    document = tomllib.loads((ajuste.directory / "small.toml").read_text())
    jsonschema.validate(document, schema)
    document["factor"][0]["levles"] = [1]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


@pytest.mark.slow
def test_a_program_of_ones_own_runs_with_its_own_metric(ajuste: Shell, tmp_path: Path) -> None:
    program = ajuste.directory / "echo"
    program.write_bytes(Path("/bin/busybox").read_bytes())
    program.chmod(0o755)
    (ajuste.directory / "own.toml").write_text(
        """
schema = 1
name = "own"
[[factor]]
name = "nice"
levels = [0, 5]
[workload]
command = ["./echo", "rate: 42.5 per second"]
[[workload.metric]]
name = "rate"
pattern = 'rate: ([0-9.]+)'
unit = "1/s"
direction = "higher"
[target]
kernel = "debian:5.10"
[analysis]
metrics = ["rate"]
[budget]
min_blocks = 3
max_blocks = 3
"""
    )
    results = ajuste.json("run", "own.toml")
    for configuration in results["configurations"]:
        assert configuration["metrics"]["rate"]["mean"] == 42.5
    assert results["trials"][0]["status"] == "ok"


def test_a_configuration_is_exported_as_the_kernel_has_it(first: tuple[Shell, str]) -> None:
    shell, _ = first
    output, _ = shell("export", "small", "sched_min_granularity_ns=75000000", "--format", "sysctl.d")
    assert "\nkernel.sched_min_granularity_ns = 75000000\n" in output
    assert "the run found kernel.sched_min_granularity_ns=750000" in output
    assert shell.json("report", "small")["digest"] in output
    document = shell.json("export", "small", "sched_min_granularity_ns=75000000", "--format", "tuned", "--output", "p")
    assert (shell.directory / "p" / "ajuste-small" / "tuned.conf").read_text() == document["files"][0]["text"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["small"], "name the configuration that you want"),
        (["small", "sched_min_granularity_ns=750000"], "is the baseline"),
        (["small", "sched_min_granularity_ns=75"], "did you mean"),
        (["nothing"], "run 'nothing' not found"),
        (["small", "sched_min_granularity_ns=75000000", "--output", "small.toml/x"], "Not a directory"),
    ],
)
def test_what_cannot_be_exported_is_said(first: tuple[Shell, str], words: list[str], message: str) -> None:
    shell, _ = first
    assert message in shell("export", *words, expect=2)[1]


@pytest.mark.slow
def test_kernels_compared_by_any_study_come_again_by_the_command_that_is_told(ajuste: Shell) -> None:
    (ajuste.directory / "small.toml").write_text(SMALL)
    few = ("--without", "sched_min_granularity_ns=75000000")
    first = ajuste.json("run", "small.toml", "--kernel", "debian:5.10,debian:6.1", *few)
    assert [row["levels"]["kernel"] for row in first["configurations"]] == ["debian:5.10", "debian:6.1"]
    (command,) = first["reproduce"]
    program, *words = shlex.split(command)
    assert program == "ajuste"
    assert re.fullmatch(r"debian:5\.10\.\S+,debian:6\.1\.\S+", words[words.index("--kernel") + 1])
    again = ajuste.json(*words)
    assert again["run"] != first["run"]
    assert [row["metrics"] for row in again["configurations"]] == [row["metrics"] for row in first["configurations"]]
