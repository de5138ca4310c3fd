"""A terminal as a person sees it: a process in a pty, and the screen that its output makes."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyte

INTERRUPT = b"\x03"
_LINES = 24


@dataclass(frozen=True)
class Screen:
    """Result of a command: its exit ``code``, the ``text`` on the terminal with all that scrolled away, the ``frames``
    that were there meanwhile, and the bytes that it wrote.
    """

    code: int
    text: str
    frames: tuple[str, ...]
    written: bytes
    cursor_is_hidden: bool

    def showed(self, text: str) -> bool:
        """Return whether it was there at any time."""
        return any(text in frame for frame in self.frames)


def _sit_down() -> None:
    """Make the terminal send signals, and hear them also where a script started the tests in its background."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def watch(
    command: Sequence[str | Path],
    directory: Path,
    environment: Mapping[str, str],
    *,
    columns: int = 80,
    interrupt_at: str = "",
    output: Path | None = None,
    errors: Path | None = None,
) -> Screen:
    """Run ``command`` in a terminal, but for ``output`` and ``errors`` that go to files. ^C is typed once
    ``interrupt_at`` is on the screen.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, columns, 0, 0))
    streams = [
        slave if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for path in (output, errors)
    ]
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=slave,
        stdout=streams[0],
        stderr=streams[1],
        start_new_session=True,
        preexec_fn=_sit_down,
    )
    for descriptor in {slave, *streams}:
        os.close(descriptor)
    screen = pyte.HistoryScreen(columns, _LINES, history=10_000)
    stream = pyte.ByteStream(screen)
    frames, written, waits = [""], b"", bool(interrupt_at)
    with suppress(OSError):  # EIO: nobody has the other end any more.
        while data := os.read(master, 1 << 16):
            written += data
            stream.feed(data)
            if (frame := "\n".join(screen.display)) != frames[-1]:
                frames.append(frame)
            if waits and interrupt_at in frame:
                waits = False
                os.write(master, INTERRUPT)
    os.close(master)
    gone = ["".join(line[column].data for column in range(columns)) for line in screen.history.top]
    text = "\n".join(line.rstrip() for line in (*gone, *screen.display)).rstrip()
    return Screen(process.wait(), text, tuple(frames), written, screen.cursor.hidden)
