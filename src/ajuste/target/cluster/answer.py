"""What a worker answers: text in JSON's types, so that two versions of Ajuste can tell each other that they differ."""

from __future__ import annotations

import os
import platform
from typing import Any

from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.plan import Plan
from ajuste.target.target import Target

Answer = dict[str, Any]
"""``where`` the worker is, and one of: ``refusal`` (why it can do nothing for the study), ``lacks`` (checksums of files
that it needs), ``error`` (with ``hint`` and ``wrong``, whether the request is), or what was asked for.
"""


def from_here(**said: Any) -> Answer:
    """What this worker has to say."""
    return {"where": platform.node(), "pid": os.getpid(), **said}


def failure(error: AjusteError) -> Answer:
    """That something went wrong here; see ``require`` for the other side."""
    return from_here(error=str(error), hint=error.hint, wrong=isinstance(error, RequestError))


def require(answer: Answer) -> None:
    """Raises the error that an answer tells of."""
    if "error" in answer:
        kind = RequestError if answer["wrong"] else RunError
        raise kind(f"{answer['error']} (on {answer['where']})", hint=answer["hint"])


def carried_out(target: Target, plan: str) -> dict[str, Any]:
    """What ``target`` observed of a plan, but for what its lines mean: reading them again is cheaper."""
    return target.run(Plan.model_validate_json(plan)).model_dump(exclude={"events"})
