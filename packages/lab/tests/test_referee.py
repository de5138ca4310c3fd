"""A referee in place of an optimiser's evaluation command: what the optimiser reads and keeps, and what is left."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from shell import Shell

RULES = ("--better", "lower", "--proposals", "4", "--error-rate", "0.2", "--explore", "2", "--confirm", "12")
START = "echo 10"
NEVER_S = 86_399
"""A sleep that nobody else has."""


def write(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("options", "command", "message"),
    [
        (("--trust-score",), ("./job",), "expected {candidate}"),
        ((), ("{candidate}",), "ajuste: the score: the workload prints this figure"),
        ((), ("{candidate}",), "--witness elapsed, or --trust-score"),
        (("--trust-score", "--witness", "elapsed"), ("{candidate}",), "mutually exclusive"),
        (("--trust-score", "--better", "less"), ("{candidate}",), "expected lower or higher"),
        (("--trust-score", "--score", "(["), ("{candidate}",), "--score ([: not a regular expression"),
        (("--trust-score", "--candidate", "missing"), ("{candidate}",), "missing: not found"),
        (("--trust-score", "--file", "missing"), ("{candidate}",), "missing"),
        (("--witness", "score"), ("{candidate}",), "does not measure this itself"),
    ],
)
def test_a_wrong_request_begins_no_campaign(
    options: tuple[str, ...], command: tuple[str, ...], message: str, ajuste: Shell
) -> None:
    write(ajuste.directory / "job", START)
    request = ("campaign", "referee", "own", "--candidate", "job", *RULES, *options, "--", *command)
    assert message in ajuste(*request, expect=2)[1]
    assert not list((ajuste.home / "data").glob("campaigns/*"))


@dataclass
class Optimiser:
    """Measures as scx_forge_agent of sched-ext/scx does: a shell in a session of its own, with both streams in one
    file; all of it killed when the time is over; a score only if the file has one number and nothing else. It keeps
    what is below the best so far.
    """

    ajuste: Shell
    options: tuple[str, ...]
    seconds: float = 500
    candidate: str = "candidate"
    best: float = float("inf")
    outputs: list[str] = field(default_factory=list)

    def keeps(self, text: str) -> bool | None:
        """Return whether it keeps a candidate; None where it has no score."""
        write(self.ajuste.directory / self.candidate, text)
        score = self.score()
        if score is None or score >= self.best:
            return None if score is None else False
        self.best = score
        return True

    def score(self) -> float | None:
        program = Path(sys.executable).parent / "ajuste"
        words = ["campaign", "referee", "own", "--candidate", self.candidate, *RULES, *self.options, "--wait", "5m"]
        command = shlex.join([str(program), *words, "--", "{candidate}"])
        output = self.ajuste.directory / "output"
        with output.open("w") as file:
            process = subprocess.Popen(
                ["sh", "-c", command],
                cwd=self.ajuste.directory,
                env={**os.environ, "AJUSTE_HOME": str(self.ajuste.home)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
            try:
                process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.outputs.append(" ".join(output.read_text().split()))
        try:
            return float(self.outputs[-1])
        except ValueError:
            return None


def left_over() -> list[psutil.Process]:
    processes = psutil.process_iter(["cmdline", "status"])
    return [
        process
        for process in processes
        if str(NEVER_S) in (process.info["cmdline"] or ()) and process.info["status"] != "zombie"
    ]


@pytest.fixture
def optimiser(ajuste: Shell, machine_lock: None) -> Callable[..., Optimiser]:
    return lambda *options, **more: Optimiser(ajuste, options, **more)


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.timeout(1200)
def test_an_optimiser_keeps_only_what_is_proved(optimiser: Callable[..., Optimiser]) -> None:
    forge = optimiser("--trust-score", "--timeout", "2s")
    assert forge.keeps(START)
    assert forge.best == 100
    assert forge.keeps("echo 10 # useless") is False
    assert forge.keeps("echo 9")
    assert forge.best == 90
    assert forge.keeps("echo 11") is False
    assert forge.keeps("true") is None
    assert "no line of stdout matches" in forge.outputs[-1]
    assert forge.keeps("echo 8; no-such-program") is None
    assert "no-such-program" in forge.outputs[-1]
    assert forge.keeps(f"sleep {NEVER_S}; echo 1") is None
    assert "stopped at its time limit" in forge.outputs[-1]
    assert forge.keeps("while :; do echo 1; done") is None
    assert "stopped at its time limit" in forge.outputs[-1]
    assert left_over() == []
    assert "1 proposal of 7 promoted" in forge.ajuste("campaign", "show", "own")[0]


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.timeout(1200)
def test_a_candidate_that_lies_about_its_score_is_not_kept(optimiser: Callable[..., Optimiser]) -> None:
    forge = optimiser("--witness", "user-time")
    work = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done; echo {}"
    assert forge.keeps(work.format(30000, 10))
    assert forge.keeps(work.format(30000, 1)) is False
    (record,) = forge.ajuste.json("campaign", "show", "own")["proposals"]
    assert "user-time" in record["reason"]
    assert forge.keeps(work.format(3000, 1))


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.timeout(1200)
def test_a_referee_that_is_killed_leaves_nothing_and_goes_on(optimiser: Callable[..., Optimiser]) -> None:
    forge = optimiser("--trust-score")
    assert forge.keeps(START)
    forge.seconds = 8
    assert forge.keeps(f"setsid sleep {NEVER_S} & sleep {NEVER_S}") is None
    psutil.wait_procs(left_over(), timeout=20)
    assert left_over() == []
    forge.seconds = 500
    assert forge.keeps("echo 9")
    out, _ = forge.ajuste("campaign", "referee", "own", "--candidate", "candidate", *RULES, "--trust-score",
                          "--exit-code", "--json", "--", "{candidate}")  # fmt: skip
    assert '"accepted": true' in out
    write(forge.ajuste.directory / "candidate", "echo 9 # again")
    forge.ajuste("campaign", "referee", "own", "--candidate", "candidate", *RULES, "--trust-score",
                 "--exit-code", "--", "{candidate}", expect=3)  # fmt: skip
