"""The agent as a process of this machine: plans in, events out."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ajuste.native import AGENT, native_program
from ajuste.target.stream import LONGEST_STREAM_BYTES

ENDING_SECONDS: Final = 30.0
"""An agent that was asked to end stops its processes and puts everything back in far less."""

_CHUNK_BYTES = 1 << 16
_COMPLAINT_BYTES = 1 << 16
_LAST = b'"event":"end"'
"""In no other line: in a text of JSON the quotes would be escaped, and no figure is called so."""


class AgentLostError(Exception):
    """The agent ended, or says more than it may, or nothing for too long. The message says which, in a few words."""


class AgentProcess:
    """``ajuste-agent serve`` with ``options``, which inherits the descriptors ``keep``.

    It is killed by nobody but its starter: a group of its own keeps the terminal's signals away, and when Ajuste dies,
    however that happens, it is told to end (PR_SET_PDEATHSIG), stops its processes and puts everything back.
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
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._said = b""
        self._last_words: str | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def complaint(self) -> str:
        """What it wrote to its standard error."""
        if self._last_words is not None:
            return self._last_words
        return os.pread(self._complaints, _COMPLAINT_BYTES, 0).decode(errors="replace").strip()

    def read_line(self, limit_s: float) -> bytes:
        """The next line, without its end. Raises AgentLostError."""
        deadline = time.monotonic() + limit_s
        while (end := self._said.find(b"\n")) < 0:
            self._said += self._read(deadline)
        line, self._said = self._said[:end], self._said[end + 1 :]
        return line

    def carry_out(self, plan: bytes, limit_s: float) -> bytes:
        """Give it a plan (one line); returns all that it says until the end of the plan. Raises AgentLostError."""
        deadline = time.monotonic() + limit_s
        try:
            _write_all(self._stdin, plan + b"\n")
        except BrokenPipeError:
            raise AgentLostError("it has ended") from None
        kept, checked = self._said, 0
        while True:
            end = kept.rfind(b"\n") + 1
            if end > checked:
                # Only whole lines are looked at, and each once.
                found = kept.find(_LAST, checked, end)
                if found >= 0:
                    end = kept.index(b"\n", found) + 1
                    self._said = kept[end:]
                    return kept[:end]
                checked = end
            if len(kept) > LONGEST_STREAM_BYTES:
                raise AgentLostError(f"it said more than {LONGEST_STREAM_BYTES >> 20} MiB")
            kept += self._read(deadline)

    def _read(self, deadline: float) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0 or not self._poll.poll(left * 1000):
            raise AgentLostError("it did not end within its time limit")
        chunk = os.read(self._stdout, _CHUNK_BYTES)
        if not chunk:
            raise AgentLostError("it has ended")
        return chunk

    def end(self, *, at_once: bool = False) -> None:
        """End it in good order: when it has done what it was given, or ``at_once``. Everything is put back by it, or
        by its guardian if it has to be killed. Never raises for how it ends.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if at_once:
            self._process.terminate()
        with suppress(OSError):
            self._process.stdin.close()
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                self._process.wait(ENDING_SECONDS)
                break
            except subprocess.TimeoutExpired:
                self._process.send_signal(how)
        self._process.wait()

    def close(self) -> None:
        """Let go of what an ended agent leaves."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._last_words = self.complaint
        os.close(self._complaints)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
