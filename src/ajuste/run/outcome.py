"""The outcome of a run: its results, computed from the store."""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ajuste.analysis.condition import renamed
from ajuste.design.stopping import Why
from ajuste.executor.executor import LEFT_OUT, NOTES
from ajuste.kernel.spec import (
    BUILT,
    CONFIGS,
    KernelToBuild,
    OwnKernel,
    PackagedKernel,
    is_to_build,
    parse_source,
    parse_spec,
    read_options,
)
from ajuste.machine.home import Home, as_root
from ajuste.model.caller import calling_ids
from ajuste.model.error import RequestError, RunError
from ajuste.model.gate import SHORT
from ajuste.model.plan import Command
from ajuste.model.relevance import read_no_chance
from ajuste.model.results import Continuation, Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of, split_at
from ajuste.run.facets import MeasuredRun, with_facets
from ajuste.study.overrides import with_kernels
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste.study.schema import ExpectedFigure, ExpectTable, PatchTable, SchedulerTable, Study

if TYPE_CHECKING:
    from ajuste.kernel.building.built import Provenance
    from ajuste.store.record import KeptRecord
    from ajuste.store.store import Run, Store

UNFINISHED: Final = "the run is not finished; run the same `ajuste run` command to resume"
LIVE_UNFINISHED: Final = "the run is not finished; give the same `ajuste live` command again to resume"
# Commands with an option for the measured kernels; other commands derive theirs from other options.
_WITH_KERNELS: Final = frozenset({"compare", "ablate", "suite", "tune"})
_STOPPED: dict[str, Why] = {
    "decided": "decided",
    "budget": "budget",
    "time": "time",
    "irrelevant": "irrelevant",
    "failed": "failed",
}


def results_of(run: Run, store: Store) -> Results:
    """Return the results of ``run``. Those of an ended run are stored, and stay as they were under other versions of
    Ajuste. Imported results are marked, and have no commands of strangers.
    """
    results = original_results(run, store)
    if not run.imported:
        return results
    again = [f"ajuste verify {run.id}"] if results.clock == "virtual" else []
    return results.model_copy(update={"imported": True, "reproduce": tuple(again), "continuation": None})


def original_results(run: Run, store: Store) -> Results:
    """Return the results of ``run``, without the marks of an import."""
    if (stored := store.results(run)) is not None:
        with suppress(ValueError):  # Another version of Ajuste may have written them.
            return Results.model_validate_json(stored)
    results = _computed(run, store)
    if run.stopped:
        with suppress(RunError):  # A read-only store is shown as well.
            store.keep_results(run, results.answer, results.model_dump_json())
    return results


def _computed(run: Run, store: Store) -> Results:
    from ajuste.store.record import KeptRecord  # stored results need no statistics

    resolved = ResolvedStudy.model_validate_json(run.resolved)
    record = KeptRecord(run, store)
    results = _assembler(resolved)(
        resolved,
        record,
        run=run.id,
        stopped=_STOPPED.get(run.stopped, "interrupted"),
        stopped_because=run.stopped_because or (LIVE_UNFINISHED if resolved.live else UNFINISHED),
        environment={**run.environment, **_commands(resolved)},
        reproduce=[_with_root(command, resolved) for command in _reproduce(run, resolved)],
        notes=_notes(run),
        created=run.created,
        ajuste=run.ajuste,
        **({"machines": machines} if (machines := store.machines(run)) else {}),
        **({"no_chance": no_chance} if (no_chance := read_no_chance(run.environment)) else {}),
    )
    if left_out := _left_out(run.environment):
        results = results.model_copy(update={"notes": (*results.notes, *left_out)})
    results = results.model_copy(update={"continuation": _continuation(record, resolved, results)})
    return with_facets(MeasuredRun(run, store, record, resolved, results))


# Command lines beyond that many say nothing to a reader.
_MOST_COMMANDS: Final = 8


def _commands(resolved: ResolvedStudy) -> dict[str, Any]:
    # The command line of the workload with its background load, by configuration where they differ.
    lines = {each.configuration.name: _command_line(each) for each in resolved.configurations}
    different = set(lines.values())
    if not 1 <= len(different) <= _MOST_COMMANDS:
        return {}
    return {"workload": different.pop() if len(different) == 1 else lines}


def _command_line(configuration: ResolvedConfiguration) -> str:
    def line(command: Command) -> str:
        attributes = ", ".join(
            f"{name} {value}" for name, value in command.attributes.model_dump(exclude_defaults=True).items()
        )
        return shlex.join((Path(command.argv[0]).name, *command.argv[1:])) + (f" ({attributes})" if attributes else "")

    beside = Counter(line(command) for command in configuration.background)
    loads = ", ".join(f"{count} x {text}" if count > 1 else text for text, count in beside.items())
    return line(configuration.workload) + (f"; beside it {loads}" if loads else "")


def _left_out(environment: Mapping[str, Any]) -> tuple[str, ...]:
    # Untrusted workers, whose trials were dropped.
    machines = [machine for machine in environment.values() if isinstance(machine, dict)]
    reasons = [str(machine[LEFT_OUT]) for machine in machines if LEFT_OUT in machine]
    return tuple(f"A worker was left out: {reason}." for reason in dict.fromkeys(reasons))


def _assembler(resolved: ResolvedStudy) -> Callable[..., Results]:
    # Imported late: the analysis of a search takes long to load.
    if resolved.live is not None:
        from ajuste.analysis.live import assemble_live

        return assemble_live
    if resolved.search is None:
        from ajuste.analysis.results import assemble

        return assemble
    from ajuste.analysis.search.results import assemble_search

    return assemble_search


def _notes(run: Run) -> list[str]:
    places = [place for place in run.environment.values() if isinstance(place, dict)]
    return [note for place in places if isinstance(note := place.get(NOTES), str)]


def _reproduce(run: Run, resolved: ResolvedStudy) -> list[str]:
    # A series of kernels moves on, so the exact release is named. Runs without a study file are named by their command.
    study, named = resolved.study, shlex.split(run.named)
    if named[:1] == ["ajuste"]:
        if named[1] not in _WITH_KERNELS:
            return [run.named]
        if named[1] != "tune":
            again = _compared_again([word for word in named if word != "--fresh"], run, resolved)
            # Without --fresh an equal run under the virtual clock is shown, not measured.
            fresh = ["--fresh"] if study.target.clock == "virtual" else []
            return [shlex.join([*again[:2], *fresh, *again[2:]])]
        words = [word for word in named if word != "--fresh"]
        return [shlex.join([*(_compared_again(words, run, resolved) if study.target.kernel else words), "--fresh"])]
    command = ["ajuste", "run", *named, "--seed", str(study.design.seed), "--fresh"]
    if study.target.kernel and "--kernel" not in named:
        command[3:3] = ["--kernel", _exact(study.target.kernel, run)]
    elif "--kernel" in named:
        command = _compared_again(command, run, resolved)
    if study.target.on_host:
        command[3:3] = ["--target", "host"]
    return [shlex.join(command)]


_TO_FIX: Final = frozenset({"worsens", "differs"})


def reproducer(
    run: Run, results: Results, home: Home, within: float | None = None, *, fixed: bool = False
) -> tuple[Study, tuple[str, ...]]:
    """Return the study of ``run`` on its exact kernels, with their patches and the expected results, and sentences on
    what it cannot expect or contain.

    ``within`` is the allowed deviation of deciding metrics' means, as a share. With ``fixed`` the study expects what a
    fix brings instead: no failed trial, and of what worsens or differs at most half of the difference. Raises
    RequestError if other machines cannot measure it, or if there is nothing to fix.
    """
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    study = resolved.study
    if study.target.on_host:
        raise RequestError(f"run {run.id} measured this machine, which others do not have; expected a run of guests")
    if not run.stopped:
        raise RequestError(f"run {run.id} is not finished", hint="finish it with its own command")
    figures = tuple(
        _half_of_difference(results, verdict)
        if fixed and verdict.verdict in _TO_FIX
        else ExpectedFigure(
            metric=verdict.metric,
            configuration=verdict.configuration,
            verdict=(verdict.verdict,),
            **_limits(results, verdict, within),
        )
        for verdict in results.verdicts
        if verdict.deciding
    )
    if (
        fixed
        and not results.tally.failed
        and not any(verdict.verdict in _TO_FIX for verdict in results.verdicts if verdict.deciding)
    ):
        raise RequestError(
            f"run {run.id} has nothing to fix: no trial failed, and nothing worsens or differs",
            hint="omit --fixed to expect what came out",
        )
    varied = {spec for factor in study.factors for spec in factor.kernels}
    parts = {spec: _contained(spec, run, home) for spec in study.kernels}
    names = {spec: part.spec for spec, part in parts.items()}
    inexact = next((spec for spec in varied if not parts[spec].exact), None)
    if inexact is not None:
        raise RequestError(
            f"run {run.id} compares {inexact}, which is not one kernel for ever; expected packages by their release",
            hint="measure with exact kernels, as `ajuste kernel list` names them: --kernel debian:6.1.0-50-amd64,…",
        )
    notes = [note for part in parts.values() for note in part.notes]
    notes += [
        f"{spec} is a level, and is called otherwise where it is built: the digest is not expected"
        for spec in sorted(varied)
        if parts[spec].called not in ("", spec)
    ]
    included = {scheduler.name for scheduler in study.schedulers}
    named = {configuration.scheduler for configuration in resolved.configurations}
    elsewhere = {
        scheduler.name: scheduler
        for part in parts.values()
        for scheduler in part.schedulers
        if scheduler.name in named - included
    }
    lacking = [*elsewhere, *(scheduler.name for scheduler in study.schedulers if scheduler.build is None)]
    notes += [f"{name} is not contained: ajuste run FILE --scheduler DIR/{name}" for name in lacking]
    exact = study.target.clock == "virtual" and all(part.exact for part in parts.values()) and not notes
    if run.stopped == "failed":
        notes.append(f"{count_of(results.tally.failed, 'trial')} failed; the file expects none, and fails until then")
    fixed = fixed or run.stopped == "failed"
    notes += [
        f"{verdict.metric} of {verdict.configuration} is undecided, so the file tests little: measure more blocks first"
        for verdict in results.verdicts
        if verdict.deciding and verdict.verdict == "undecided" and run.stopped != "failed"
    ]
    expect = ExpectTable(
        digest=results.digest if exact and not fixed else "",
        stalls=0 if fixed else results.tally.failed,
        kernels=tuple(dict.fromkeys(part.sha256 for part in parts.values() if part.sha256)),
        ajuste=results.ajuste if exact else "",
        figures=figures,
    )
    patches = {patch.name: patch for part in parts.values() for patch in part.patches}
    # A program that is not built is a file of this machine only.
    own_schedulers = (
        scheduler if scheduler.build is not None else scheduler.model_copy(update={"program": None})
        for scheduler in study.schedulers
    )
    schedulers = [*own_schedulers, *elsewhere.values()]
    contained = {"expect": renamed(expect, names), "patches": tuple(patches.values()), "schedulers": tuple(schedulers)}
    return with_kernels(study, names).model_copy(update=contained), tuple(notes)


@dataclass(frozen=True)
class _ContainedKernel:
    # A kernel in a study file for others. `exact`: the spec always names this one kernel. A kernel that they build gets
    # the name `called` and must have the hash `sha256`; its `schedulers` are not part of the build.
    spec: str
    exact: bool
    called: str = ""
    sha256: str = ""
    patches: tuple[PatchTable, ...] = ()
    schedulers: tuple[SchedulerTable, ...] = ()
    notes: tuple[str, ...] = ()


def _contained(spec: str, run: Run, home: Home) -> _ContainedKernel:
    kernel = parse_spec(spec)
    if isinstance(kernel, PackagedKernel):
        exact = spec if kernel.exact else _exact(spec, run)
        named = parse_spec(exact)
        return _ContainedKernel(exact, exact=isinstance(named, PackagedKernel) and named.exact)
    if not isinstance(kernel, OwnKernel):
        raise RequestError(
            f"run {run.id} measured {spec}, a file of this machine; expected a package, or a kernel that Ajuste built",
            hint="build it with ajuste kernel build",
        )
    from ajuste.kernel.building.build import default_name  # few runs are of built kernels
    from ajuste.kernel.building.built import find_built

    built = find_built(kernel.name, home)
    origin, measured = built.provenance, run.environment.get(spec, {}).get("kernel package", "")
    if measured and Path(measured).parent.name != built.key:
        raise RequestError(
            f"{spec} is another kernel by now than run {run.id} measured", hint="run the study again, then reproduce it"
        )
    if origin.config not in CONFIGS:
        raise RequestError(f"{spec} was built with --config {origin.config}, a file; expected {', '.join(CONFIGS)}")
    source, notes = _source(origin, spec)
    patches = tuple(
        _patch(number, used.name, content)
        for number, (used, content) in enumerate(zip(origin.patches, built.patches, strict=True))
    )
    settings = tuple(f"{name}={value}" for name, value in origin.settings.items())
    wanted = KernelToBuild(
        source=parse_source(source),
        config=origin.config,
        options=read_options(settings),
        patches=tuple(Path(patch.name) for patch in patches),
    )
    version = re.match(r"[0-9.]*[0-9]", built.image.release)
    called = default_name(
        version[0] if version else "", origin.config, origin.settings, [patch.name for patch in patches]
    )
    return _ContainedKernel(
        str(wanted),
        exact=True,
        called=f"{BUILT}:{called}",
        sha256=built.image.sha256,
        patches=patches,
        schedulers=tuple(
            SchedulerTable(name=scheduler.name, sha256=scheduler.sha256) for scheduler in origin.schedulers
        ),
        notes=notes,
    )


def _source(origin: Provenance, spec: str) -> tuple[str, tuple[str, ...]]:
    # Returns the permanent name of a kernel's source, and notes on what others must have at hand.
    from ajuste.kernel.building.sources import revision_source, source_option

    source = source_option(origin.source)
    kind, _, rest = source.partition(":")
    if kind != "git":
        if not isinstance(parse_source(source), PackagedKernel):
            raise RequestError(
                f"{spec} was built from {source}, which is not one source for ever; expected a package or a commit",
                hint="build git:DIR@REVISION after committing the changes",
            )
        return source, ()
    directory, _, revision = rest.rpartition("@")
    current = revision_source(Path(directory), revision)
    if current.digest != origin.source_digest:
        raise RequestError(
            f"{spec} was built from another commit than {revision} of {directory} is now",
            hint="build it from the commit itself: git:DIR@COMMIT",
        )
    return f"git:{directory}@{current.commit}", (
        f"The commit {current.commit[:SHORT]} must be at hand: write where your clone is instead of {directory}.",
    )


def _patch(number: int, name: str, content: bytes) -> PatchTable:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(f"the patch {name} is not UTF-8, which a study file requires") from None
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip(".-")[:100] or f"{number + 1}.patch"
    return PatchTable(name=plain, sha256=hashlib.sha256(content).hexdigest(), text=text)


def _limits(results: Results, verdict: Verdict, within: float | None) -> dict[str, float]:
    configuration = next(entry for entry in results.configurations if entry.name == verdict.configuration)
    if within is None or verdict.metric not in configuration.metrics:
        return {}
    mean = configuration.metrics[verdict.metric].mean
    return {"least": mean - within * abs(mean), "most": mean + within * abs(mean)}


def _half_of_difference(results: Results, verdict: Verdict) -> ExpectedFigure:
    # As in a bisection: what a fix leaves of the difference is smaller than that.
    compared = next(measured for measured in results.configurations if measured.name == verdict.configuration)
    baseline = next(measured for measured in results.configurations if measured.baseline)
    bad, good = (measured.metrics[verdict.metric].mean for measured in (compared, baseline))
    half = math.sqrt(bad * good) if verdict.scale == "ratio" and min(bad, good) > 0 else (bad + good) / 2
    return ExpectedFigure(
        metric=verdict.metric, configuration=verdict.configuration, **{"most" if bad > good else "least": half}
    )


def _with_root(command: str, resolved: ResolvedStudy) -> str:
    # Changing this machine needs root.
    changes = bool(resolved.writes) or any(configuration.scratch for configuration in resolved.configurations)
    if not resolved.study.target.on_host or not (calling_ids() if os.geteuid() == 0 else changes):
        return command
    # In a library or notebook sys.argv has another program.
    return as_root(shlex.split(command)[1:]) if Path(sys.argv[0]).name == "ajuste" else f"sudo {command}"


# Factor of the suggested budget over the blocks likely needed.
_GROWN: Final = 1.2
# Number of last blocks that estimate the seconds of a block.
_LATELY: Final = 8
_BUDGETS: Final = ("--blocks", "--max-time")


def _continuation(record: KeptRecord, resolved: ResolvedStudy, results: Results) -> Continuation | None:
    # The typed words, not the exact kernels: the run must be resumed as it was begun.
    run = record.run
    open_verdicts = [
        verdict
        for verdict in (*results.verdicts, *results.effects, *results.lines)
        if verdict.deciding and verdict.is_open
    ]
    stopped = run.stopped or "interrupted"
    if not open_verdicts or stopped not in ("budget", "time", "interrupted") or resolved.search or resolved.live:
        return None
    words = _typed(run, resolved)
    if not words:
        return None
    each = _seconds_per_block(record, resolved)
    if stopped == "interrupted":
        return Continuation(command=_with_root(shlex.join(words), resolved), seconds_per_block=each)
    known = [verdict.more_blocks for verdict in open_verdicts if verdict.more_blocks]
    more = max(known) if len(known) == len(open_verdicts) else max(results.blocks, FEWEST_MORE)
    budget = resolved.study.budget
    blocks = budget.max_blocks if stopped == "budget" else results.blocks
    enough = _round_number(blocks + _GROWN * more)
    options: list[str] = []
    if enough > budget.max_blocks:
        options += ["--blocks", f"{budget.min_blocks}..{enough}"]
    minutes = enough * each / 60 if each else 2 * budget.max_minutes
    if stopped == "time":
        # Only a larger budget resumes a run that ended.
        minutes = max(minutes, budget.max_minutes + more * (each or 0) / 60, 1.01 * budget.max_minutes)
    if minutes > budget.max_minutes:
        options += ["--max-time", _duration(60 * minutes)]
    end = words.index("--") if "--" in words else len(words)
    unlimited = _without_options(words[:end])
    at = 2 if words[1] != "run" else 3
    command = shlex.join([*unlimited[:at], *options, *unlimited[at:], *words[end:]])
    return Continuation(command=_with_root(command, resolved), seconds_per_block=each)


FEWEST_MORE: Final = 4


def _typed(run: Run, resolved: ResolvedStudy) -> list[str]:
    # Empty for a run that is part of something else, such as a suite.
    named, target = shlex.split(run.named), resolved.study.target
    if named[:1] == ["ajuste"]:
        return [word for word in named if word != "--fresh"] if named[1] in ("compare", "ablate") else []
    words = ["ajuste", "run", *named, "--seed", str(resolved.study.design.seed)]
    if target.kernel and "--kernel" not in named:
        words += ["--kernel", target.kernel]
    return [*words, "--target", "host"] if target.on_host else words


def _without_options(words: Sequence[str]) -> list[str]:
    remaining: list[str] = []
    skip = False
    for word in words:
        if not skip and word.partition("=")[0] not in _BUDGETS:
            remaining.append(word)
        skip = not skip and word in _BUDGETS
    return remaining


def _seconds_per_block(record: KeptRecord, resolved: ResolvedStudy) -> float | None:
    from ajuste.run.schedule import Spans

    blocks = record.measurements.block.tolist()
    last = sorted({block for block in blocks if block >= resolved.study.design.warm_up})[-_LATELY:]
    trials = record.whole([row for row, block in enumerate(blocks) if block in last])
    spans = Spans()
    for trial in trials:
        if trial.started:  # Trials of imported outputs may have no time.
            spans.add(trial)
    return 60 * spans.minutes / len(last) if last else None


def _round_number(value: float) -> int:
    # Round up to two digits.
    step = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return int(math.ceil(value / step) * step)


def _duration(seconds: float) -> str:
    # Round up, in the form of --max-time.
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)}{unit}"
    return f"{math.ceil(seconds)}s"


def _compared_again(words: list[str], run: Run, resolved: ResolvedStudy) -> list[str]:
    if resolved.study.target.on_host:
        return words
    kernels = resolved.study.kernels
    for place, word in enumerate(words):
        if word == "--":
            break
        if word.partition("=")[0] == "--source":  # The kernels are built from it.
            return words
        if word == "--kernel":
            return [*words[: place + 1], _exactly(words[place + 1], kernels, run), *words[place + 2 :]]
        if word.startswith("--kernel="):
            exact = _exactly(word.removeprefix("--kernel="), kernels, run)
            return [*words[:place], f"--kernel={exact}", *words[place + 1 :]]
    return [*words[:2], "--kernel", ",".join(_exact(spec, run) for spec in kernels), *words[2:]]


def _exactly(typed: str, kernels: Sequence[str], run: Run) -> str:
    # A kernel built for the run stays as typed, so that it is built again.
    texts = [text.strip() for text in split_at(",", typed)]
    if len(texts) != len(kernels):
        texts = list(kernels)
    pairs = zip(texts, kernels, strict=True)
    return ",".join(text if is_to_build(text) else _exact(spec, run) for text, spec in pairs)


def _exact(spec: str, run: Run) -> str:
    source, _, _ = spec.partition(":")
    release = run.environment.get(spec, {}).get("kernel")
    return f"{source}:{release}" if release and source not in ("path", BUILT) else spec
