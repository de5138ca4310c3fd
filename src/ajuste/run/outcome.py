"""The outcome of a run: its results, computed again from what the store has."""

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
from ajuste.machine.home import Home
from ajuste.machine.installation import as_root
from ajuste.model.boot import BOOTS, BootFindings, KeptBoots
from ajuste.model.caller import calling_ids
from ajuste.model.error import RequestError, RunError
from ajuste.model.gate import SHORT
from ajuste.model.plan import Command
from ajuste.model.relevance import read_no_chance
from ajuste.model.results import Continuation, Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of, split_at
from ajuste.study.overrides import with_kernels
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste.study.schema import ExpectedFigure, ExpectTable, PatchTable, SchedulerTable, Study

if TYPE_CHECKING:
    from ajuste.kernel.building.built import Provenance
    from ajuste.store.record import KeptRecord
    from ajuste.store.store import Run, Store

UNFINISHED: Final = "the run is not finished; run the same `ajuste run` command to resume"
LIVE_UNFINISHED: Final = "the run is not finished; give the same `ajuste live` command again to resume"
# Commands that take the very kernels that were measured; those of others follow from what they are given.
_WITH_KERNELS: Final = frozenset({"compare", "ablate", "suite", "tune"})
_STOPPED: dict[str, Why] = {
    "decided": "decided",
    "budget": "budget",
    "time": "time",
    "irrelevant": "irrelevant",
    "failed": "failed",
}


def results_of(run: Run, store: Store) -> Results:
    """Everything that is known of ``run``, as one document. Of a run that ended it is what was first said of it, also
    by an Ajuste that would say it otherwise now. One that was imported says so, and has no commands of strangers.
    """
    found = original_results(run, store)
    if not run.imported:
        return found
    again = [f"ajuste verify {run.id}"] if found.clock == "virtual" else []
    return found.model_copy(update={"imported": True, "reproduce": tuple(again), "continuation": None})


def original_results(run: Run, store: Store) -> Results:
    """What the one who measured ``run`` is shown of it."""
    if (kept := store.results(run)) is not None:
        with suppress(ValueError):  # Another Ajuste may have written it otherwise.
            return Results.model_validate_json(kept)
    results = _computed(run, store)
    if run.stopped:
        with suppress(RunError):  # A store that can only be read can be shown as well.
            store.keep_results(run, results.answer, results.model_dump_json())
    return results


def _computed(run: Run, store: Store) -> Results:
    from ajuste.store.record import KeptRecord  # what is kept is shown without any statistics

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
    if BOOTS in run.environment:
        results = results.model_copy(update={"boots": _boots(record, resolved)})
    results = results.model_copy(update={"continuation": _continuation(record, resolved, results)})
    recorded = store.recorded(run)
    if resolved.baseline not in recorded:
        return results
    from ajuste.analysis.explanation import explanations

    return results.model_copy(update={"explanations": explanations(results, recorded)})


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


def _boots(record: KeptRecord, resolved: ResolvedStudy) -> BootFindings:
    from ajuste.analysis.boots import boot_findings

    return boot_findings(resolved, record.measurements, KeptBoots.model_validate(record.run.environment[BOOTS]))


def _left_out(environment: Mapping[str, Any]) -> tuple[str, ...]:
    # Who gave what is not so, and whose trials were dropped.
    machines = [said for said in environment.values() if isinstance(said, dict)]
    found = [str(said[LEFT_OUT]) for said in machines if LEFT_OUT in said]
    return tuple(f"A worker was left out: {one}." for one in dict.fromkeys(found))


def _assembler(resolved: ResolvedStudy) -> Callable[..., Results]:
    # What makes the results. A search's needs much that takes long to load.
    if resolved.live is not None:
        from ajuste.analysis.live import assemble_live

        return assemble_live
    if resolved.search is None:
        from ajuste.analysis.results import assemble

        return assemble
    from ajuste.analysis.search.results import assemble_search

    return assemble_search


def _notes(run: Run) -> list[str]:
    # What the targets of the run had to say.
    places = [place for place in run.environment.values() if isinstance(place, dict)]
    return [note for place in places if isinstance(note := place.get(NOTES), str)]


def _reproduce(run: Run, resolved: ResolvedStudy) -> list[str]:
    # The command that measures the same again. A series of kernels moves on, so the very release is named.
    #
    # A run that no study file is behind has its whole command for a name.
    study, named = resolved.study, shlex.split(run.named)
    if named[:1] == ["ajuste"]:
        if named[1] not in _WITH_KERNELS:
            return [run.named]
        if named[1] != "tune":
            again = _compared_again([word for word in named if word != "--fresh"], run, resolved)
            # Otherwise the very same under the virtual clock is shown, not measured.
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
    """Return the study of ``run`` on the very kernels it was measured on, which expects what came out, and sentences on
    what it cannot expect or contain. Patches of its kernels are in it.

    ``within`` is how far the means of deciding metrics may be from those of the run, as a share of them. With ``fixed``
    the study expects what a fix brings instead: no failed trial, and of what worsens or differs at most half of the
    difference. Raises RequestError where other machines cannot measure it, or where there is nothing to fix.
    """
    study = ResolvedStudy.model_validate_json(run.resolved).study
    if study.target.on_host:
        raise RequestError(f"run {run.id} measured this machine, which others do not have; expected a run of guests")
    if not run.stopped:
        raise RequestError(f"run {run.id} is not finished", hint="finish it with its own command")
    figures = tuple(
        _half_of_difference(results, one)
        if fixed and one.verdict in _TO_FIX
        else ExpectedFigure(
            metric=one.metric,
            configuration=one.configuration,
            verdict=(one.verdict,),
            **_limits(results, one, within),
        )
        for one in results.verdicts
        if one.deciding
    )
    if (
        fixed
        and not results.tally.failed
        and not any(one.verdict in _TO_FIX for one in results.verdicts if one.deciding)
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
    own = {one.name for one in study.schedulers}
    named = {one.scheduler for one in ResolvedStudy.model_validate_json(run.resolved).configurations}
    elsewhere = {one.name: one for part in parts.values() for one in part.schedulers if one.name in named - own}
    lacking = [*elsewhere, *(one.name for one in study.schedulers if one.build is None)]
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
    patches = {one.name: one for part in parts.values() for one in part.patches}
    # Of a program that is not built only this machine has the file.
    own_schedulers = (
        one if one.build is not None else one.model_copy(update={"program": None}) for one in study.schedulers
    )
    schedulers = [*own_schedulers, *elsewhere.values()]
    contained = {"expect": renamed(expect, names), "patches": tuple(patches.values()), "schedulers": tuple(schedulers)}
    return with_kernels(study, names).model_copy(update=contained), tuple(notes)


@dataclass(frozen=True)
class _ContainedKernel:
    # A kernel as a file says it to others: `exact` if that is one for ever. One that they build is `called` so then,
    # has the hash `sha256`, and was kept with `schedulers` that were built elsewhere.
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
        return _ContainedKernel(exact, exact=_names_one(exact))
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
    called = default_name(version[0] if version else "", origin.config, origin.settings, [one.name for one in patches])
    return _ContainedKernel(
        str(wanted),
        exact=True,
        called=f"{BUILT}:{called}",
        sha256=built.image.sha256,
        patches=patches,
        schedulers=tuple(SchedulerTable(name=one.name, sha256=one.sha256) for one in origin.schedulers),
        notes=notes,
    )


def _source(origin: Provenance, spec: str) -> tuple[str, tuple[str, ...]]:
    # What the sources of a kernel are called for ever, and what others must have at hand. Raises RequestError.
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
    found = revision_source(Path(directory), revision)
    if found.digest != origin.source_digest:
        raise RequestError(
            f"{spec} was built from another commit than {revision} of {directory} is now",
            hint="build it from the commit itself: git:DIR@COMMIT",
        )
    return f"git:{directory}@{found.commit}", (
        f"The commit {found.commit[:SHORT]} must be at hand: write where your clone is instead of {directory}.",
    )


def _patch(number: int, name: str, content: bytes) -> PatchTable:
    # Raises RequestError for one that is no text.
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError(f"the patch {name} is not UTF-8, which a study file requires") from None
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip(".-")[:100] or f"{number + 1}.patch"
    return PatchTable(name=plain, sha256=hashlib.sha256(content).hexdigest(), text=text)


def _names_one(spec: str) -> bool:
    kernel = parse_spec(spec)
    return isinstance(kernel, PackagedKernel) and kernel.exact


def _limits(results: Results, verdict: Verdict, within: float | None) -> dict[str, float]:
    own = next(one for one in results.configurations if one.name == verdict.configuration)
    if within is None or verdict.metric not in own.metrics:
        return {}
    mean = own.metrics[verdict.metric].mean
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
    # `command` as the person types it, who may need sudo for what it changes on this machine.
    changes = bool(resolved.writes) or any(one.scratch for one in resolved.configurations)
    if not resolved.study.target.on_host or not (calling_ids() if os.geteuid() == 0 else changes):
        return command
    # Of a library or notebook the program has another name.
    return as_root(shlex.split(command)[1:]) if Path(sys.argv[0]).name == "ajuste" else f"sudo {command}"


# By so much the budget exceeds what is likely to be needed.
_GROWN: Final = 1.2
# Blocks that say how long a block takes.
_LATELY: Final = 8
_BUDGETS: Final = ("--blocks", "--max-time")


def _continuation(record: KeptRecord, resolved: ResolvedStudy, results: Results) -> Continuation | None:
    # The command that measures on where verdicts are open; it has the words of the person, whatever kernel they name
    # meanwhile.
    run = record.run
    open_ones = [one for one in (*results.verdicts, *results.effects, *results.lines) if one.deciding and one.is_open]
    stopped = run.stopped or "interrupted"
    if not open_ones or stopped not in ("budget", "time", "interrupted") or resolved.search or resolved.live:
        return None
    words = _typed(run, resolved)
    if not words:
        return None
    each = _seconds_per_block(record, resolved)
    if stopped == "interrupted":
        return Continuation(command=_with_root(shlex.join(words), resolved), seconds_per_block=each)
    known = [one.more_blocks for one in open_ones if one.more_blocks]
    more = max(known) if len(known) == len(open_ones) else max(results.blocks, FEWEST_MORE)
    budget = resolved.study.budget
    blocks = budget.max_blocks if stopped == "budget" else results.blocks
    enough = _round_number(blocks + _GROWN * more)
    options: list[str] = []
    if enough > budget.max_blocks:
        options += ["--blocks", f"{budget.min_blocks}..{enough}"]
    minutes = enough * each / 60 if each else 2 * budget.max_minutes
    if stopped == "time":
        minutes = max(minutes, budget.max_minutes + more * (each or 0) / 60, 1.01 * budget.max_minutes)
    if minutes > budget.max_minutes:
        options += ["--max-time", _duration(60 * minutes)]
    end = words.index("--") if "--" in words else len(words)
    kept = _without_options(words[:end])
    at = 2 if words[1] != "run" else 3
    command = shlex.join([*kept[:at], *options, *kept[at:], *words[end:]])
    return Continuation(command=_with_root(command, resolved), seconds_per_block=each)


FEWEST_MORE: Final = 4


def _typed(run: Run, resolved: ResolvedStudy) -> list[str]:
    # The command that a person gave; empty where a run is a part of something else.
    named, target = shlex.split(run.named), resolved.study.target
    if named[:1] == ["ajuste"]:
        return [word for word in named if word != "--fresh"] if named[1] in ("compare", "ablate") else []
    words = ["ajuste", "run", *named, "--seed", str(resolved.study.design.seed)]
    if target.kernel and "--kernel" not in named:
        words += ["--kernel", target.kernel]
    return [*words, "--target", "host"] if target.on_host else words


def _without_options(words: Sequence[str]) -> list[str]:
    # `words` without what says how long to measure.
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word.partition("=")[0] not in _BUDGETS:
            kept.append(word)
        skip = not skip and word in _BUDGETS
    return kept


def _seconds_per_block(record: KeptRecord, resolved: ResolvedStudy) -> float | None:
    # How long the last blocks took, trials at once counted once.
    from ajuste.run.schedule import Spans

    blocks = record.measurements.block.tolist()
    last = sorted({block for block in blocks if block >= resolved.study.design.warm_up})[-_LATELY:]
    trials = record.whole([row for row, block in enumerate(blocks) if block in last])
    spans = Spans()
    for trial in trials:
        if trial.started:  # Trials of other programs may not say when they began.
            spans.add(trial)
    return 60 * spans.minutes / len(last) if last else None


def _round_number(value: float) -> int:
    # At least `value`, with two digits.
    step = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return int(math.ceil(value / step) * step)


def _duration(seconds: float) -> str:
    # At least so long, as an option says it.
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)}{unit}"
    return f"{math.ceil(seconds)}s"


def _compared_again(words: list[str], run: Run, resolved: ResolvedStudy) -> list[str]:
    # The words of `ajuste compare` with the exact kernels.
    if resolved.study.target.on_host:
        return words
    kernels = resolved.study.kernels
    for place, word in enumerate(words):
        if word == "--":
            break
        if word.partition("=")[0] == "--source":  # It says itself what is built.
            return words
        if word == "--kernel":
            return [*words[: place + 1], _exactly(words[place + 1], kernels, run), *words[place + 2 :]]
        if word.startswith("--kernel="):
            exact = _exactly(word.removeprefix("--kernel="), kernels, run)
            return [*words[:place], f"--kernel={exact}", *words[place + 1 :]]
    return [*words[:2], "--kernel", ",".join(_exact(spec, run) for spec in kernels), *words[2:]]


def _exactly(typed: str, kernels: Sequence[str], run: Run) -> str:
    # The `kernels` as they were measured; what was built for it is told as it was `typed`.
    texts = [text.strip() for text in split_at(",", typed)]
    if len(texts) != len(kernels):
        texts = list(kernels)
    pairs = zip(texts, kernels, strict=True)
    return ",".join(text if is_to_build(text) else _exact(spec, run) for text, spec in pairs)


def _exact(spec: str, run: Run) -> str:
    source, _, _ = spec.partition(":")
    release = run.environment.get(spec, {}).get("kernel")
    return f"{source}:{release}" if release and source not in ("path", BUILT) else spec
