"""Recordings: extra trials that show what the scheduler does. No verdict uses them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import TrialRequest, Untrusted, done_by
from ajuste.executor.host.journals import keeper
from ajuste.kernel.spec import kernel_kind
from ajuste.model.capability import Asked
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.event import Exited, Failed, Traced
from ajuste.model.explanation import Recorded
from ajuste.model.plan import Trace
from ajuste.model.trial import Observation
from ajuste.model.wording import Say
from ajuste.report.format import study_settings
from ajuste.run.outcome import results_of
from ajuste.run.runner import Executors
from ajuste.run.testbed import RunOptions, testbed_for
from ajuste.study.named import require_allowed_run
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.site import GUEST_DIRECTORY, normal_name
from ajuste_guest.analysis.costs import entry_costs, function_costs
from ajuste_guest.analysis.explanation import deciding_configuration, typical_block

if TYPE_CHECKING:
    from ajuste.model.results import Results
    from ajuste.store.store import Run, Store

BUFFER_BYTES: Final = 128 << 20
"""Maximum size of the kernel's trace buffers: some million switches."""

NEEDS_ROOT: Final = "recording the scheduler of this machine requires root"
"""Tracefs is root's (Documentation/trace/ftrace.rst)."""

_Costs: TypeAlias = dict[str, Any]
"""The fields of ``Recorded`` that are about costs."""


def record_decisive(run: Run, store: Store, executors: Executors, say: Say) -> None:
    """Record the baseline and the configuration to explain, unless the store has them."""
    results = results_of(run, store)
    configuration = deciding_configuration(results)
    if configuration is not None:
        record_trials(run, to_record(run, configuration, store, results=results), store, executors, say)


def record(
    run: Run,
    configuration: str,
    store: Store,
    catalogue: Catalogue,
    options: RunOptions,
    *,
    fresh: bool,
    decisions: bool = False,
) -> None:
    """Record a trial of ``configuration`` and one of the baseline on the run's machine, unless they are stored; with
    ``fresh`` again, with ``decisions`` also the scheduler's decisions.

    Raises RequestError if the run's kernel does not boot or its programs are gone, RunError if the machine was lost.
    """
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    if run.imported:
        require_allowed_run(resolved, Asked("bundle"), catalogue, kernel_kind)
    wanted = to_record(run, configuration, store, fresh=fresh)
    followed = to_follow(run, configuration, store, fresh=fresh or bool(wanted.names)) if decisions else ()
    if not wanted.names and not followed:
        return
    bed = testbed_for(resolved.study, options)
    experiment = bed.prepared(resolved, catalogue)
    first = keeper(options.home, run.id, resolved.writes, catalogue)
    with Executors(lambda machine: bed.executor(experiment, machine, first), lambda *_: None) as executors:
        record_trials(run, wanted, store, executors, options.say)
        follow_decisions(run, followed, store, executors, options.say)


class Spent(NamedTuple):
    """The ``instructions`` of a recorded trial's workload; by function without what it calls, and by system call,
    exception and interrupt with all that it causes.
    """

    instructions: int
    functions: dict[str, int]
    calls: dict[str, int]


def spent(recorded: Recorded | None) -> Spent | None:
    """Return what the workload's instructions were spent on; None where they were not counted."""
    if recorded is None or recorded.costs is None:
        return None
    workload = tuple(part for part in recorded.costs.parts if part.role == "workload")
    costs = recorded.costs.model_copy(update={"parts": workload})
    functions: dict[str, int] = {}
    for function, cost in function_costs(costs).items():
        functions[function.name] = functions.get(function.name, 0) + cost.itself
    calls = {name: cost.caused for name, cost in entry_costs(costs).items()}
    return Spent(costs.instructions, functions, calls)


class ToRecord(NamedTuple):
    """The configurations to record, each with the seed of the same ``block``."""

    names: tuple[str, ...]
    block: int


def to_record(
    run: Run, configuration: str, store: Store, *, fresh: bool = False, results: Results | None = None
) -> ToRecord:
    """Return the baseline and ``configuration``, without those recorded already unless ``fresh``. The block is that
    whose pair of trials is nearest to the effect in the run's ``results``, if they are known already.
    """
    study = ResolvedStudy.model_validate_json(run.resolved)
    block = typical_block(results or results_of(run, store), store.measurements(run), configuration)
    block = study.study.design.warm_up if block is None else block
    stored = {} if fresh else store.recorded(run)
    names = (study.baseline, configuration)
    return ToRecord(tuple(name for name in names if not _is_whole(stored.get(name), study, block)), block)


def _is_whole(recorded: Recorded | None, study: ResolvedStudy, block: int) -> bool:
    # A recording of an earlier Ajuste has no costs, none of a modelled machine, or is of the first block.
    if recorded is None or recorded.recording is None or recorded.block != block:
        return False
    if study.study.target.clock != "virtual" or recorded.costs_problem:
        return True
    return recorded.costs is not None and recorded.costs.machine == study.modelled


def record_trials(run: Run, wanted: ToRecord, store: Store, executors: Executors, say: Say) -> None:
    """Record a trial of each configuration, and store it. Under the virtual clock, also count a trial without
    recording. Guests of this machine do so side by side.
    """
    study = ResolvedStudy.model_validate_json(run.resolved)
    settings = study_settings(study)
    is_counted = study.study.target.clock == "virtual"
    may = not study.study.target.on_host or os.geteuid() == 0
    requests = {name: executors.trial(study, name, wanted.block) for name in wanted.names}

    def record(name: str) -> Iterator[tuple[str, Recorded | _Costs]]:
        say(f"recording what the scheduler does under {settings[name]}")
        request = requests[name]._replace(trace=Trace(buffer_bytes=BUFFER_BYTES))
        yield name, _recorded(request, _carried_out(request) if may else Observation(problem=NEEDS_ROOT))

    def count(name: str) -> Iterator[tuple[str, Recorded | _Costs]]:
        say(f"counting what {settings[name]} costs")
        yield name, _costs(requests[name])

    # What is counted takes longest.
    works = [count(name) for name in requests if is_counted] + [record(name) for name in requests]
    used = {request.executor for request in requests.values()}
    # A cluster's coordinator is asked for one thing at a time.
    threads = min((1 if executor.whole_blocks else executor.parallel for executor in used), default=1)
    costs: dict[str, _Costs] = {}
    recorded: dict[str, Recorded] = {}
    for name, part in done_by(works, threads, used):
        if isinstance(part, Recorded):
            recorded[name] = part
        else:
            costs[name] = part
        if name in recorded and (name in costs or not is_counted):
            store.keep_recorded(run, recorded[name].model_copy(update=costs.get(name, {})))


def require_followable(run: Run) -> None:
    """Raise RequestError for a run whose scheduling decisions cannot be followed."""
    study = ResolvedStudy.model_validate_json(run.resolved)
    target = study.study.target
    if target.on_host or target.clock == "wall":
        place = "this machine" if target.on_host else "a guest with the wall clock"
        raise RequestError(
            f"--divergence: {place} never decides the same twice; decisions are followed under the virtual clock",
            hint='use a study with kind = "vm" and clock = "virtual" in [target]',
        )
    if len(study.names) < 2:
        raise RequestError(
            f"--divergence: the run has one configuration, {study.baseline}; expected at least two",
            hint="add a level to a factor, and run the study again",
        )


def to_follow(run: Run, configuration: str, store: Store, *, fresh: bool = False) -> tuple[str, ...]:
    """Return the baseline and ``configuration``, without those followed already unless ``fresh``."""
    study = ResolvedStudy.model_validate_json(run.resolved)
    stored = {} if fresh else store.recorded(run)
    pair = [stored.get(name) for name in (study.baseline, configuration)]
    if len({recording.seed for recording in pair if recording is not None and recording.decisions is not None}) > 1:
        return study.baseline, configuration
    return tuple(
        name
        for name, recording in zip((study.baseline, configuration), pair, strict=True)
        if recording is None or recording.decisions is None
    )


def follow_decisions(run: Run, names: Sequence[str], store: Store, executors: Executors, say: Say) -> None:
    """Follow a trial of each recorded configuration, and store the scheduler's decisions."""
    study = ResolvedStudy.model_validate_json(run.resolved)
    for name in names:
        say(f"following what the scheduler decides under {name}")
        recorded = store.recorded(run)[name]
        request = executors.trial(study, name, recorded.block)
        store.keep_recorded(run, recorded.model_copy(update=_decisions(request)))


def _decisions(request: TrialRequest) -> dict[str, Any]:
    executor, named, problem = request.executor, None, "nothing was followed"
    try:
        observed = executor.count(request.plan(), "decisions")
        if observed.decisions is not None and observed.costs is not None:
            named = executor.named_decisions(observed.costs, observed.decisions)
        problem = observed.problem or problem
    except AjusteError as error:
        problem = error.message
    return {"decisions": named, "decisions_problem": "" if named else problem}


def _costs(request: TrialRequest) -> _Costs:
    executor = request.executor
    try:
        observed = executor.count(request.plan(), "functions", request.study.modelled)
        if observed.costs is None:
            return {"costs_problem": observed.problem or "nothing was counted"}
        return {"costs": executor.named(observed.costs).with_files(lambda path: _common_path(path, request.study))}
    except AjusteError as error:
        return {"costs_problem": error.message}


def _common_path(path: str, study: ResolvedStudy) -> str:
    # A variant's directory is left out of the path, so that variants can be compared function by function.
    for variant in study.study.workload.variants:
        directory = f"{GUEST_DIRECTORY}/{normal_name(variant.directory)}/" if variant.directory else ""
        if directory and path.startswith(directory):
            return f"{GUEST_DIRECTORY}/{path.removeprefix(directory)}"
    return path


def _carried_out(request: TrialRequest) -> Observation:
    while True:
        try:
            ((done,),) = request.executor.carry_out([request], lambda _: None)
        except Untrusted:
            continue  # The next attempt goes to another worker.
        return done.observation


def _recorded(request: TrialRequest, observation: Observation) -> Recorded:
    # The observation comes from the guest and is not trusted: nothing in it may raise.
    exits = [event for event in observation.events if isinstance(event, Exited) and event.role == "workload"]
    traced = [event for event in observation.events if isinstance(event, Traced)]
    failed = [event.message for event in observation.events if isinstance(event, Failed)]
    problem = observation.problem or "; ".join(failed)
    if not problem and traced and traced[0].recording is None:
        problem = traced[0].not_supported or "the agent gave no reason"
    return Recorded(
        configuration=request.slot.configuration,
        block=request.slot.block,
        seed=request.slot.seed,
        kernel=request.executor.hello.kernel,
        wall_ns=exits[0].wall_ns if exits and 0 <= exits[0].wall_ns < 2**64 else None,
        recording=traced[0].recording if traced and not problem else None,
        problem=problem or ("" if traced else "nothing was recorded"),
    )
