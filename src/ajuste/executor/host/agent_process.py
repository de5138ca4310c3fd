"""The agent as a process of this machine: plans in, events out."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ajuste.executor.stream import LONGEST_STREAM_BYTES
from ajuste.machine.home import AGENT, native_program

ENDING_SECONDS: Final = 30.0
"""An agent that was asked to end stops its processes and puts everything back in far less."""

BETWEEN_LOOKS_SECONDS: Final = 0.005
"""Time between reads of the agent's lines while it carries out short plans: a process that waits for every line would
wake beside what is measured, and the agent would wait for it.
"""

_CHUNK_BYTES = 1 << 16
_PIPE_BYTES = 1 << 20
_COMPLAINT_BYTES = 1 << 16
# No other line contains this: inside a JSON string the quotes would be escaped, and no number has this name.
_LAST = b'"event":"end"'
_LATE = "it did not end within its time limit"
_ENDED = "it has ended"


STOPPED_SECONDS: Final = 0.6
"""A process that is stopped (SIGSTOP) for so long is killed: meanwhile nobody would put anything back."""
WORKLOAD_LATE_SECONDS: Final = 1.0
AGENT_LATE_SECONDS: Final = 2.0

_GUARDIAN = "ajuste-guardian"
_GUARDIAN_SECONDS = 5.0
_BETWEEN_CHECKS_SECONDS = 0.2


class AgentLostError(Exception):
    """The agent ended, sends more than it may, or sends nothing for too long. The message names the reason."""


class AgentProcess:
    """``ajuste-agent serve`` with ``options``, which inherits the descriptors ``keep``.

    It is killed by nobody but its starter: a group of its own keeps the terminal's signals away, and when Ajuste dies,
    however that happens, it gets a signal to end (PR_SET_PDEATHSIG), stops its processes and puts everything back.
    """

    def __init__(self, options: Sequence[str] = (), keep: Sequence[int] = ()) -> None:
        self._complaints = os.memfd_create("complaints")
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "--", native_program(AGENT), "serve", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            pass_fds=keep,
            process_group=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        for pipe in (self._stdin, self._stdout):
            # Plans and events of many short trials exceed the default. The kernel may refuse (pipe-user-pages-soft).
            with suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._said = bytearray()
        self._checked = 0
        self._last_words: str | None = None
        self._stopped_s: dict[int, float] = {}

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def complaint(self) -> str:
        """Return what it wrote to its standard error."""
        if self._last_words is not None:
            return self._last_words
        return os.pread(self._complaints, _COMPLAINT_BYTES, 0).decode(errors="replace").strip()

    def read_line(self, limit_s: float) -> bytes:
        """Return the next line, without its end. Raises AgentLostError."""
        deadline = time.monotonic() + limit_s
        while (end := self._said.find(b"\n")) < 0:
            self._said += self._read(deadline)
        return self._take(end + 1)[:-1]

    def carry_out(self, plan: bytes, limit_s: float) -> bytes:
        """Send a plan (one line), and return all output until its end. Raises AgentLostError."""
        deadline = time.monotonic() + limit_s
        self.send(plan)
        while (stream := self._take_stream()) is None:
            self._said += self._read(deadline)
        return stream

    def send(self, plan: bytes) -> None:
        """Send a plan (one line), whose output ``stream_within`` returns. Raises AgentLostError."""
        rest = memoryview(plan + b"\n")
        while rest:
            rest = rest[self._write(rest) :]

    def stream_within(self, seconds: float) -> bytes | None:
        """Return all output until the end of the plan, None if it goes on for longer. Raises AgentLostError."""
        deadline = time.monotonic() + seconds
        while (stream := self._take_stream()) is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not self._poll.poll(left_s * 1000):
                return None
            self._said += self._read(deadline)
        return stream

    def carry_out_in_turn(self, plans: Sequence[tuple[bytes, float]]) -> list[bytes]:
        """Carry out ``plans``, each with its limit in seconds. All are sent ahead, so that the agent goes from one to
        the next without waiting.
        """
        rest = memoryview(b"".join(plan + b"\n" for plan, _ in plans))
        streams: list[bytes] = []
        os.set_blocking(self._stdin, False)
        try:
            last_end = time.monotonic()
            while len(streams) < len(plans):
                rest = rest[self._write(rest) :] if rest else rest
                time.sleep(BETWEEN_LOOKS_SECONDS)
                limit_s = plans[len(streams)][1]
                while self._poll.poll(0):
                    self._said += self._read(last_end + limit_s)
                    while (stream := self._take_stream()) is not None:
                        streams.append(stream)
                        last_end = time.monotonic()
                if time.monotonic() > last_end + limit_s:
                    raise AgentLostError(_LATE)
        finally:
            os.set_blocking(self._stdin, True)
        return streams

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._stdin, data)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise AgentLostError(_ENDED) from None

    def _take(self, count: int) -> bytes:
        taken = bytes(self._said[:count])
        del self._said[:count]
        self._checked = 0
        return taken

    def _take_stream(self) -> bytes | None:
        # Only whole lines are searched, each once: the last event may have arrived in part.
        end = self._said.rfind(b"\n") + 1
        position = self._said.find(_LAST, self._checked, end)
        if position >= 0:
            return self._take(self._said.index(b"\n", position) + 1)
        self._checked = end
        if len(self._said) > LONGEST_STREAM_BYTES:
            raise AgentLostError(f"it printed more than {LONGEST_STREAM_BYTES >> 20} MiB")
        return None

    def _read(self, deadline: float) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0 or not self._poll.poll(left * 1000):
            raise AgentLostError(_LATE)
        chunk = os.read(self._stdout, _CHUNK_BYTES)
        if not chunk:
            raise AgentLostError(_ENDED)
        return chunk

    def kill_unresponsive(self, overdue_s: float) -> str:
        """Kill as ``Executor.kill_unresponsive``, of its processes, itself and its guardian."""
        now_s = time.monotonic()
        late_s = dict.fromkeys(_children(self.pid), WORKLOAD_LATE_SECONDS) | {self.pid: AGENT_LATE_SECONDS}
        killed = []
        for pid in (*late_s, *_guardians()):
            name, state = _name_and_state(pid)
            stopped_s = now_s - self._stopped_s.setdefault(pid, now_s) if state == "T" else 0.0
            if state != "T":
                self._stopped_s.pop(pid, None)
            # A process that runs (R) or waits for a disk (D) is not stuck.
            is_late = pid in late_s and overdue_s > late_s[pid] and state in ("S", "T", "t")
            if stopped_s > STOPPED_SECONDS or is_late:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(f"{name} {'was stopped' if state == 'T' else 'did not answer'} and was killed")
        return "; ".join(killed)

    def end(self, *, at_once: bool = False) -> None:
        """End it in good order: when it has done its work, or ``at_once``. It puts everything back, or its guardian if
        it has to be killed. Never raises for how it ends.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if at_once:
            self._process.terminate()
        with suppress(OSError):
            self._process.stdin.close()
        for how in (signal.SIGTERM, signal.SIGKILL):
            if self._has_ended():
                break
            self._process.send_signal(how)
        self._process.wait()
        _await_guardians()

    def abandon(self, journal: Path) -> None:
        """Kill its guardian and then itself, so that nobody restores: what ``journal`` says remains to be undone.

        Both are children of this process: until they are waited for, nobody else has their numbers. Raises
        AgentLostError if the guardian does not end; then the agent lives on.
        """
        deadline = time.monotonic() + _GUARDIAN_SECONDS
        for pid in [pid for pid in _guardians() if _has_open(pid, journal)]:
            os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                while os.waitpid(pid, os.WNOHANG) == (0, 0):
                    if time.monotonic() > deadline:
                        raise AgentLostError("its guardian does not end")
                    time.sleep(0.002)
        self._process.kill()
        self._process.wait()

    @property
    def was_killed(self) -> bool:
        """Return whether it did not end in good order."""
        return (self._process.returncode or 0) < 0

    def _has_ended(self) -> bool:
        deadline = time.monotonic() + ENDING_SECONDS
        while time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_BETWEEN_CHECKS_SECONDS)
                return True
            self.kill_unresponsive(0.0)
        return False

    def close(self) -> None:
        """Free what an ended agent leaves."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._last_words = self.complaint
        os.close(self._complaints)


def _await_guardians() -> None:
    # Guardians are children of their agent's parent (see `safety/guardian.rs`). One whose agent ended in good order has
    # ended by now; one whose agent was killed needs a moment to put everything back.
    deadline = time.monotonic() + _GUARDIAN_SECONDS
    for pid in _guardians():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)  # One that is stopped would keep the machine's lock.
        with suppress(ChildProcessError):
            while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.002)


def _guardians() -> list[int]:
    # Children of all threads: any of them may have started the agent.
    return [pid for pid in _children(os.getpid()) if _name_and_state(pid)[0] == _GUARDIAN]


def _has_open(pid: int, file: Path) -> bool:
    for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError):
            if descriptor.readlink() == file:
                return True
    return False


def _children(pid: int) -> list[int]:
    pids: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            pids += map(int, children.read_text().split())
    return pids


def _name_and_state(pid: int) -> tuple[str, str]:
    # The name may contain blanks and parentheses, so the last one ends it (proc_pid_stat(5)).
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return "", ""
    return name, rest.split()[0]
