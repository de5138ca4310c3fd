"""Verification: every trial of a run measured again under the virtual clock, and whether all is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ajuste.analysis.record import digest
from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.executor.executor import TrialRequest
from ajuste.kernel.spec import kernel_kind
from ajuste.model.capability import Asked
from ajuste.model.error import RequestError
from ajuste.model.trial import Trial
from ajuste.outputs.trial import trial
from ajuste.run.runner import Executors, Watcher
from ajuste.run.testbed import Experiment, RunOptions, testbed_for
from ajuste.store.head import IMPORTED, Run
from ajuste.study.commands import trial_reading
from ajuste.study.named import require_allowed_run
from ajuste.study.resolved import ResolvedStudy

_AT_ONCE: Final = 200


@dataclass(frozen=True)
class Verified:
    """``digest`` is what the run has, ``measured`` what was measured now; ``different`` are the trials in which they
    are not the same, in words. ``same_parts`` says whether the same kernels, programs, files and QEMU were used;
    ``kernels`` has those that were other releases then, by name.
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
    """The study of a run that can be measured again to the same digest; a ``stranger``'s may build no kernels here.

    Raises RequestError.
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
    run: Run, trials: Sequence[Trial], known: str, catalogue: Catalogue, means: RunOptions, watcher: Watcher
) -> Verified:
    """Measure all ``trials`` again, in guests; nothing is kept. ``known`` is the digest of the run.

    Raises RequestError where something that the run needs is not there, RunError where measuring fails.
    """
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    if unknown := {one.slot.configuration for one in trials} - set(resolved.names):
        raise RequestError(
            f"run {run.id} has trials of {unknown.pop()}; only configurations of its study can be measured again"
        )
    bed = testbed_for(resolved.study, means)
    try:
        experiment = bed.prepared(resolved, catalogue)
    except OSError as error:
        raise RequestError(
            f"run {run.id} uses {error.filename}: {error.strerror}",
            hint="run ajuste verify where its study and programs are",
        ) from error
    again = _measured(
        resolved, trials, Executors(lambda one: bed.executor(experiment, one, lambda _: None), lambda *_: None), watcher
    )
    different = [
        f"block {one.slot.block}, trial {one.slot.position}, {one.slot.configuration}"
        for one, other in zip(trials, again, strict=True)
        if digest([one]) != digest([other])
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
    # The same trials in their order.
    found: dict[tuple[int, int, int], Trial] = {}
    with executors:
        for begin in range(0, len(trials), _AT_ONCE):
            requests = [
                TrialRequest(
                    executors.prepared(resolved.find(one.slot.configuration).machine), resolved, one.slot, one.attempt
                )
                for one in trials[begin : begin + _AT_ONCE]
            ]
            parts = requests[0].executor.carry_out(
                requests, lambda one: watcher.trial_started(one.slot.configuration, one.slot.block)
            )
            for done in (one for part in parts for one in part):
                slot = done.request.slot
                own = trial(
                    slot,
                    done.request.attempt,
                    done.plan,
                    done.observation,
                    trial_reading(resolved, slot.configuration),
                    started=done.started,
                    earlier={},
                )
                found[slot.block, slot.position, own.attempt] = own
                watcher.trial_done(slot.configuration, slot.block, own.status, own.host_seconds)
    return [found[one.slot.block, one.slot.position, one.attempt] for one in trials]


def _other_kernels(run: Run, experiment: Experiment) -> dict[str, tuple[str, str]]:
    # By spec the releases that were booted then and now, where they are not the same.
    then = {
        spec: str(said["kernel"])
        for spec, said in run.environment.items()
        if isinstance(said, dict) and "kernel" in said
    }
    now = {spec: image.release for spec, image in experiment.images.items()}
    return {spec: (then[spec], now[spec]) for spec in now if spec in then and then[spec] != now[spec]}
