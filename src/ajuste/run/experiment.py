"""An experiment: a study on its kernels, from its preparation to its results.

Modules that only guests need are imported late: they take long to load.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.executor.executor import NOTES, Executor
from ajuste.executor.host.journals import keeper
from ajuste.kernel.spec import kernel_kind, specs_to_build
from ajuste.machine.cache import remove_leftovers
from ajuste.machine.home import ajuste_version, plugin_of
from ajuste.machine.inventory.inventory import summarise, take_inventory
from ajuste.model.base import BaseModel
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.fleet import FLEET
from ajuste.model.kernel import KERNEL_OPTIONS, PROOFS
from ajuste.model.relevance import RELEVANCE, NoChance, read_no_chance
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.outputs.trial_status import EXITED
from ajuste.run.outcome import results_of, rule_of_three_sigma
from ajuste.run.testbed import Experiment, KernelTestbed, RunOptions, testbed_for
from ajuste.study.named import require_allowed
from ajuste.study.resolve import resolve
from ajuste.study.resolved import Machine, ResolvedStudy
from ajuste.study.schema import Study

if TYPE_CHECKING:
    from ajuste.kernel.builder import BuildWatcher
    from ajuste.model.results import Results
    from ajuste.report.progress import Progress
    from ajuste.run.runner import Executors, Watcher
    from ajuste.store.store import Run, Store

_LOG: Final = logging.getLogger(__name__)
_KEPT: Final = "measurements are kept; run the same command again to resume"

Anew = Callable[[Experiment, "Store"], bool]
"""Decides whether an experiment is measured again although the store has a run of it."""
Resolving = Callable[[Study, Catalogue, RunOptions], ResolvedStudy]
"""Resolves a study on its kernels, as ``resolved_study`` does."""
Preparing = Callable[[Study, Catalogue, RunOptions], Experiment]
"""Makes an experiment of a study, as ``prepare`` does."""


def resolved_study(study: Study, catalogue: Catalogue, options: RunOptions) -> ResolvedStudy:
    """Return ``study`` resolved on its kernels. A kernel is fetched only if its spec has no version.

    Raises RequestError for what cannot be carried out as written, or is not allowed.
    """
    require_allowed(study, options.rights.planning, catalogue, kernel_kind)
    return resolve(*testbed_for(study, options).surroundings(study, catalogue))


def prepare(study: Study, catalogue: Catalogue, options: RunOptions) -> Experiment:
    """Fetch the kernels of ``study`` and resolve it on them. Nothing is booted or changed.

    Raises RequestError for what cannot be carried out as written; errors of the study itself before any download.
    """
    resolved = resolved_study(study, catalogue, options)
    if study.analysis.explain:
        recorder()  # what it lacks is named before anything is measured
    if study.analysis.three_sigma:
        rule_of_three_sigma()
    return testbed_for(study, options).prepared(resolved, catalogue)


def built_kernels(
    study: Study,
    catalogue: Catalogue,
    options: RunOptions,
    watcher: BuildWatcher,
    resolving: Resolving = resolved_study,
) -> dict[str, str]:
    """Build the kernels that ``study`` asks for, once all else of it is checked. Return their names (``mine:NAME``) by
    the study's.

    Raises RequestError for what cannot be carried out as written, RunError if building fails.
    """
    wanted = specs_to_build(study.kernels)
    if not wanted:
        return {}
    from ajuste.kernel.builder import kernel_builder

    bed = testbed_for(study, options)
    resolved = resolving(study, catalogue, options)
    assert isinstance(bed, KernelTestbed)  # only guests boot kernels of a study
    bed.require_buildable(resolved, wanted)
    return dict(kernel_builder().build_specified(study.kernels, options.home, watcher))


def progress_of(study: Study, catalogue: Catalogue, *, quiet: bool) -> Progress:
    """Return a progress display of ``study``, for ``conduct``."""
    from ajuste.report.progress import Progress
    from ajuste.study.metrics import deciding_metrics

    budget = study.budget
    return Progress(
        min_blocks=budget.min_blocks,
        max_blocks=budget.max_blocks,
        max_seconds=60 * budget.max_minutes,
        allocation=study.allocation,
        metric=deciding_metrics(study, catalogue)[0],
        quiet=quiet,
    )


def goes_on(experiment: Experiment, store: Store) -> bool:
    """Return whether the store has a run of the same experiment to resume or to show again.

    Under the virtual clock that is any run: measured again it would be equal. Under the wall clock it is one that was
    interrupted, or ended undecided and has a larger budget or another analysis now; others are measured again.
    """
    study = experiment.resolved.study
    latest = store.latest_run(experiment.fingerprint, study.design.seed)
    if latest is None or study.target.clock == "virtual":
        return latest is not None
    if latest.stopped in ("decided", "irrelevant", "failed"):
        return False
    then = ResolvedStudy.model_validate_json(latest.resolved).study
    if then.analysis != study.analysis:
        return True
    larger = {
        "budget": study.budget.max_blocks > then.budget.max_blocks,
        "time": study.budget.max_minutes > then.budget.max_minutes,
    }
    return larger.get(latest.stopped, True)


def unless_going_on(fresh: bool) -> Anew:
    """Return a decision to measure again if ``fresh``, or if there is no run to resume."""
    return lambda experiment, store: fresh or not goes_on(experiment, store)


@dataclass(frozen=True)
class MeasuredExperiment:
    """A ``run`` that ended, in its open ``store``. ``again`` if it had ended before and is only shown."""

    run: Run
    store: Store
    experiment: Experiment
    options: RunOptions
    again: bool

    def results(self) -> Results:
        """Return the results of the run so far."""
        return results_of(self.store.find_run(self.run.id), self.store)

    def failure(self, what: str = "the study") -> RunError:
        """Return the error to raise for a run that failed."""
        hint = f"ajuste report {self.run.id} --trials shows each"
        if re.search(rf"{EXITED} (?!126|127)", self.run.stopped_because):  # those are of a program that was not found
            hint += "\nif that code is no failure, measure it all the same: --ignore-failure, or ignore_failure = true"
        return RunError(f"{what} failed: {self.run.stopped_because}", hint=hint, of_candidate=True)


@contextmanager
def measured(
    study: Study,
    catalogue: Catalogue,
    options: RunOptions,
    *,
    named: str,
    anew: Anew = lambda *_: False,
    quiet: bool = False,
    name_chosen: bool = False,
    preparing: Preparing = prepare,
    display: AbstractContextManager[Watcher] | None = None,
) -> Iterator[MeasuredExperiment]:
    """Carry out ``study`` with a display and a store that stay open until the block ends.

    ``anew`` decides whether a stored run is measured again; with ``name_chosen`` no other question may have the
    study's name. Another kind of experiment is prepared by ``preparing``, and has a ``display`` for it. Raises as
    ``prepare`` and ``conduct``.
    """
    from ajuste.store.store import Store

    with display or progress_of(study, catalogue, quiet=quiet) as progress:
        options = replace(options, say=progress.say)
        experiment = preparing(study, catalogue, options)
        with Store(options.home.store_url) as store:
            if name_chosen:
                require_free_name(experiment, store)
            fresh = anew(experiment, store)
            alike = store.runs_alike(experiment.fingerprint, experiment.resolved.study.design.seed)
            run = conduct(experiment, store, progress, options, named=named, fresh=fresh)
            yield MeasuredExperiment(
                run, store, experiment, options, run.id in {earlier.id for earlier in alike if earlier.stopped}
            )


def conduct(
    experiment: Experiment, store: Store, watcher: Watcher, options: RunOptions, *, named: str, fresh: bool = False
) -> Run:
    """Measure until the study is decided or a budget is spent, and return the run. An earlier run of the same
    experiment is resumed.

    ``named`` is the study as typed. Raises RequestError if the same run is going on elsewhere or the kernel does not
    boot, RunError if measuring fails; measured trials stay in the store.
    """
    from ajuste.store.location import exclusive, lock_name  # plans need no store

    remove_leftovers(options.home)
    study = experiment.resolved.study
    seed = study.design.seed
    what = f"the study {study.name}"
    with (
        # The first lock is for this machine, the second for all that share the store.
        exclusive(options.home.state / lock_name(experiment.fingerprint, seed), what),
        store.reserved(experiment.fingerprint, seed, what),
    ):
        store.require_sound()
        alike = [] if fresh else store.runs_alike(experiment.fingerprint, seed)
        if options.reboots is not None and options.reboots.run:
            # After a reboot the session knows its run.
            alike = [store.find_run(options.reboots.run)]
        run = _resumed_or_new(experiment, store, alike, named)
        if options.reboots is not None:
            options.reboots.keep_run(run.id)
        names, trials = experiment.resolved.names, store.count(run)
        about = {"run": run.id, "study": study.name, "seed": seed, "configurations": names, "trials": trials}
        _LOG.info("run resumed" if run.id in [earlier.id for earlier in alike] else "run begun", extra=about)
        if run.stopped:
            if options.cluster is not None:
                options.say(f"{options.cluster} is not asked: the store has this run; add --fresh to measure it there")
            store.take_up(run)
            return run
        try:
            _measure(experiment, run, store, watcher, options)
        except BaseException as failure:
            lost = "" if options.reboots is not None else _forgotten_if_empty(run, store)
            if (stopped := _interruption(failure)) is not None:
                # What fails while it ends, such as a full disk, does not hide that a person ended it.
                for note in (_KEPT if _has_trials(run, store) else "", lost, str(failure)):
                    if note:
                        stopped.add_note(note)
                raise stopped from None
            if _has_trials(run, store):
                failure.add_note(_KEPT)
            if isinstance(failure, RunError) and _has_ended(run, store):
                report = f"ajuste report {run.id} shows what was measured"
                hint = f"{failure.hint}; {report}" if failure.hint else report
                raise RunError(failure.message, hint=hint, of_candidate=failure.of_candidate) from failure
            raise
        return store.find_run(run.id)


def _interruption(failure: BaseException) -> KeyboardInterrupt | None:
    context: BaseException | None = failure
    while context is not None and not isinstance(context, KeyboardInterrupt):
        context = context.__context__
    return context


def _forgotten_if_empty(run: Run, store: Store) -> str:
    # Return why that failed.
    try:
        store.forget_if_empty(run)
    except AjusteError as error:
        return error.message
    return ""


def _has_ended(run: Run, store: Store) -> bool:
    try:
        return any(stored.id == run.id and stored.stopped for stored in store.runs())
    except AjusteError:  # The store itself may have failed.
        return False


def _has_trials(run: Run, store: Store) -> bool:
    try:
        return store.count(run) > 0
    except AjusteError:  # The run was removed, or the store itself failed.
        return False


def _resumed_or_new(experiment: Experiment, store: Store, alike: Sequence[Run], named: str) -> Run:
    # `alike` is newest first. A new run takes over the trials of an ended one, whatever its analysis was.
    resolved = experiment.resolved
    for run in alike:
        if is_same_question(run, resolved):
            return run if run.stopped else store.go_on(run, named=named, resolved=_document(experiment, run))
    if alike and not alike[0].stopped and _fits(alike[0], store, resolved):
        document = _document(experiment, alike[0])
        return store.go_on(alike[0], named=named, resolved=document, study=resolved.study.name)
    ended = sorted((run for run in alike if run.stopped), key=store.count, reverse=True)
    base = next((run for run in ended if _fits(run, store, resolved)), None)
    return store.new_run(
        study=resolved.study.name,
        fingerprint=experiment.fingerprint,
        seed=resolved.study.design.seed,
        ajuste=ajuste_version(),
        named=named,
        resolved=_document(experiment, base),
        environment=surroundings() if base is None else base.environment,
        kernel=resolved.kernels_named,
        workload=resolved.workload_named,
        base="" if base is None else base.id,
    )


def _fits(run: Run, store: Store, resolved: ResolvedStudy) -> bool:
    # With more blocks than it may have, a run would not be what its own command measures.
    if resolved.search is not None or resolved.boots:  # these count no blocks
        return True
    first_beyond = resolved.study.design.warm_up + resolved.study.budget.max_blocks
    return bool((store.measurements(run).block < first_beyond).all())


def require_free_name(experiment: Experiment, store: Store) -> None:
    """Raise RequestError if another question has the chosen name already. An interrupted run of this one is resumed, so
    it is no obstacle.
    """
    resolved = experiment.resolved
    taken = store.runs_named(resolved.study.name)
    going_on = (not run.stopped and run.fingerprint == experiment.fingerprint for run in taken)
    if taken and not any(going_on) and not any(is_same_question(run, resolved) for run in taken):
        raise RequestError(
            f"--name {resolved.study.name}: run {taken[0].id} has this name and another question or command",
            hint=f"choose another name, or remove that run with ajuste store delete {taken[0].id}",
        )


def is_same_question(run: Run, resolved: ResolvedStudy) -> bool:
    """Return whether a run has the same question, so that its results answer it. Tried points are not compared."""
    try:
        then = ResolvedStudy.model_validate_json(run.resolved)
    except ValueError:  # Written by another version of Ajuste.
        return False
    now = ResolvedStudy.model_validate_json(resolved.model_dump_json())
    return (then.study, then.search, then.deciding) == (now.study, now.search, now.deciding)


def _document(experiment: Experiment, run: Run | None) -> str:
    # A resumed search takes over the configurations that its run has tried.
    resolved = experiment.resolved
    if run is not None and experiment.resolver is not None:
        resolved = ResolvedStudy.model_validate_json(run.resolved).model_copy(update={"study": resolved.study})
    return resolved.model_dump_json()


def surroundings() -> dict[str, Any]:
    """Return the inventory of this machine, with its summary."""
    inventory = take_inventory()
    return {"this machine": summarise(inventory), "inventory": inventory.model_dump(mode="json")}


def _measure(experiment: Experiment, run: Run, store: Store, watcher: Watcher, options: RunOptions) -> None:
    # The reason of the end is stored last, but before executors are closed: closing them can fail.
    from ajuste.run.runner import Executors, Runner  # It loads the analysis: a run that is shown again needs none.

    environment: dict[str, Any] = dict(run.environment)

    def ready(machine: Machine, executor: Executor) -> None:
        environment[machine.name] = executor.environment
        environment.update(executor.records)
        if executor.machines:
            environment["machines"] = {**environment.get("machines", {}), **executor.machines}
        store.set_environment(run, environment)

    def opened(machine: Machine) -> Executor:
        if (proof := bed.proof(experiment, machine)) is not None:
            environment[PROOFS] = {**environment.get(PROOFS, {}), machine.name: proof.model_dump(mode="json")}
            store.set_environment(run, environment)
        return bed.executor(experiment, machine, first)

    def keep(no_chance: tuple[NoChance, ...]) -> None:
        environment[RELEVANCE] = [entry.model_dump(mode="json") for entry in no_chance]
        store.set_environment(run, environment)

    resolved = experiment.resolved
    bed = testbed_for(resolved.study, replace(options, warn=watcher.warn))
    if KERNEL_OPTIONS not in environment and (kernel_options := _kernel_options(experiment, options)):
        environment[KERNEL_OPTIONS] = kernel_options
        store.set_environment(run, environment)
    if experiment.environment:
        environment |= experiment.environment
        store.set_environment(run, environment)

    def keep_order(record: BaseModel) -> None:
        environment[FLEET] = record.model_dump(mode="json")
        executors.refresh_environments()  # Machines may have joined.

    def present() -> Sequence[str]:
        return next(iter(executors.entered.values())).present

    order = bed.order(resolved, present, keep_order, watcher.say)
    first = keeper(options.home, run.id, resolved.writes, catalogue())
    with bed.connected, Executors(opened, ready) as executors, ExitStack() as stack:
        stack.callback(_keep_late_findings, executors, environment, ready)
        look = None
        # A search tries levels that a look in its first block could not see.
        if experiment.resolver is None and (observer := bed.observer(experiment, catalogue())) is not None:
            from ajuste.run.relevance import RelevanceLook

            look = RelevanceLook(observer, keep, watcher.warn, read_no_chance(environment))
            look.remind()
        stop = Runner(resolved, run, store, executors, watcher, experiment.resolver, look, order).carry_out()
        explained = resolved.study.analysis.explain and experiment.resolver is None
        if explained and stop.why != "failed" and bed.explains:
            recorder().record_decisive(run, store, executors, options.say)
        _keep_late_findings(executors, environment, ready)  # A run that ended cannot change.
        _LOG.info("run ended", extra={"run": run.id, "stopped": stop.why, "because": stop.words})
        store.stop_run(run, stop.why, stop.words)


def _keep_late_findings(
    executors: Executors, environment: Mapping[str, Any], ready: Callable[[Machine, Executor], None]
) -> None:
    # Some executors learn about their machines only while they measure.
    for machine, executor in executors.entered.items():
        changed = NOTES in executor.environment and environment.get(machine.name) != executor.environment
        changed |= bool(executor.machines.keys() - environment.get("machines", {}).keys())
        changed |= any(environment.get(key) != record for key, record in executor.records.items())
        if changed:
            ready(machine, executor)


def recorder() -> Any:
    """Return the module that records trials and explains them: ``record`` does on request, ``record_decisive`` at the
    end of a run. Raises RequestError if the package that has it is not installed.
    """
    return plugin_of("guest", "recorders", "why")


def _kernel_options(experiment: Experiment, options: RunOptions) -> dict[str, Any]:
    study = experiment.resolved.study
    compared = next((factor for factor in study.factors if factor.name == KERNEL_FACTOR), None)
    if compared is None or len(experiment.images) < 2:
        return {}
    from ajuste.kernel.builder import has_builder, kernel_builder

    if not has_builder():
        return {}
    differences = kernel_builder().compared_options(
        compared.baseline_level, experiment.images, options.home, options.say
    )
    return {spec: differing.model_dump(mode="json") for spec, differing in differences.items()}
