"""Ajuste: an experiment lab for Linux configuration."""

import os
import signal
import sys

if sys.argv[0].rpartition("/")[2] == "ajuste" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C while modules load ends the program without a traceback; `ajuste.cli.edge` takes it over.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ajuste.run.notebook import MeasuredRun, compare, load, measure

__all__ = ["MeasuredRun", "compare", "load", "measure"]

if os.geteuid() == 0 and (_installed := os.lstat(__file__)).st_uid != 0:
    # Root leaves no files in an environment of another user, who could not remove them.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    _cached = globals().get("__cached__") or __file__
    for _written in (_cached, os.path.dirname(_cached)):  # noqa: PTH120 - pathlib takes a while to load
        with suppress(OSError):  # that of this very module
            if os.lstat(_written).st_uid == 0:
                os.chown(_written, _installed.st_uid, _installed.st_gid, follow_symlinks=False)

logging.getLogger(__name__).addHandler(logging.NullHandler())  # what happens is no output (see ajuste.cli.log)


def __getattr__(name: str) -> Any:
    # Notebooks' names are loaded at their first use: every command imports this package and must start at once.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ajuste.run import notebook

    return getattr(notebook, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
