"""The edge: where errors become one clear message and an exit code, and signals an orderly end."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

from ajuste.model.error import AjusteError

INTERRUPTED = 130


def exit_code(work: Callable[[], object]) -> int:
    """Do ``work`` and say on stderr what went wrong, if anything did.

    0 done, 1 the run failed, 2 the request was wrong, 130 interrupted (SIGINT, SIGTERM or SIGHUP).
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        result = work()
        if result == INTERRUPTED:  # Typer turns an interruption into its exit code.
            raise KeyboardInterrupt
        sys.stdout.flush()
    except AjusteError as error:
        _say(str(error), error.hint)
        return error.exit_code
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        _say(error.format_message(), f"{context.command_path} --help says more" if context else None)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted", "what a run has measured is kept: the same command goes on where it stopped")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away; what remains in the buffers has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # A disk that filled up, a file that cannot be written: what the system says is what there is to say.
        _say(f"{error.filename}: {error.strerror}" if error.filename else str(error), None)
        return 1
    return result if isinstance(result, int) else 0


def leave(code: int) -> NoReturn:
    """End this process like ``sys.exit``, but do not take apart every object first: for half a second nobody gains by.

    Threads are waited for, and whatever must be done at the end of a process is done.
    """
    with suppress(KeyboardInterrupt):
        threading._shutdown()  # type: ignore[attr-defined] # what the interpreter itself begins its end with
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _say(message: str, hint: str | None) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text("ajuste: ", style="bold red") + Text(message))
    if hint:
        console.print(Text("  " + hint.replace("\n", "\n  ")))
