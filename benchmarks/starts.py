"""Starts of trials: is the load there, and is the elapsed time right? ``python -m benchmarks starts`` (root).

Elapsed time: 10,000 trials beside 20 readers of /dev/urandom, at four nice values. The job says itself, by
CLOCK_MONOTONIC_RAW, when it began and ended. None may be lost, none may be shorter than the job says, or than the CPU
time that it used.

Load: a job beside ten readers that a shell starts, as soon as they have settled, at once, and when they have run for a
second. Measured by turns; what they take from the job in the first and the last way must be alike.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

from ajuste.machine.files import locked
from ajuste.machine.home import AGENT, native_program
from ajuste.model.event import End, Exited, Failed, Loaded, Output, parse_event
from benchmarks.comparison import Comparison, by_turns
from benchmarks.kills import TESTS_LOCK

TRIALS: Final = int(os.environ.get("AJUSTE_STARTS", "10000"))
NICE: Final = (-20, 0, 10, 19)
READERS: Final = 20
_MICROSECOND_NS: Final = 1_000
"""The kernel rounds down user and system time to whole microseconds."""
_JOB: Final = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static long long now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}
int main(int count, char **words) {
    long long began = now(CLOCK_MONOTONIC_RAW), used = atoll(words[1]);
    while (now(CLOCK_PROCESS_CPUTIME_ID) < used) {}
    printf("%lld\n", now(CLOCK_MONOTONIC_RAW) - began);
}
"""
_SHELL: Final = "for i in 1 2 3 4 5 6 7 8 9 10; do cat /dev/urandom >/dev/null & done; wait"
_WAYS: Final[dict[str, dict[str, Any]]] = {
    "settled": {},
    "after 1 s": {"settle_ns": 1_000_000_000},
    "at once": {"ready": [{"by": "started"}]},
}
_ROUNDS: Final = 15
_ALIKE: Final = 1.25
"""The load counts as settled if the job then takes this many times as long as beside one that has run for 1 s, or less,
and the inverse of it or more."""


class Agent:
    """``ajuste-agent serve``."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [str(native_program(AGENT)), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def run(self, argv: list[str], nice: int = 0, **plan: Any) -> tuple[Exited, str, Loaded | None]:
        """Return how the job ended, what it printed, and how its load was."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        workload = {"argv": argv, "attributes": {"nice": nice}}
        self._process.stdin.write(json.dumps({"id": "s", "workload": workload, **plan}) + "\n")
        self._process.stdin.flush()
        exited, text, loaded = None, "", None
        for line in self._process.stdout:
            match parse_event(line):
                case Exited(role="workload") as event:
                    exited = event
                case Output(role="workload", stream="stdout") as event:
                    text = event.text
                case Loaded() as event:
                    loaded = event
                case Failed() as event:
                    raise SystemExit(f"{event.stage}: {event.message}")
                case End():
                    break
        assert exited is not None
        return exited, text, loaded


def measure() -> tuple[Comparison, ...]:
    if os.geteuid() != 0:
        raise SystemExit("benchmarks starts needs root: it gives jobs negative nice values")
    with tempfile.TemporaryDirectory() as directory, locked(TESTS_LOCK), Agent() as agent:
        job = _compiled(Path(directory))
        return (*_elapsed(agent, job), _load(agent, job))


def _compiled(directory: Path) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("cc is not on this machine: setup/system build")
    source = directory / "job.c"
    source.write_text(_JOB)
    subprocess.run([compiler, "-O1", "-static", "-o", str(directory / "job"), str(source)], check=True)
    return str(directory / "job")


@contextmanager
def _readers() -> Iterator[None]:
    with Path("/dev/null").open("wb") as nowhere:
        readers = [subprocess.Popen(["cat", "/dev/urandom"], stdout=nowhere) for _ in range(READERS)]
        try:
            yield
        finally:
            for reader in readers:
                reader.kill()
                reader.wait()


def _elapsed(agent: Agent, job: str) -> Iterator[Comparison]:
    more: dict[str, list[float]] = {}
    lost = short = 0
    with _readers():
        for nice in NICE:
            figures = more.setdefault(f"nice {nice}", [])
            for _ in range(TRIALS // len(NICE)):
                exited, text, _ = agent.run([job, "300000"], nice)
                own_ns, cpu_ns = int(text or 0), exited.user_ns + exited.system_ns
                lost += not text or exited.exit_code != 0
                short += exited.wall_ns < own_ns or exited.wall_ns < cpu_ns - 2 * _MICROSECOND_NS
                figures.append((exited.wall_ns - own_ns) / 1e6)
    yield Comparison(
        name="starts-elapsed",
        what=f"elapsed time beyond what the job itself saw (exec, exit, waiting in both), beside {READERS} readers",
        unit="ms",
        figures=more,
        goal=f"of {TRIALS} trials {lost} were lost and {short} too short; goal: none",
        reached=not lost and not short,
    )


def _load(agent: Agent, job: str) -> Comparison:
    load = [{"argv": ["/bin/sh", "-c", _SHELL]}]
    waited: list[float] = []

    def elapsed(way: str) -> float:
        exited, _, loaded = agent.run([job, "10000000"], background=load, **_WAYS[way])
        if way == "settled" and loaded is not None:
            waited.append(loaded.waited_ns / 1e6)
        return exited.wall_ns / 1e6

    figures = by_turns({way: (lambda way=way: elapsed(way)) for way in _WAYS}, _ROUNDS)  # type: ignore[misc]
    ratio = median(figures["settled"]) / median(figures["after 1 s"])
    at_once = median(figures["at once"]) / median(figures["after 1 s"])
    return Comparison(
        name="starts-load",
        what="10 ms of CPU time beside ten readers that a shell starts",
        unit="ms",
        figures=figures,
        goal=f"settled after {median(waited):.0f} ms, {ratio:.2f} times what it takes beside a load of 1 s (at once: "
        f"{at_once:.2f}); goal: {1 / _ALIKE:.2f} to {_ALIKE:.2f}",
        reached=1 / _ALIKE <= ratio <= _ALIKE,
    )
