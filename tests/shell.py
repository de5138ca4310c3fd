"""The command line as a person uses it: a process of its own, with a home of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import warm
from screen import Screen, watch

SMALL = """\
schema = 1
name = "small"
question = "Does a larger minimum granularity mean fewer switches?"

[[factor]]
name = "sched_min_granularity_ns"
levels = [750000, 75000000]

[workload]
kind = "matrix"
parameters = { size = 100, repetitions = 2 }

[[workload.background]]
kind = "spin"

[target]
kernel = "debian:5.10"
instruction_ns = 8

[analysis]
metrics = ["involuntary-switches"]
describe = ["elapsed"]

[budget]
min_blocks = 6
max_blocks = 6
"""


def small(least: int, most: int) -> str:
    """``SMALL`` with so many blocks."""
    return SMALL.replace("min_blocks = 6\nmax_blocks = 6", f"min_blocks = {least}\nmax_blocks = {most}")


def takes_the_machine(command: str) -> bool:
    """Return whether it works only while no other experiment goes on here: such tests use the fixture
    ``machine_lock``.
    """
    return _ON_THIS_MACHINE.search(command) is not None


def patiently(work: Callable[[], subprocess.CompletedProcess[str]]) -> subprocess.CompletedProcess[str]:
    """The result of ``work``, done again while it is refused because an experiment goes on that is not of the tests."""
    end = time.monotonic() + _PATIENCE_SECONDS
    done = work()
    while done.returncode in (1, 2) and _OTHERS.search(done.stderr) and time.monotonic() < end:
        time.sleep(1)
        done = work()
    return done


_ON_THIS_MACHINE = re.compile(
    r"ajuste (compare (?!.*--(vm|kernel|source|dry-run)\b)|campaign referee (?!.*--kernel\b)|"
    r"(doctor|gate|history|restore|run glxgears|suite)\b)"
)
_PATIENCE_SECONDS = 200
_OF_TERMINALS = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
_OTHERS = re.compile(
    "another experiment is running|its agent is still restoring values|values are being restored on this machine"
)


def end_started() -> None:
    """End what a test that failed has left running, so that it does not hold the machine for the next."""
    while _STARTED:
        process = _STARTED.pop()
        if process.poll() is None:
            process.terminate()
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


_STARTED: list[subprocess.Popen[str]] = []


def _hear_interrupts() -> None:
    """Hear SIGINT as in a terminal: what a script starts in its background ignores it, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class Shell:
    """Runs ``ajuste`` in ``directory``, with everything that it keeps below ``home``, but its store where ``store``
    says.
    """

    directory: Path
    home: Path
    store: str = ""

    def start(self, *words: str, enter: Sequence[str] = (), **options: Any) -> subprocess.Popen[str]:
        """A process of its own; ``enter`` comes before the command."""
        process = subprocess.Popen(
            [*enter, Path(sys.executable).parent / "ajuste", *words],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_hear_interrupts,
            **options,
        )
        _STARTED.append(process)
        return process

    def __call__(self, *words: str, expect: int = 0) -> tuple[str, str]:
        """Return its output on stdout and stderr; its exit code must be ``expect``."""
        done = self._finished(*words) if expect == 2 else patiently(lambda: self._finished(*words))
        assert done.returncode == expect, f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout, done.stderr

    def on_a_terminal(self, *words: str, term: str = "xterm-256color", **options: Any) -> Screen:
        """Return what it shows in a terminal; ``options`` as of ``screen.watch``."""
        environment = {name: value for name, value in self._environment.items() if name not in _OF_TERMINALS}
        command = [Path(sys.executable).parent / "ajuste", *words]
        screens: list[Screen] = []

        def work() -> subprocess.CompletedProcess[str]:
            screens.append(watch(command, self.directory, {**environment, "TERM": term}, **options))
            complained = options["errors"].read_text() if "errors" in options else screens[-1].text
            return subprocess.CompletedProcess(words, screens[-1].code, "", " ".join(complained.split()))

        patiently(work)
        return screens[-1]

    def _finished(self, *words: str) -> subprocess.CompletedProcess[str]:
        return warm.run(words, self.directory, self._environment)

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "AJUSTE_HOME": str(self.home), "AJUSTE_STORE": self.store, "COLUMNS": "100"}

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json")[0])


# What building BPF schedulers takes.


_LOADER = "#include <bpf/libbpf.h>\nint main(void) { return !bpf_map__attach_struct_ops(bpf_map__inner_map(0)); }\n"


def has_libbpf() -> bool:
    """Return whether there is clang, and libbpf 1.2 or later with its static library."""
    looked = ["cc", "-x", "c", "-", "-o", "/dev/null", "-l:libbpf.a", "-lelf", "-lz"]
    return bool(shutil.which("clang")) and not subprocess.run(looked, input=_LOADER, text=True, check=False).returncode
