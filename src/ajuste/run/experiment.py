"""An experiment: a study on given kernels of this machine, from its preparation to its results.

What only guests need is imported when there are any: it takes long to load.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.design.search.goal import Search
from ajuste.executor.executor import NOTES, Executor
from ajuste.executor.host.journals import keeper
from ajuste.kernel.spec import WITH_SCHEDULERS, KernelToBuild, kernel_kind, specs_to_build
from ajuste.machine.cache import remove_leftovers
from ajuste.machine.installation import ajuste_version
from ajuste.machine.inventory.inventory import summarise, take_inventory
from ajuste.model.boot import BOOTS
from ajuste.model.capability import Asked
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.fleet import FLEET, CanaryRecord
from ajuste.model.kernel import KERNEL_OPTIONS, PACKAGES, PROOFS
from ajuste.model.relevance import RELEVANCE, NoChance, read_no_chance
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.run.fleet import Fleet
from ajuste.run.outcome import results_of
from ajuste.run.relevance import ActivityObserver, RelevanceLook
from ajuste.run.runner import Executors, Runner, Watcher
from ajuste.run.testbed import Experiment, RunOptions, testbed_for
from ajuste.study.named import require_allowed, require_allowed_run
from ajuste.study.resolve import resolve, resolver
from ajuste.study.resolved import Machine, ResolvedConfiguration, ResolvedStudy
from ajuste.study.schema import Study
from ajuste.study.tune import first_study, searched_study

if TYPE_CHECKING:
    from ajuste.kernel.building.build import BuildWatcher
    from ajuste.model.results import Results
    from ajuste.report.progress import Progress, SearchProgress
    from ajuste.store.store import Run, Store

_LOG: Final = logging.getLogger(__name__)
_KEPT: Final = "measurements are kept; run the same command again to resume"

Anew = Callable[[Experiment, "Store"], bool]
"""Whether an experiment is measured anew, though the store may have a run of the very same."""


def resolved_study(study: Study, catalogue: Catalogue, means: RunOptions) -> ResolvedStudy:
    """``study`` on its kernels. A kernel is fetched only if its spec does not say its version.

    Raises RequestError for whatever cannot be carried out as it is written, or may not be asked for.
    """
    require_allowed(study, means.asked.planning, catalogue, kernel_kind)
    return resolve(*testbed_for(study, means).surroundings(study, catalogue))


def prepare(study: Study, catalogue: Catalogue, means: RunOptions) -> Experiment:
    """Fetch the kernels of ``study`` and resolve it on them. Nothing is booted or changed.

    Raises RequestError for whatever cannot be carried out as it is written; what is wrong with the study itself is
    found before anything is downloaded.
    """
    resolved = resolved_study(study, catalogue, means)
    return testbed_for(study, means).prepared(resolved, catalogue)


def built_kernels(
    study: Study, catalogue: Catalogue, means: RunOptions, watcher: BuildWatcher, search: Search | None = None
) -> dict[str, str]:
    """The names (``mine:NAME``) of the kernels that ``study`` asks to build, by what it calls them. They are built once
    all else is known to be right.

    Raises RequestError for whatever cannot be carried out as it is written, RunError where building fails.
    """
    wanted = specs_to_build(study.kernels)
    if not wanted:
        return {}
    from ajuste.kernel.building.build import build_specified, require_different
    from ajuste.run.proofs.prove import check_claims

    if search is None:
        resolved = resolved_study(study, catalogue, means)
    else:
        surroundings = testbed_for(study, means).surroundings(searched_study(study, search, catalogue), catalogue)
        resolved = first_study(resolver(*surroundings), search)
    check_claims(study)
    for one in resolved.configurations:
        if one.kernel in wanted:
            _require_plain(one, wanted[one.kernel], study)
    built = build_specified(study.kernels, means.home, watcher)
    require_different(built)
    return {text: kernel.image.spec for text, kernel in built.items()}


def _require_plain(one: ResolvedConfiguration, wanted: KernelToBuild, study: Study) -> None:
    # A kernel that is built for a study comes without what only others are built with. Raises RequestError.
    from ajuste.executor.guest.initramfs import how_to_build

    place = study.kernel_place(one.kernel)
    contained = {scheduler.name for scheduler in study.schedulers}
    if one.scheduler and one.scheduler not in contained and wanted.config != WITH_SCHEDULERS:
        raise RequestError(
            f"{one.kernel} is built without BPF schedulers (sched_ext), which {one.scheduler} requires",
            hint=how_to_build(one.kernel),
            place=place,
        )
    if one.modules:
        raise RequestError(
            f"{one.kernel}: building a module requires a distribution's kernel, such as debian:5.10",
            hint="omit the level with --without, or use --kernel debian:5.10",
            place=place,
        )


def prepare_search(study: Study, search: Search, catalogue: Catalogue, means: RunOptions) -> Experiment:
    """As ``prepare``, for a search among the combinations of all levels. Raises RequestError."""
    require_allowed(study, means.asked.planning, catalogue, kernel_kind)
    bed = testbed_for(study, means)
    found = resolver(*bed.surroundings(searched_study(study, search, catalogue), catalogue))
    return replace(bed.prepared(first_study(found, search), catalogue), resolver=found)


def progress_of(
    study: Study, catalogue: Catalogue, *, quiet: bool, search: Search | None = None
) -> Progress | SearchProgress:
    """A display of how ``study``, or the ``search`` in it, goes on, for ``conduct``."""
    from ajuste.report.progress import Progress, SearchProgress
    from ajuste.study.measures import deciding_metrics

    if search is not None:
        return SearchProgress(allowed=search.trials, quiet=quiet)
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
    """Whether the store has a run of the very same that is worth going on with, or showing again.

    Under the virtual clock any run is: it would be measured alike. By a clock of the world one that did not end by
    itself, or that ended undecided and has a larger budget or another analysis now; what ended is measured anew.
    """
    study = experiment.resolved.study
    kept = store.latest_run(experiment.fingerprint, study.design.seed)
    if kept is None or study.target.clock == "virtual":
        return kept is not None
    if kept.stopped in ("decided", "irrelevant", "failed"):
        return False
    then = ResolvedStudy.model_validate_json(kept.resolved).study
    if then.analysis != study.analysis:
        return True
    larger = {
        "budget": study.budget.max_blocks > then.budget.max_blocks,
        "time": study.budget.max_minutes > then.budget.max_minutes,
    }
    return larger.get(kept.stopped, True)


def unless_going_on(fresh: bool) -> Anew:
    """Anew if that is wanted, or if there is no run to go on with."""
    return lambda experiment, store: fresh or not goes_on(experiment, store)


@dataclass(frozen=True)
class Measured:
    """A ``run`` that ended, in its open ``store``. ``again`` if it had ended before, so that it is only shown."""

    run: Run
    store: Store
    experiment: Experiment
    means: RunOptions
    again: bool

    def results(self) -> Results:
        """What is known of it by now."""
        return results_of(self.store.find_run(self.run.id), self.store)

    def failure(self, what: str = "the study") -> RunError:
        """What to raise for a run that stopped because it failed."""
        hint = f"ajuste report {self.run.id} --trials shows each"
        return RunError(f"{what} failed: {self.run.stopped_because}", hint=hint)


@contextmanager
def measured(
    study: Study,
    catalogue: Catalogue,
    means: RunOptions,
    *,
    named: str,
    anew: Anew = lambda *_: False,
    quiet: bool = False,
    name_chosen: bool = False,
    search: Search | None = None,
) -> Iterator[Measured]:
    """Carry out ``study``, or the ``search`` in it, with a display and a store that are open until the block ends.

    ``anew`` says whether what is in the store is measured again, ``name_chosen`` that no other question may have the
    study's name. Raises as ``prepare`` and ``conduct``.
    """
    from ajuste.store.store import Store

    with progress_of(study, catalogue, quiet=quiet, search=search) as progress:
        means = replace(means, say=progress.say)
        experiment = prepare_search(study, search, catalogue, means) if search else prepare(study, catalogue, means)
        with Store(means.home.store_url) as store:
            if name_chosen:
                require_free_name(experiment, store)
            fresh = anew(experiment, store)
            alike = store.runs_alike(experiment.fingerprint, experiment.resolved.study.design.seed)
            run = conduct(experiment, store, progress, means, named=named, fresh=fresh)
            yield Measured(run, store, experiment, means, run.id in {one.id for one in alike if one.stopped})


def conduct(
    experiment: Experiment, store: Store, watcher: Watcher, means: RunOptions, *, named: str, fresh: bool = False
) -> Run:
    """Measure until the study is decided or a budget is spent, going on where an earlier run of the very same
    stopped.

    ``named`` is how the person named the study. The run that comes back says why it stopped. Raises RequestError
    where the same run is going on elsewhere or the kernel does not boot, RunError where measuring failed; what was
    measured is in the store in any case.
    """
    from ajuste.store.location import exclusive, lock_name  # what is only planned is kept in no store

    remove_leftovers(means.home)
    study = experiment.resolved.study
    seed = study.design.seed
    what = f"the study {study.name}"
    with (
        exclusive(means.home.state / lock_name(experiment.fingerprint, seed), what),
        store.reserved(experiment.fingerprint, seed, what),
    ):
        store.require_sound()
        alike = [] if fresh else store.runs_alike(experiment.fingerprint, seed)
        if means.reboots is not None and means.reboots.plan.run:
            alike = [store.find_run(means.reboots.plan.run)]
        run = _begun(experiment, store, alike, named)
        if means.reboots is not None:
            means.reboots.keep_run(run.id)
        about = {"run": run.id, "study": study.name, "seed": seed, "configurations": experiment.resolved.names}
        _LOG.info("run resumed" if run.id in [one.id for one in alike] else "run begun", extra=about)
        if run.stopped:
            store.take_up(run)
            return run
        try:
            _measure(experiment, run, store, watcher, means)
        except BaseException as failure:
            if means.reboots is None:
                store.forget_if_empty(run)
            if _has_trials(run, store):
                failure.add_note(_KEPT)
            if isinstance(failure, RunError) and _has_ended(run, store):
                kept = f"ajuste report {run.id} shows what was measured"
                raise RunError(failure.message, hint=f"{failure.hint}; {kept}" if failure.hint else kept) from failure
            raise
        return store.find_run(run.id)


def _has_ended(run: Run, store: Store) -> bool:
    try:
        return any(one.id == run.id and one.stopped for one in store.runs())
    except AjusteError:  # What failed may be the store.
        return False


def _has_trials(run: Run, store: Store) -> bool:
    try:
        return store.count(run) > 0
    except AjusteError:  # It has none, or the store fails.
        return False


def _begun(experiment: Experiment, store: Store, alike: Sequence[Run], named: str) -> Run:
    # The run of this study: of those `alike`, the newest first, the one that was asked the same or can go on, or else a
    # new one with the trials of one that ended.
    resolved = experiment.resolved
    for run in alike:
        if is_same_question(run, resolved):
            return run if run.stopped else store.go_on(run, named=named, resolved=_document(experiment, run))
    if alike and not alike[0].stopped:
        document = _document(experiment, alike[0])
        return store.go_on(alike[0], named=named, resolved=document, study=resolved.study.name)
    base = max((run for run in alike if run.stopped), key=store.count, default=None)
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


def require_free_name(experiment: Experiment, store: Store) -> None:
    """Raises RequestError if another question has the name that a person chose for this one. One that is going on
    under it goes on.
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
    """Whether a run was asked just this, so that its answer is the answer. What a search has tried is no question."""
    try:
        then = ResolvedStudy.model_validate_json(run.resolved)
    except ValueError:  # Of an Ajuste that wrote it otherwise.
        return False
    now = ResolvedStudy.model_validate_json(resolved.model_dump_json())
    return (then.study, then.search, then.deciding) == (now.study, now.search, now.deciding)


def _document(experiment: Experiment, kept: Run | None) -> str:
    # The study as it is kept of a run. A search has more of it by now in the run it goes on from.
    resolved = experiment.resolved
    if kept is not None and experiment.resolver is not None:
        resolved = ResolvedStudy.model_validate_json(kept.resolved).model_copy(update={"study": resolved.study})
    return resolved.model_dump_json()


def surroundings() -> dict[str, Any]:
    """What this machine is, in short and in full."""
    inventory = take_inventory()
    return {"this machine": summarise(inventory), "inventory": inventory.model_dump(mode="json")}


def _measure(experiment: Experiment, run: Run, store: Store, watcher: Watcher, means: RunOptions) -> None:
    # Measure, and keep why that ended before anything that comes after the trials can fail.
    environment: dict[str, Any] = dict(run.environment)

    def ready(machine: Machine, executor: Executor) -> None:
        environment[machine.name] = executor.environment
        if executor.boots is not None:
            environment[BOOTS] = executor.boots.model_dump(mode="json")
        if executor.machines:
            environment["machines"] = {**environment.get("machines", {}), **executor.machines}
        store.set_environment(run, environment)

    def opened(machine: Machine) -> Executor:
        if (proof := bed.proof(experiment, machine)) is not None:
            environment[PROOFS] = {**environment.get(PROOFS, {}), machine.name: proof.model_dump(mode="json")}
            store.set_environment(run, environment)
        return bed.executor(experiment, machine, first)

    def keep(found: tuple[NoChance, ...]) -> None:
        environment[RELEVANCE] = [one.model_dump(mode="json") for one in found]
        store.set_environment(run, environment)

    resolved = experiment.resolved
    bed = testbed_for(resolved.study, replace(means, warn=watcher.warn))
    if KERNEL_OPTIONS not in environment and (options := _kernel_options(experiment, means)):
        environment[KERNEL_OPTIONS] = options
        store.set_environment(run, environment)
    if experiment.root is not None:
        environment[PACKAGES] = experiment.root.about
        store.set_environment(run, environment)

    def keep_fleet(record: CanaryRecord) -> None:
        environment[FLEET] = record.model_dump(mode="json")
        executors.told()  # Machines may have joined.

    fleet = None
    if means.fleet is not None:
        fleet = Fleet(
            means.fleet, resolved, lambda: next(iter(executors.entered.values())).present, keep_fleet, watcher.say
        )
    first = keeper(means.home, run.id, resolved.writes, catalogue())
    with bed.connected, Executors(opened, ready) as executors, ExitStack() as stack:
        stack.callback(_say_what_came_up, executors, environment, ready)
        look = None if experiment.resolver else _look(bed.observer(experiment, catalogue()), environment, watcher, keep)
        stop = Runner(resolved, run, store, executors, watcher, experiment.resolver, look, fleet).carry_out()
        explained = resolved.study.analysis.explain and experiment.resolver is None
        if explained and stop.why != "failed" and bed.explains:
            from ajuste.run.recordings import record_decisive

            record_decisive(run, store, executors, means.say)
        _say_what_came_up(executors, environment, ready)  # A run that ended cannot change.
        _LOG.info("run ended", extra={"run": run.id, "stopped": stop.why, "because": stop.words})
        store.stop_run(run, stop.why, stop.words)


def _look(
    observer: ActivityObserver | None,
    environment: Mapping[str, Any],
    watcher: Watcher,
    keep: Callable[[tuple[NoChance, ...]], None],
) -> RelevanceLook | None:
    if observer is None:
        return None
    look = RelevanceLook(observer, keep, watcher.warn, read_no_chance(environment))
    look.remind()
    return look


def _say_what_came_up(
    executors: Executors, environment: Mapping[str, Any], ready: Callable[[Machine, Executor], None]
) -> None:
    # Keep what executors found out about themselves after they had become ready.
    for machine, executor in executors.entered.items():
        told = NOTES in executor.environment and environment.get(machine.name) != executor.environment
        told |= bool(executor.machines.keys() - environment.get("machines", {}).keys())
        boots = None if executor.boots is None else executor.boots.model_dump(mode="json")
        if told or boots != environment.get(BOOTS):
            ready(machine, executor)


def _kernel_options(experiment: Experiment, means: RunOptions) -> dict[str, Any]:
    # In which options the kernels of a study differ, if it compares any.
    study = experiment.resolved.study
    compared = next((factor for factor in study.factors if factor.name == KERNEL_FACTOR), None)
    if compared is None or len(experiment.images) < 2:
        return {}
    from ajuste.kernel.difference import compared_options

    found = compared_options(compared.baseline_level, experiment.images, means.home, means.say)
    return {spec: options.model_dump(mode="json") for spec, options in found.items()}


def record(
    run: Run,
    configuration: str,
    store: Store,
    catalogue: Catalogue,
    means: RunOptions,
    *,
    fresh: bool,
    decisions: bool = False,
) -> None:
    """Record a trial of ``configuration`` and one of the baseline, on the run's own machine, if the store does not have
    them or they are to be made ``fresh``; with ``decisions`` also what the scheduler decides.

    Raises RequestError where the run's kernel does not boot or its programs are gone, RunError where the machine was
    lost.
    """
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    if run.imported:
        require_allowed_run(resolved, Asked("bundle"), catalogue, kernel_kind)
    from ajuste.run.recordings import follow_decisions, record_trials, to_follow, to_record

    names = to_record(run, configuration, store, fresh=fresh)
    followed = to_follow(run, configuration, store, fresh=fresh or bool(names)) if decisions else ()
    if not names and not followed:
        return
    bed = testbed_for(resolved.study, means)
    experiment = bed.prepared(resolved, catalogue)
    first = keeper(means.home, run.id, resolved.writes, catalogue)
    with Executors(lambda machine: bed.executor(experiment, machine, first), lambda *_: None) as executors:
        record_trials(run, names, store, executors, means.say)
        follow_decisions(run, followed, store, executors, means.say)
