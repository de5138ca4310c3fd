"""A live experiment as a run in the store: it begins, resumes after a crash, and ends."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.design.stopping import Stop
from ajuste.executor.executor import Executor
from ajuste.executor.host.adoption import adoptions
from ajuste.executor.host.availability import current_values
from ajuste.executor.host.host import HostExecutor, prepared_for
from ajuste.executor.host.journals import keeper, require_none_left
from ajuste.executor.host.machine_lock import MachineLock
from ajuste.machine.files import make_directory
from ajuste.machine.home import WATCH, Home, ajuste_version, as_root, native_program
from ajuste.machine.session import boot_id
from ajuste.model.error import RequestError, RunError
from ajuste.model.live import LiveDesign
from ajuste.model.plan import ServerSetting
from ajuste.model.trial import Trial
from ajuste.model.wording import Say
from ajuste.run.experiment import prepare, surroundings
from ajuste.run.testbed import Experiment, RunOptions
from ajuste.store.head import Run
from ajuste.store.location import exclusive, lock_name
from ajuste.study.command_line.study import AS_IT_IS
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste_live.adoption import AdoptionOutcome, AdoptionWish, adopt_winner
from ajuste_live.conduct import Conductor, LiveHooks, rebooted, require_watch
from ajuste_live.guards import require_pressure
from ajuste_live.monitor import Heart
from ajuste_live.prediction import Known, SlicesPrediction, known_before
from ajuste_live.reading import Source
from ajuste_live.sources import opened
from ajuste_live.state import forget_stop, is_asked_to_stop, keep_state, own_state

if TYPE_CHECKING:
    from ajuste.store.store import Store

_LOG: Final = logging.getLogger(__name__)
LIVE: Final = "live"
"""The key of noted facts in the environment of a run."""


@dataclass(frozen=True)
class LiveOptions:
    """The options of a live experiment. ``fresh``: begin a new run. ``goes_on_after_boot``: resume after a reboot.
    ``patience_s``: seconds to wait for a metric that shows nothing; ``wait_s``: for another experiment. ``dry``: only
    plan. ``adopt``: a proved winner stays.
    """

    home: Home
    accept_risk: bool = False
    say: Say = lambda _: None
    fresh: bool = False
    goes_on_after_boot: bool = False
    patience_s: float = 0.0
    wait_s: float = 0.0
    dry: bool = False
    adopt: AdoptionWish | None = None


def prepare_live(study: Study, design: LiveDesign, known: Catalogue, options: LiveOptions) -> Experiment:
    """Prepare ``study`` on this machine. Raises RequestError for settings that cannot change while a service runs."""
    if not options.dry and os.geteuid() != 0:
        raise RequestError(
            "ajuste live requires root: it changes settings of this machine",
            hint=f"run {as_root()}\nor add --dry-run to see the plan without root",
        )
    require_pressure(design)
    run_options = RunOptions(options.home, accept_risk=options.accept_risk, say=options.say, dry=options.dry)
    experiment = prepare(study, known, run_options)
    resolved = experiment.resolved.model_copy(
        update={"deciding": tuple(metric.metric for metric in design.metrics), "described": (), "live": design}
    )
    _require_live(resolved, known, accept_risk=options.accept_risk, adopts=options.adopt is not None)
    marks = f"{experiment.fingerprint} {design.model_dump_json()}"
    return replace(experiment, resolved=resolved, fingerprint=hashlib.sha256(marks.encode()).hexdigest())


def _require_live(resolved: ResolvedStudy, known: Catalogue, *, accept_risk: bool, adopts: bool) -> None:
    if len(resolved.configurations) < 2:
        raise RequestError("there is one configuration; expected at least two levels to compare")
    _require_levels(resolved, known)
    plain = resolved.configurations[0]
    servers = [write.tunable for write in resolved.writes if isinstance(write.location, ServerSetting)]
    if servers and adopts:
        raise RequestError(
            f"--adopt conflicts with {servers[0]}, a setting of a running server",
            hint="remove --adopt, and write the winner in the server's configuration",
        )
    for configuration in resolved.configurations:
        if not configuration.writes or (configuration.workload.attributes, configuration.scratch) != (
            plain.workload.attributes,
            None,
        ):
            raise RequestError(
                f"{configuration.configuration.name} is not a setting of the running system",
                hint="ajuste live changes tunables of this machine; compare commands and their attributes with "
                "ajuste compare",
            )
        for write in configuration.writes:
            tunable = known.find_tunable(write.tunable)
            if tunable.risk != "none" and not accept_risk:
                raise RequestError(
                    f"{tunable.name} is not known to be safe under a live service: {tunable.risk_note or tunable.risk}",
                    hint="add --accept-risk to do it anyway, and guards with --guard",
                )


def _require_levels(resolved: ResolvedStudy, known: Catalogue) -> None:
    # `ajuste compare` takes one level against the machine as it is; here every slice writes its level.
    if not any(configuration.configuration.name == AS_IT_IS for configuration in resolved.configurations):
        return
    write = next(write for configuration in resolved.configurations for write in configuration.writes)
    with HostExecutor() as target:
        now = current_values(target, [known.find_tunable(write.tunable)])[write.tunable].value
    first = now if now not in (None, write.value) else "LEVEL"
    raise RequestError(
        f"--set {write.tunable}={write.value} has one level; expected at least two, the first of which is the baseline",
        hint=f"give two, such as --set {write.tunable}={first},{write.value}"
        + (f"; it is {now} now" if now is not None else ""),
    )


def require_free(home: Home, *, wait_s: float = 0, say: Say = lambda _: None) -> None:
    """Raise RequestError if the machine stays in use for ``wait_s`` seconds, or if an earlier experiment may have left
    values changed.
    """
    with MachineLock("experiment", wait_s=wait_s, say=say):
        require_none_left(home.journals)


def find_live(experiment: Experiment, store: Store) -> Run | None:
    """Return the unfinished run of the same experiment, or None."""
    alike = store.runs_alike(experiment.fingerprint, experiment.resolved.study.design.seed)
    return next((run for run in alike if not run.stopped), None)


def conduct_live(experiment: Experiment, store: Store, options: LiveOptions, *, named: str) -> Run:
    """Measure slices until everything is decided or the time is over. All sources are opened before any change.

    Raises RequestError if a source shows nothing, the machine is in use, or the same run is going on elsewhere;
    RunError if measuring fails. Measured slices stay in the store.
    """
    study, home = experiment.resolved.study, options.home
    what = f"the experiment {study.name}"
    with (
        exclusive(home.state / lock_name(experiment.fingerprint, study.design.seed), what),
        store.reserved(experiment.fingerprint, study.design.seed, what),
        ExitStack() as stack,
    ):
        store.require_sound()
        sources = stack.enter_context(opened(experiment.resolved.live_design, options.patience_s, options.say))
        earlier_run = None if options.fresh else find_live(experiment, store)
        run = earlier_run or _new_run(experiment, store, named)
        environment: dict[str, Any] = dict(run.environment)
        about: dict[str, Any] = dict(environment.get(LIVE, {}))
        if rebooted(about):
            if not options.goes_on_after_boot:
                words = "the machine was restarted, and --resume-after-reboot was not given"
                store.stop_run(run, "time", words)
                require_free(home)  # a setting of a server may have outlived the boot
                options.say(f"run {run.id}: {words}; nothing was changed since")
                return store.find_run(run.id)
            about["notes"] = [*about.get("notes", ()), "The machine was restarted during the run."]
        about["boot"] = boot_id()

        def note(known: Mapping[str, Any]) -> None:
            environment[LIVE] = dict(known)
            store.set_environment(run, environment)

        try:
            known = known_before(experiment.resolved, sources, store, environment["this machine"], apart=run.id)
            stop = _measured(experiment, run, store, options, sources, about, known, note)
        except BaseException as failure:
            store.forget_if_empty(run)
            if isinstance(failure, RunError):
                raise RunError(failure.message, hint=failure.hint or f"ajuste report {run.id} shows it") from failure
            if isinstance(failure, KeyboardInterrupt):
                adopted = next((adoption for adoption in adoptions() if adoption.run == run.id), None)
                now = f"the winner is adopted, undo with {adopted.undo}" if adopted else "the old values are in force"
                failure.add_note(f"{now}; run the same command again to resume")
            raise
        store.stop_run(run, stop.why, stop.words)
        _LOG.info("run ended", extra={"run": run.id, "stopped": stop.why, "because": stop.words})
        return store.find_run(run.id)


def _measured(
    experiment: Experiment,
    run: Run,
    store: Store,
    options: LiveOptions,
    sources: Mapping[str, Source],
    about: dict[str, Any],
    known: Mapping[str, Known],
    note: Callable[[Mapping[str, Any]], None],
) -> Stop:
    home, resolved = options.home, experiment.resolved
    state = own_state(run.id, run.study)
    forget_stop(home)

    def tell_state(**known: str | int) -> None:
        nonlocal state
        state = state.model_copy(update={"configuration": "", "doing": "", **known})
        keep_state(home, state)

    def predict(prediction: SlicesPrediction) -> None:
        nonlocal state
        state = state.model_copy(update={"predicted_slices": prediction.slices, "predicted": prediction.words})
        keep_state(home, state)

    def keep(trial: Trial) -> None:
        store.add_trials(run, [trial])

    pipes = home.state / "live"
    make_directory(pipes)
    hooks = LiveHooks(keep, note, options.say, lambda: is_asked_to_stop(home, run.id), tell_state, predict)
    keep_values, watch = keeper(home, run.id, resolved.writes, catalogue()), native_program(WATCH)

    def first(target: Executor) -> None:
        keep_values(target)
        require_watch(target, watch, heart)

    with (
        Heart(pipes / f"beat-{os.getpid()}") as heart,
        prepared_for(resolved, home, options.say, first, wait_s=options.wait_s) as executor,
    ):
        trials = [trial.model_copy(update={"events": ""}) for trial in store.trials(run)]
        conductor = Conductor(resolved, executor, sources, heart, hooks, watch, trials, about, known)
        note(about)
        if trials:
            options.say(f"run {run.id} goes on after {len(trials)} slices")
        keep_state(home, state)
        try:
            stop = conductor.carry_out()
            if options.adopt is not None:
                outcome = adopt_winner(conductor, executor, run, store, options.adopt)
                about["notes"] = [*about.get("notes", ()), outcome.words]
                about["adoption"] = {"words": outcome.words, "failed": outcome.failed}
                note(about)
            return stop
        finally:
            forget_stop(home)


def adoption_of_run(run: Run) -> AdoptionOutcome | None:
    """Return the outcome of adopting the winner of ``run``, if that was requested."""
    match run.environment.get(LIVE):
        case {"adoption": {"words": str(words), "failed": bool(failed)}}:
            return AdoptionOutcome(words, failed=failed)
    return None


def _new_run(experiment: Experiment, store: Store, named: str) -> Run:
    resolved = experiment.resolved
    return store.new_run(
        study=resolved.study.name,
        fingerprint=experiment.fingerprint,
        seed=resolved.study.design.seed,
        ajuste=ajuste_version(),
        named=named,
        resolved=resolved.model_dump_json(),
        environment=surroundings(),
        kernel=resolved.kernels_named,
        workload="live",
    )
