"""The outcome of a run: its results, computed again from what the store has."""

from __future__ import annotations

import shlex
from typing import Final

from ajuste.analysis.results import assemble
from ajuste.design.stopping import Why
from ajuste.model.results import Results
from ajuste.store.store import Run, Store
from ajuste.study.resolved import ResolvedStudy

UNFINISHED: Final = "the run has not ended; the same `ajuste run` goes on with it"
_STOPPED: dict[str, Why] = {"decided": "decided", "budget": "budget", "time": "time", "failed": "failed"}


def results_of(run: Run, store: Store) -> Results:
    """Everything that is known of ``run``, as one document."""
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    return assemble(
        resolved,
        store.trials(run),
        run=run.id,
        stopped=_STOPPED.get(run.stopped, "interrupted"),
        stopped_because=run.stopped_because or UNFINISHED,
        environment=run.environment,
        reproduce=_reproduce(resolved),
        created=run.created,
        ajuste=run.ajuste,
    )


def _reproduce(resolved: ResolvedStudy) -> list[str]:
    """The commands that measure the same again, each with what could differ spelled out."""
    study = resolved.study
    command = ["ajuste", "run", study.name, "--seed", str(study.design.seed), "--fresh"]
    if study.target.kernel:
        command[3:3] = ["--kernel", study.target.kernel]
    return [shlex.join(command)]
