"""An experiment: a study on given kernels of this machine, from its preparation to its results.

What only guests need is imported when there are any: it takes long to load.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.design.search.goal import Search
from ajuste.design.stopping import Stop
from ajuste.executor.cluster.connection import Cluster, Connection
from ajuste.executor.executor import NOTES, Benches, Executor
from ajuste.executor.guest.initramfs import GuestFiles
from ajuste.executor.host.caller import host_site
from ajuste.executor.host.host import HostExecutor
from ajuste.executor.host.kept_state import keeper
from ajuste.executor.host.machine import of_this_machine
from ajuste.executor.host.prepared import prepared_for, require_possible
from ajuste.kernel.own_module import built_modules
from ajuste.kernel.spec import OwnKernel, PackagedKernel, parse_spec
from ajuste.machine.cache import remove_leftovers
from ajuste.machine.files import sha256_of
from ajuste.machine.home import AGENT, WORKLOADS, Home, ajuste_version, find_program, native_program
from ajuste.machine.inventory.inventory import summary_of, take_inventory
from ajuste.machine.session import machine_marks
from ajuste.model.error import RequestError
from ajuste.model.kernel import KERNEL_OPTIONS, PROOFS, KernelImage, KernelVersion, Proof
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.model.wording import Say
from ajuste.run.recordings import record_decisive, record_trials, to_record
from ajuste.run.runner import Executors, Runner, Watcher
from ajuste.store.store import Run, Store, lock_name, only_one
from ajuste.study.files import study_directory
from ajuste.study.resolve import HOST_KERNEL, FindProgram, Resolver, resolve, resolver
from ajuste.study.resolved import Machine, ResolvedStudy, fingerprint
from ajuste.study.schema import Study
from ajuste.study.settings import SCHED_EXT, varies
from ajuste.study.site import GUEST, Site
from ajuste.study.tune import first_study, searched_study


@dataclass(frozen=True)
class RunOptions:
    """How an experiment is carried out; nothing of it changes what is measured under the virtual clock."""

    home: Home
    jobs: int | None = None
    snapshot: bool = True
    accept_risk: bool = False
    say: Say = field(default=lambda _: None)
    cluster: Cluster | None = None


@dataclass(frozen=True)
class Experiment:
    """``images`` by kernel spec. ``fingerprint`` is of all that decides what is measured: equal ones share trials.

    ``modules`` are files of kernel modules of Ajuste's own, by the machine that loads them.

    With a ``resolver`` it is a search, whose configurations are made as it goes.
    """

    resolved: ResolvedStudy
    images: dict[str, KernelImage]
    packages: dict[str, str]
    fingerprint: str
    resolver: Resolver | None = None
    modules: dict[Machine, tuple[Path, ...]] = field(default_factory=dict)


def resolved_study(study: Study, catalogue: Catalogue, means: RunOptions) -> ResolvedStudy:
    """``study`` on its kernels. A kernel is fetched only if its spec does not say its version.

    Raises RequestError for whatever cannot be carried out as it is written.
    """
    return resolve(*_surrounded(study, catalogue, means))


def _surrounded(
    study: Study, catalogue: Catalogue, means: RunOptions
) -> tuple[Study, Catalogue, dict[str, KernelVersion], FindProgram, Site]:
    """What ``resolve`` takes: the study with what it is to run on."""
    if study.target.kind == "host":
        here = {HOST_KERNEL: KernelVersion.parse(platform.release())}
        return study, of_this_machine(catalogue), here, find_program, host_site()
    return study, catalogue, {spec: _version(spec, means, study) for spec in study.kernels}, find_program, GUEST


def _version(spec: str, means: RunOptions, study: Study) -> KernelVersion:
    from ajuste.executor.guest.initramfs import how_to_build
    from ajuste.kernel.fetch import fetch_kernel

    parsed = parse_spec(spec)
    known = parsed.version or parsed.release if isinstance(parsed, PackagedKernel) else ""
    if "." in known:
        return KernelVersion.parse(known)
    try:
        return fetch_kernel(spec, means.home, say=means.say).version
    except RequestError as failure:
        if isinstance(parsed, OwnKernel) and varies(study, SCHED_EXT):
            raise RequestError(failure.message, hint=how_to_build(spec)) from None
        raise


def prepare(study: Study, catalogue: Catalogue, means: RunOptions) -> Experiment:
    """Fetch the kernels of ``study`` and resolve it on them. Nothing is booted or changed.

    Raises RequestError for whatever cannot be carried out as it is written; what is wrong with the study itself is
    found before anything is downloaded.
    """
    return prepare_resolved(resolved_study(study, catalogue, means), catalogue, means)


def prepare_search(study: Study, search: Search, catalogue: Catalogue, means: RunOptions) -> Experiment:
    """As ``prepare``, for a search among the combinations of all levels. Raises RequestError."""
    found = resolver(*_surrounded(searched_study(study, search, catalogue), catalogue, means))
    return replace(prepare_resolved(first_study(found, search), catalogue, means), resolver=found)


def prepare_resolved(resolved: ResolvedStudy, catalogue: Catalogue, means: RunOptions) -> Experiment:
    """As ``prepare``, of a study that was resolved before."""
    study = resolved.study
    marks = {
        f"file {path}": sha256_of(path)
        for path in (native_program(AGENT), native_program(WORKLOADS), *map(Path, _taken_along(resolved)))
    }
    if study.target.kind == "host":
        if means.cluster is not None:  # What is possible is each machine's own to say, and which they are may change.
            return Experiment(resolved, {}, {}, fingerprint(resolved, marks | {"machine": "those of a cluster"}))
        require_possible(resolved, catalogue, accept_risk=means.accept_risk)
        return Experiment(resolved, {}, {}, fingerprint(resolved, marks | machine_marks()))
    from ajuste.executor.guest.emulator import choose_emulator
    from ajuste.executor.guest.initramfs import scheduler_of
    from ajuste.kernel.fetch import fetch_kernel
    from ajuste.run.proofs.prove import check_claims

    check_claims(study)
    images = {spec: fetch_kernel(spec, means.home, say=means.say) for spec in study.kernels}
    emulator = choose_emulator(study.target.clock, study.target.cpus, means.home, means.say)
    marks |= {f"kernel {spec}": image.sha256 for spec, image in images.items()}
    modules = built_modules(resolved, images, means.home, means.say)
    marks |= {
        f"module {file.stem} of {machine.name}": sha256_of(file) for machine in modules for file in modules[machine]
    }
    marks |= {
        f"scheduler {one.kernel} {one.scheduler}": sha256_of(scheduler_of(images[one.kernel], one.scheduler))
        for one in resolved.configurations
        if one.scheduler
    }
    packages = {kind.program: kind.package for kind in catalogue.workloads.values() if kind.package}
    key = fingerprint(resolved, marks | {"QEMU": emulator.version})
    return Experiment(resolved, images, packages, key, modules=modules)


def goes_on(experiment: Experiment, store: Store) -> bool:
    """Whether the store has a run of the very same that is worth going on with, or showing again.

    Under the virtual clock any run is: it would be measured alike. By a clock of the world one that did not end by
    itself, or that has a larger budget now; what ended is measured anew.
    """
    study = experiment.resolved.study
    kept = store.latest_run(experiment.fingerprint, study.design.seed)
    if kept is None or study.target.clock == "virtual":
        return kept is not None
    if kept.stopped in ("decided", "failed"):
        return False
    then = ResolvedStudy.model_validate_json(kept.resolved).study.budget
    spent = {"budget": study.budget.max_blocks > then.max_blocks, "time": study.budget.max_minutes > then.max_minutes}
    return spent.get(kept.stopped, True)


def conduct(
    experiment: Experiment, store: Store, watcher: Watcher, means: RunOptions, *, named: str, fresh: bool = False
) -> Run:
    """Measure until the study is decided or a budget is spent, going on where an earlier run of the very same
    stopped.

    ``named`` is how the person named the study. The run that comes back says why it stopped. Raises RequestError
    where the same run is going on elsewhere or the kernel does not boot, RunError where measuring failed; what was
    measured is in the store in any case.
    """
    remove_leftovers(means.home)
    study = experiment.resolved.study
    seed = study.design.seed
    what = f"the study {study.name}"
    with (
        only_one(means.home.state / lock_name(experiment.fingerprint, seed), what),
        store.reserved(experiment.fingerprint, seed, what),
    ):
        store.require_sound()
        kept = None if fresh else store.latest_run(experiment.fingerprint, seed)
        document = experiment.resolved.model_dump_json()
        if kept is not None:
            document = document if experiment.resolver is None else kept.resolved  # A search has more of it by now.
            run = store.go_on(kept, named=named, resolved=document)
        else:
            run = store.new_run(
                study=study.name,
                fingerprint=experiment.fingerprint,
                seed=seed,
                ajuste=ajuste_version(),
                named=named,
                resolved=document,
                environment=_surroundings(),
            )
        try:
            stop = _measure(experiment, run, store, watcher, means)
        except BaseException:
            store.forget_if_empty(run)
            raise
        store.stop_run(run, stop.why, stop.words)
        return store.find_run(run.id)


def _surroundings() -> dict[str, Any]:
    """What this machine is, in short and in full."""
    inventory = take_inventory()
    return {"this machine": summary_of(inventory), "inventory": inventory.model_dump(mode="json")}


def _measure(experiment: Experiment, run: Run, store: Store, watcher: Watcher, means: RunOptions) -> Stop:
    environment: dict[str, Any] = dict(run.environment)

    def ready(machine: Machine, target: Executor) -> None:
        environment[machine.name] = target.environment
        if isinstance(target, Benches):
            environment["machines"] = {**environment.get("machines", {}), **target.machines}
        store.set_environment(run, environment)

    def proved(machine: Machine) -> Machine:
        if (proof := _proof(experiment, machine, means)) is not None:
            environment[PROOFS] = {**environment.get(PROOFS, {}), machine.name: proof.model_dump(mode="json")}
            store.set_environment(run, environment)
        return machine

    if KERNEL_OPTIONS not in environment and (options := _kernel_options(experiment, means)):
        environment[KERNEL_OPTIONS] = options
        store.set_environment(run, environment)
    first = keeper(means.home, run.id, experiment.resolved.writes, catalogue())
    with ExitStack() as stack:
        connection = stack.enter_context(Connection(means.cluster, means.home, means.say)) if means.cluster else None
        targets = stack.enter_context(
            Executors(lambda machine: open_target(experiment, proved(machine), means, connection, first), ready)
        )
        stack.callback(_say_what_came_up, targets, environment, ready)
        if experiment.resolver is not None:
            from ajuste.run.search import SearchRunner

            return SearchRunner(experiment.resolved, run, store, targets, watcher, experiment.resolver).carry_out()
        stop = Runner(experiment.resolved, run, store, targets, watcher).carry_out()
        alone = means.cluster is None or experiment.resolved.study.target.kind != "host"
        if experiment.resolved.study.analysis.explain and stop.why != "failed" and alone:
            record_decisive(run, store, targets, means.say)
        return stop


def _say_what_came_up(
    targets: Executors, environment: Mapping[str, Any], ready: Callable[[Machine, Executor], None]
) -> None:
    """Keep what targets found out about themselves after they had become ready."""
    for machine, target in targets.entered.items():
        if NOTES in target.environment and environment.get(machine.name) != target.environment:
            ready(machine, target)


def _kernel_options(experiment: Experiment, means: RunOptions) -> dict[str, Any]:
    """In which options the kernels of a study differ, if it compares any."""
    study = experiment.resolved.study
    compared = next((factor for factor in study.factors if factor.name == KERNEL_FACTOR), None)
    if compared is None or study.target.kind == "host" or len(experiment.images) < 2:
        return {}
    from ajuste.kernel.difference.named import compared_options

    found = compared_options(compared.baseline_level, experiment.images, means.home, means.say)
    return {spec: options.model_dump(mode="json") for spec, options in found.items()}


def _proof(experiment: Experiment, machine: Machine, means: RunOptions) -> Proof | None:
    """Evidence that the kernel is what it is taken for, if the study takes it for anything. Raises RunError if not."""
    study = experiment.resolved.study
    if study.target.kind == "host":
        return None
    from ajuste.run.proofs.prove import claims_on, prove, require

    claims = claims_on(study, machine.kernel, experiment.images)
    if not claims:
        return None
    arguments = (*study.target.kernel_arguments, *machine.arguments)
    proof = prove(experiment.images[machine.kernel], claims, means.home, means.say, arguments)
    require(proof)
    return proof


def record(run: Run, configuration: str, store: Store, catalogue: Catalogue, means: RunOptions, *, fresh: bool) -> None:
    """Record a trial of ``configuration`` and one of the baseline, on the run's own machine, if the store does not have
    them or they are to be made ``fresh``.

    Raises RequestError where the run's kernel does not boot or its programs are gone, RunError where the machine was
    lost.
    """
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    names = to_record(run, configuration, store, fresh=fresh)
    if not names:
        return
    experiment = prepare_resolved(resolved, catalogue, means)
    first = keeper(means.home, run.id, resolved.writes, catalogue)
    with Executors(lambda machine: open_target(experiment, machine, means, first=first), lambda *_: None) as targets:
        record_trials(run, names, store, targets, means.say)


def open_target(
    experiment: Experiment,
    machine: Machine,
    means: RunOptions,
    connection: Connection | None = None,
    first: Callable[[Executor], None] = lambda _: None,
) -> Executor:
    """The target of the experiment for ``machine``, not yet entered; on a cluster if there is a ``connection``.

    ``first`` is called with this machine before anything on it is changed.
    """
    resolved, table = experiment.resolved, experiment.resolved.study.target
    image = experiment.images.get(machine.kernel)
    if table.kind == "host":
        if connection is not None:
            return _benches(experiment, means, connection)
        return prepared_for(resolved, HostExecutor(means.home, means.say), first)
    from ajuste.executor.cluster.cluster import ClusterExecutor
    from ajuste.executor.cluster.job import pack_guest
    from ajuste.executor.guest.guest import GuestExecutor, GuestOptions

    assert image is not None, "prepared with the kernels of the study"
    files = GuestFiles(
        programs=tuple(map(Path, resolved.programs)),
        study_files={name: Path(path) for name, path in resolved.files.items()},
        modules=table.modules,
        own_modules=experiment.modules.get(machine, ()),
        schedulers=resolved.schedulers_on(machine),
        packages=experiment.packages,
    )
    guest = GuestOptions(
        clock=table.clock,
        cpus=table.cpus,
        memory_mib=table.memory_mib,
        seed=resolved.study.design.seed,
        instruction_ns=table.instruction_ns,
        home=means.home,
        snapshot=means.snapshot,
        kernel_arguments=(*table.kernel_arguments, *machine.arguments),
        nodes=table.nodes,
        say=means.say,
    )
    if connection is not None:
        own = partial(GuestExecutor, image, files=files, jobs=means.jobs, **guest)
        # Workers that this process has started are as good as itself: nobody else can reach them.
        return ClusterExecutor(
            connection,
            lambda directory: pack_guest(image, files, guest, directory),
            means.say,
            own if connection.cluster.channel else None,
        )
    return GuestExecutor(image, files=files, jobs=means.jobs, **guest)


def _benches(experiment: Experiment, means: RunOptions, connection: Connection) -> Executor:
    from ajuste.executor.cluster.benches import BenchExecutor
    from ajuste.executor.cluster.job import HostJob

    study = experiment.resolved.study
    parcel = HostJob(
        ajuste=ajuste_version(),
        agent=sha256_of(native_program(AGENT)),
        study=study.model_dump_json(),
        directory=str(study_directory(study).absolute()),
        accept_risk=means.accept_risk,
    )
    return BenchExecutor(connection, parcel, experiment.resolved, means.say)


def _taken_along(resolved: ResolvedStudy) -> tuple[str, ...]:
    return (*resolved.programs, *resolved.files.values())
