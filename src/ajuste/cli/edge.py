"""The edge: where errors become one clear message and an exit code, and signals an orderly end."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import re
import shlex
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, NoReturn, TextIO

import typer

from ajuste.machine.home import lacking
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.wording import shortened, visible, visible_json, visible_line

INTERRUPTED = 130

_LOG: Final = logging.getLogger(__name__)
_RED: Final = "\x1b[1;31m"
_PLAIN: Final = "\x1b[0m"
_PREFIX: Final = "ajuste: "
_ORDINARY_COLUMNS: Final = 80

MOST_LINES: Final = 60
"""Maximum number of lines of an error; a list of problems has a limit of its own and counts the rest."""

# Typer's messages, and ours for them.
_USAGE: Final = (
    (r"No such command '(.+?)'\.?", r"command '\1' not found"),
    (r"No such option: (\S+)", r"option \1 not found"),
    (r" ?\(Possible options: (.+)\)", r"; did you mean \1?"),
    (r"\.? Did you mean (.+)\?", r"; did you mean \1?"),
    (r"Missing (?:argument|option|parameter) '([^' ]+?)(?:\.\.\.)?'.*", r"\1 is required"),
    (r"Option '([^']+)' requires an argument\.?", r"\1 requires a value"),
    (r"Got unexpected extra argument(?:s|\(s\))? \((.+)\)", r"unexpected argument: \1"),
    (r"Invalid value for '([^']+)'[^:]*: ", r"\1: "),
    (r"Input should be a valid integer.*", "expected a whole number"),
    (r"Input should be a valid number.*", "expected a number"),
    (r"Input should be less than or equal to (\S+)", r"expected at most \1"),
    (r"Input should be greater than or equal to (\S+)", r"expected at least \1"),
    (r"Input should be (less|greater) than (\S+)", r"expected a number \1 than \2"),
    (r"Value error, ('.*') is not one of (.+?)\.?$", r"found \1; expected one of \2"),
)


class ServerStopped(Exception):
    """Raised when a person ends a server: nothing is lost, nothing resumes."""


class Interrupted(Exception):
    """Raised when a person ends a command. The notes of its cause name what is kept."""


def exit_code(work: Callable[[], object]) -> int:
    """Do ``work``, print an error to stderr if it fails, and return the exit code. No output can move the cursor.

    0 done, 1 the run failed, 2 the request was wrong, 3 it worsens (``--fail-on``), 130 interrupted (SIGINT, SIGTERM
    or SIGHUP).
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as `ajuste` leaves it; ignored, it stays so
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with made_visible():
        try:
            code = _done(work)
        except Exception as error:  # noqa: BLE001 - a fault of Ajuste's own
            _log_failure(error, 1)
            print("\n".join(map(shortened, traceback.format_exc().splitlines()[-MOST_LINES:])), file=sys.stderr)
            code = 1
    _LOG.info("command ended", extra={"exit_code": code})
    return code


def _done(work: Callable[[], object]) -> int:
    try:
        result = work()
        sys.stdout.flush()
    except AjusteError as error:
        _log_failure(error, error.exit_code)
        place = f"{visible_line(str(error.place))}: " if error.place else ""
        _say(place + error.message, error.hint)
        return error.exit_code
    except typer.TyperException as error:
        _log_failure(error, error.exit_code)
        context = getattr(error, "ctx", None)
        message = in_our_words(error.format_message())
        _say(message, _usage_hint(message, context) if context else None)
        return error.exit_code
    except ModuleNotFoundError as error:
        missing = lacking(error)
        if missing is None:
            raise
        _log_failure(error, missing.exit_code)
        _say(missing.message, missing.hint)
        return missing.exit_code
    except ServerStopped:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except (Interrupted, KeyboardInterrupt, typer.Abort) as stop:
        _LOG.warning("command interrupted")
        _say("interrupted", _notes(stop.__cause__ or stop) or None)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away; what remains in the buffers has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not error.filename and _directory_is_gone():
            _log_failure(error, RequestError.exit_code)
            _say("the working directory no longer exists", "change to another directory")
            return RequestError.exit_code
        _log_failure(error, 1)
        # A file that cannot be written: what the system says is what there is to say.
        place = f"{error.filename}: " if error.filename else ""
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if is_full else error.strerror or str(error)
        notes = _notes(error)
        _say(f"{place}{reason}", f"free disk space{notes and f'; {notes}'}" if is_full else notes or None)
        return 1
    return result if isinstance(result, int) else 0


def _directory_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - a system call of its own
    except FileNotFoundError:
        return True
    return False


class _Visible:
    # A text stream that makes control characters visible. A `Console` writes to `rich_proxied_file` and so avoids it:
    # its own escape sequences have to reach the terminal.
    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(visible_json(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def made_visible() -> Iterator[None]:
    """Make control characters in standard output and error visible, and escape what their encoding lacks."""
    before = sys.stdout, sys.stderr
    for stream in before:
        # Fails where the descriptor was redirected to another file meanwhile: the old position is not valid in it.
        if hasattr(stream, "reconfigure"):
            with suppress(OSError):
                stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = _Visible(before[0]), _Visible(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class QuickEnding:
    """Ends the process without freeing every object first, which takes half a second.

    Make one before anything else: functions that are registered later with ``atexit`` run before it. Threads end first.
    """

    def __init__(self) -> None:
        self._code = 0
        atexit.register(self._end)

    def leave(self, code: int) -> NoReturn:
        self._code = code
        sys.exit(code)

    def _end(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(self._code)


def in_our_words(text: str) -> str:
    """Return Typer's message ``text`` in Ajuste's form: what is wrong, then what is valid."""
    for pattern, ours in _USAGE:
        text = re.sub(pattern, ours, text)
    return text


def _usage_hint(message: str, context: Any) -> str:
    # The name of what a group lists, without the word `show` before it.
    unknown = re.fullmatch(r"command '(\S+)' not found", message)
    if unknown and "show" in getattr(context.command, "commands", {}):
        return f"write {context.command_path} show {shlex.quote(unknown[1])}, or see {context.command_path} --help"
    return f"see {context.command_path} --help"


def _notes(error: BaseException) -> str:
    return "; ".join(getattr(error, "__notes__", ()))


def _log_failure(error: Exception, code: int) -> None:
    _LOG.error("command failed", exc_info=error, extra={"error": str(error), "exit_code": code})


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(message: str, hint: str | None) -> None:
    # The number and length of lines is limited, so that the first one stays on the screen.
    out = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    coloured = out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    text = _wrapped(visible("\n".join(_lines(f"{_PREFIX}{message}"))), _columns(out))
    print(f"{_RED}{_PREFIX}{_PLAIN}{text.removeprefix(_PREFIX)}" if coloured else text, file=out)
    if hint:
        columns = _columns(out)
        # People copy commands from hints, and a line break ends a command.
        text = visible("\n".join(f"  {line}" for line in _lines(hint)))
        print(text if columns >= _ORDINARY_COLUMNS else _wrapped(text, columns), file=out)


def _columns(out: TextIO) -> int:
    # Without a terminal nothing is wrapped.
    try:
        return os.get_terminal_size(out.fileno()).columns or sys.maxsize
    except (OSError, ValueError):
        return sys.maxsize


def _wrapped(text: str, columns: int) -> str:
    if columns == sys.maxsize:
        return text
    return "\n".join(
        textwrap.fill(
            line,
            columns,
            subsequent_indent=" " * min(2, len(line) - len(line.lstrip())),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.split("\n")
    )


def _lines(text: str) -> list[str]:
    lines = text.split("\n", MOST_LINES + 1)
    first = [shortened(line) for line in lines[:MOST_LINES]]
    return first if len(lines) <= MOST_LINES else [*first, "…"]
