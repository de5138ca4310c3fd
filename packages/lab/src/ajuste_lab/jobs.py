"""Jobs: runs that the lab has started, each a child process ``ajuste run`` with a directory of its own.

The input and output of a job are in files, so that a lab page that is started again finds those that still measure.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ajuste.machine.files import make_directory
from ajuste.machine.home import Home
from ajuste.machine.session import started_ticks
from ajuste.model.capability import Asked, child_environment
from ajuste.model.error import RequestError

AJUSTE: Final = (sys.executable, "-P", "-c", "from ajuste.cli.main import main; main()")
"""The command that runs this installation of Ajuste; the words of a command line follow it."""
MOST_JOBS: Final = 4
"""Maximum number of jobs that measure at once: more would only disturb each other."""
GRACE_S: Final = 30.0
"""A job that keeps its own limit ends before this is over."""
_KEPT_BYTES: Final = 1 << 20
_BEGUN: Final = ("run begun", "run resumed")


@dataclass(frozen=True)
class Job:
    """A child process and its files: ``study.toml``, ``log.jsonl`` (``--log``), ``said`` (standard error)."""

    id: str
    study: str
    pid: int
    started: int
    """Start time of the process in ticks since boot: it distinguishes the process from a later one with its number."""
    created: str
    directory: Path

    @property
    def alive(self) -> bool:
        if self.started == 0 or started_ticks(self.pid) != self.started:
            return False  # Its number may be that of another child by now, whose end is not for us.
        with suppress(OSError):  # One of ours that has ended is waited for, or it would seem to live.
            os.waitpid(self.pid, os.WNOHANG)
        return started_ticks(self.pid) == self.started

    @property
    def run(self) -> str:
        """Return the id of its run, once it has one."""
        return str(self._run_entry.get("run", ""))

    @property
    def trials_before(self) -> int:
        """Return the number of trials that its run had before."""
        return int(self._run_entry.get("trials", 0))

    @property
    def doing(self) -> str:
        """Return the last progress message: ``booting debian:5.10``."""
        texts = [line.get("text", "") for line in self._lines() if line.get("event") == "progress"]
        return str(texts[-1]) if texts else ""

    @property
    def exit_code(self) -> int | None:
        """Return the exit code; None while it measures, or if it was killed."""
        codes = [line.get("exit_code") for line in self._lines() if line.get("event") == "command ended"]
        return codes[-1] if codes and isinstance(codes[-1], int) else None

    @property
    def problem(self) -> str:
        """Return the error message, if it failed."""
        code = self.exit_code
        if self.alive or code in (0, 130):
            return ""
        return _part(self.directory / "said").strip().removeprefix("ajuste: ") or "it ended without a word"

    def interrupt(self) -> None:
        """Interrupt it; all measurements are kept. Raises RequestError if it has ended."""
        if not self.alive:
            raise RequestError(f"job {self.id} has ended", hint="start it again to resume")
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)

    @property
    def _run_entry(self) -> dict[str, Any]:
        return next((line for line in self._lines(first=True) if line.get("event") in _BEGUN), {})

    def _lines(self, *, first: bool = False) -> Iterator[dict[str, Any]]:
        # Of a long log its end, or its beginning.
        for line in _part(self.directory / "log.jsonl", _KEPT_BYTES, first=first).splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry


class Jobs:
    """The jobs of one home, the newest first. ``command`` runs Ajuste."""

    def __init__(self, home: Home, command: Sequence[str] = AJUSTE) -> None:
        self.directory = home.state / "lab"
        self._command = tuple(command)

    def all(self) -> list[Job]:
        try:
            directories = [path for path in self.directory.iterdir() if path.is_dir()]
        except OSError:
            directories = []
        jobs = [job for directory in directories if (job := _read(directory)) is not None]
        return sorted(jobs, key=lambda job: (job.created, job.id), reverse=True)

    def find(self, job_id: str) -> Job:
        """Return the job ``job_id``. Raises RequestError if it is not found."""
        job = next((job for job in self.all() if job.id == job_id), None)
        if job is None:
            raise RequestError(f"job {job_id[:80]!r} not found", hint="list the jobs")
        return job

    def of_run(self, run: str) -> Job | None:
        """Return the newest job of a run."""
        return next((job for job in self.all() if job.run == run), None)

    def new_directory(self) -> Path:
        """Make a directory for a study to be planned or run, where nobody else can write."""
        made = self.directory / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        make_directory(made)
        return made

    def start(
        self,
        study: str,
        words: Sequence[str],
        directory: Path,
        *,
        rights: Asked | None = None,
        minutes: float | None = None,
    ) -> Job:
        """Start ``ajuste WORDS`` in ``directory`` with the ``rights`` of the client that asked for it.

        After ``minutes`` of this machine's time and some grace it is interrupted, and then killed.

        Raises:
            RequestError: Too many jobs are running.
        """
        if sum(job.alive for job in self.all()) >= MOST_JOBS:
            raise RequestError(f"{MOST_JOBS} runs are going on; expected fewer", hint="wait for one, or pause it")
        log = directory / "log.jsonl"
        # A process of its own counts the time: the limit holds also after this server has ended.
        limit = [] if minutes is None else ["timeout", "--signal=INT", "--kill-after=30", f"{60 * minutes + GRACE_S:g}"]
        with (directory / "said").open("ab") as stderr:
            process = subprocess.Popen(
                [*limit, *self._command, "--log", str(log), *words],
                cwd=directory,
                env=_environment(rights),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C in the terminal of the lab page is not meant for it.
            )
        about = {
            "study": study,
            "pid": process.pid,
            "started": started_ticks(process.pid),
            "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        (directory / "job.json").write_text(json.dumps(about), encoding="utf-8")
        return Job(directory.name, study, process.pid, about["started"], about["created"], directory)  # type: ignore[arg-type]

    def output_of(
        self, words: Sequence[str], directory: Path, timeout_s: float = 120.0, *, rights: Asked | None = None
    ) -> str:
        """Return what ``ajuste WORDS`` prints. Raises RequestError with its message if it fails."""
        try:
            done = subprocess.run(
                [*self._command, *words],
                cwd=directory,
                env=_environment(rights),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RequestError(
                f"ajuste {words[0]} took more than {timeout_s:g} s", hint="try it in a terminal"
            ) from None
        if done.returncode:
            problem = done.stderr.decode(errors="replace").strip().removeprefix("ajuste: ")
            message, _, hint = problem.partition("\n  ")
            raise RequestError(message or f"ajuste {words[0]} failed", hint=hint or None)
        return done.stdout.decode(errors="replace")


def _environment(rights: Asked | None) -> dict[str, str] | None:
    return None if rights is None else {**os.environ, **child_environment(rights)}


def _read(directory: Path) -> Job | None:
    try:
        document = json.loads((directory / "job.json").read_text(encoding="utf-8"))
        return Job(
            directory.name,
            str(document["study"]),
            int(document["pid"]),
            int(document["started"]),
            str(document["created"]),
            directory,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _part(file: Path, most: int = 16_384, *, first: bool = False) -> str:
    try:
        with file.open("rb") as opened:
            opened.seek(0 if first else max(0, file.stat().st_size - most))
            return opened.read(most).decode(errors="replace")
    except OSError:
        return ""
