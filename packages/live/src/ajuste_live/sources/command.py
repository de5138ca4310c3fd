"""``command:COMMAND``: the last number that a command prints, run again each time. It is averaged; with the word
``counter`` before the ``=`` its growth by second is the figure.

No shell reads the command; for a pipe, call one: ``command:sh -c '…'``. Under sudo it runs as the caller, as the
commands of a study do.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from ajuste.catalogue.programs import search_hint
from ajuste.executor.host.caller import callers_variables, invoking_user
from ajuste.model.error import RequestError
from ajuste.model.plan import User
from ajuste.outputs.trial_status import LONGEST
from ajuste_live.reading import READ_SECONDS, Figures, NothingShownError, Source, level

KIND: Final = "command"

_NUMBER: Final = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_MOST_BYTES: Final = 1 << 16
_SHELL: Final = frozenset({"|", "||", "&&", ";"})


def open_source(where: str) -> Source:
    """Open a program with its arguments, without a shell. Raises RequestError."""
    try:
        words = shlex.split(where)
    except ValueError as failure:
        raise RequestError(f"found unbalanced quotes in {where!r}: {failure}; expected a command line") from None
    if not words:
        raise RequestError("the command is missing; expected a program with its arguments")
    if shell_word := next((word for word in words if word in _SHELL), None):
        raise RequestError(f"{shell_word} in {where!r} needs a shell", hint=f"use a shell: sh -c {shlex.quote(where)}")
    program = shutil.which(words[0])
    if program is None:
        raise RequestError(f"program {words[0]} not found", hint=search_hint(words[0]))
    argv, caller = [program, *words[1:]], invoking_user()
    return Source(where, lambda: _run(argv, caller), level)


def _run(argv: list[str], caller: User | None) -> Figures:
    with TemporaryFile() as complaints:
        return _figure(argv, caller, complaints)


def _figure(argv: list[str], caller: User | None, complaints: BinaryIO) -> Figures:
    deadline, tail = time.monotonic() + READ_SECONDS, b""
    try:
        running = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            cwd="/",
            env=callers_variables(caller),
            user=caller.uid if caller else None,
            group=caller.gid if caller else None,
            extra_groups=caller.groups if caller else None,
            process_group=0,
        )
    except OSError as error:
        raise NothingShownError(f"{argv[0]}: {error.strerror}") from None
    with running:
        assert running.stdout is not None
        try:
            while (left_s := deadline - time.monotonic()) > 0 and select.select([running.stdout], [], [], left_s)[0]:
                if not (chunk := os.read(running.stdout.fileno(), _MOST_BYTES)):
                    break
                tail = (tail + chunk)[-_MOST_BYTES:]
            code = running.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise NothingShownError(f"{argv[0]} took longer than {READ_SECONDS} s") from None
        finally:
            with suppress(ProcessLookupError):  # With all processes it has started.
                os.killpg(running.pid, signal.SIGKILL)
    if code:
        raise NothingShownError(f"{argv[0]} exited with code {code}{_last_words(complaints)}")
    numbers = _NUMBER.findall(tail)
    if not numbers:
        raise NothingShownError(f"{argv[0]} printed no number")
    return (float(numbers[-1]),)


def _last_words(complaints: BinaryIO) -> str:
    size = os.fstat(complaints.fileno()).st_size
    text = os.pread(complaints.fileno(), _MOST_BYTES, max(0, size - _MOST_BYTES)).decode(errors="replace").strip()
    return f"; last output: {text.splitlines()[-1][:LONGEST]}" if text else ""
