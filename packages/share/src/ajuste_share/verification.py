"""Verification: every trial of a run is measured again under the virtual clock, and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ajuste.analysis.digest import digest
from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.executor.executor import TrialRequest
from ajuste.kernel.spec import kernel_kind
from ajuste.model.capability import Asked
from ajuste.model.error import RequestError
from ajuste.model.trial import Trial
from ajuste.outputs.trial_status import trial
from ajuste.run.runner import Executors, Watcher
from ajuste.run.testbed import Experiment, RunOptions, testbed_for
from ajuste.store.head import IMPORTED, Run
from ajuste.study.commands import trial_reading
from ajuste.study.named import require_allowed_run
from ajuste.study.resolved import ResolvedStudy

_AT_ONCE: Final = 200


@dataclass(frozen=True)
class Verified:
    """The result: the run's ``digest``, and the one ``measured`` now. ``different`` names the trials that differ;
    ``same_parts`` is true if kernels, programs, files and QEMU are the same; ``kernels`` has the old and new release of
    those that are not.
    """

    run: str
    study: str
    trials: int
    digest: str
    measured: str
    different: tuple[str, ...]
    same_parts: bool
    kernels: Mapping[str, tuple[str, str]]

    @property
    def same(self) -> bool:
        return self.digest == self.measured


def require_verifiable(run: Run, *, stranger: bool) -> ResolvedStudy:
    """Return the study of a run. Raises RequestError if it cannot be measured again to the same digest, or if a
    ``stranger``'s study needs what is not allowed here.
    """
    try:
        resolved = ResolvedStudy.model_validate_json(run.resolved)
    except ValueError as error:
        raise RequestError(
            f"run {run.id} is of another version of Ajuste; only studies that this version reads are measured again"
        ) from error
    target = resolved.study.target
    if target.on_host or target.clock != "virtual":
        where = "a host" if target.on_host else "a guest"
        raise RequestError(
            f"run {run.id} was measured on {where} by its clock: no second measurement has the same digest",
            hint="measure again with the run's own command, and compare both with ajuste report RUN RUN",
        )
    if not run.stopped:
        raise RequestError(f"run {run.id} is not finished", hint="finish it with its own command")
    if stranger:
        require_allowed_run(resolved, Asked("bundle"), catalogue(), kernel_kind)
    return resolved


def verify(
    run: Run, trials: Sequence[Trial], known: str, catalogue: Catalogue, options: RunOptions, watcher: Watcher
) -> Verified:
    """Measure all ``trials`` again in guests, and store nothing. ``known`` is the digest of the run.

    Raises RequestError if something that the run needs is missing, RunError if measuring fails.
    """
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    if unknown := {trial.slot.configuration for trial in trials} - set(resolved.names):
        raise RequestError(
            f"run {run.id} has trials of {unknown.pop()}; only configurations of its study can be measured again"
        )
    bed = testbed_for(resolved.study, options)
    try:
        # Files of the study are hashed here, and may be gone.
        experiment = bed.prepared(resolved, catalogue)
    except OSError as error:
        raise RequestError(
            f"run {run.id} uses {error.filename}: {error.strerror}",
            hint="run ajuste verify where its study and programs are",
        ) from error
    again = _measured(
        resolved,
        trials,
        Executors(lambda machine: bed.executor(experiment, machine, lambda _: None), lambda *_: None),
        watcher,
    )
    different = [
        f"block {trial.slot.block}, trial {trial.slot.position}, {trial.slot.configuration}"
        for trial, other in zip(trials, again, strict=True)
        if digest([trial]) != digest([other])
    ]
    return Verified(
        run=run.id,
        study=run.study,
        trials=len(trials),
        digest=known,
        measured=digest(again),
        different=tuple(different),
        same_parts=experiment.fingerprint == run.fingerprint.removeprefix(IMPORTED),
        kernels=_other_kernels(run, experiment),
    )


def _measured(resolved: ResolvedStudy, trials: Sequence[Trial], executors: Executors, watcher: Watcher) -> list[Trial]:
    measured: dict[tuple[int, int, int], Trial] = {}
    with executors:
        for begin in range(0, len(trials), _AT_ONCE):
            requests = [
                TrialRequest(
                    executors.prepared(resolved.find(trial.slot.configuration).machine),
                    resolved,
                    trial.slot,
                    trial.attempt,
                )
                for trial in trials[begin : begin + _AT_ONCE]
            ]
            parts = requests[0].executor.carry_out(
                requests, lambda request: watcher.trial_started(request.slot.configuration, request.slot.block)
            )
            for done in (answer for part in parts for answer in part):
                slot = done.request.slot
                repeated = trial(
                    slot,
                    done.request.attempt,
                    done.plan,
                    done.observation,
                    trial_reading(resolved, slot.configuration),
                    started=done.started,
                    earlier={},
                )
                measured[slot.block, slot.position, repeated.attempt] = repeated
                watcher.trial_done(slot.configuration, slot.block, repeated.status, repeated.host_seconds)
    return [measured[trial.slot.block, trial.slot.position, trial.attempt] for trial in trials]


def _other_kernels(run: Run, experiment: Experiment) -> dict[str, tuple[str, str]]:
    then = {
        spec: str(about["kernel"])
        for spec, about in run.environment.items()
        if isinstance(about, dict) and "kernel" in about
    }
    now = {spec: image.release for spec, image in experiment.images.items()}
    return {spec: (then[spec], now[spec]) for spec in now if spec in then and then[spec] != now[spec]}
