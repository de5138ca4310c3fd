"""Advice as jobs of the lab: the command line that asks for it in a guest, and the answer in the job's directory."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ajuste.model.error import RequestError
from ajuste_advise.model import Advice
from ajuste_lab.jobs import Job

STUDY: Final = "advice on "
"""The beginning of the name of each such job; the workload follows."""

DOCUMENT: Final = "advice.json"
MOST_MINUTES: Final = 60
_MOST_BYTES: Final = 1 << 24


def guest_words(workload: str, options: Mapping[str, str]) -> list[str]:
    """Return the command line for advice on a workload in a guest. Nothing of it reaches a shell. Raises RequestError
    for what is no command.
    """
    try:
        words = shlex.split(workload)
    except ValueError as error:
        raise RequestError(f"workload: {error}; expected a command such as hackbench groups=2") from None
    if not words or "--" in words:
        raise RequestError("workload: expected a command such as hackbench groups=2")
    target = [] if options.get("kernel") else ["--vm"]
    typed = [f"--{name.replace('_', '-')}={entry}" for name, entry in options.items()]
    return ["advise", *target, *typed, f"--output={DOCUMENT}", "--", *words]


def advice_of(job: Job) -> Advice | None:
    """Return the answer, once it is there."""
    text = text_of(job.directory / DOCUMENT)
    return Advice.model_validate_json(text) if text else None


def text_of(file: Path) -> str:
    """Return a file's text, empty where there is none."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_MOST_BYTES)
    except OSError:
        return ""
