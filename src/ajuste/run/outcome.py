"""The outcome of a run: its results, computed again from what the store has."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ajuste.design.stopping import Why
from ajuste.executor.executor import LEFT_OUT, NOTES
from ajuste.kernel.spec import BUILT, PackagedKernel, is_to_build, parse_spec
from ajuste.machine.files import calling_ids
from ajuste.machine.installation import as_root
from ajuste.model.boot import BOOTS, BootFindings, KeptBoots
from ajuste.model.error import RequestError, RunError
from ajuste.model.relevance import kept_of
from ajuste.model.results import Continuation, Results
from ajuste.model.verdict import Verdict
from ajuste.model.wording import split_at
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import ExpectedFigure, ExpectTable, Study

if TYPE_CHECKING:
    from ajuste.store.record import KeptRecord
    from ajuste.store.store import Run, Store

UNFINISHED: Final = "the run is not finished; run the same `ajuste run` command to resume"
LIVE_UNFINISHED: Final = "the run is not finished; give the same `ajuste live` command again to resume"
_WITH_KERNELS: Final = frozenset({"compare", "ablate", "suite", "tune"})
"""Commands that take the very kernels that were measured; those of others follow from what they are given."""
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
    return found.model_copy(update={"imported": True, "reproduce": tuple(again)})


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
        environment=run.environment,
        reproduce=[_with_root(command, resolved) for command in _reproduce(run, resolved)],
        notes=_notes(run),
        created=run.created,
        ajuste=run.ajuste,
        **({"machines": machines} if (machines := store.machines(run)) else {}),
        **({"no_chance": no_chance} if (no_chance := kept_of(run.environment)) else {}),
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


def _boots(record: KeptRecord, resolved: ResolvedStudy) -> BootFindings:
    from ajuste.analysis.boots import boot_findings

    return boot_findings(resolved, record.measurements, KeptBoots.model_validate(record.run.environment[BOOTS]))


def _left_out(environment: Mapping[str, Any]) -> tuple[str, ...]:
    """Who gave what is not so, and whose trials were dropped."""
    machines = [said for said in environment.values() if isinstance(said, dict)]
    found = [str(said[LEFT_OUT]) for said in machines if LEFT_OUT in said]
    return tuple(f"A worker was left out: {one}." for one in dict.fromkeys(found))


def _assembler(resolved: ResolvedStudy) -> Callable[..., Results]:
    """What makes the results. A search's needs much that takes long to load."""
    if resolved.live is not None:
        from ajuste.analysis.live import assemble_live

        return assemble_live
    if resolved.search is None:
        from ajuste.analysis.results import assemble

        return assemble
    from ajuste.analysis.search.results import assemble_search

    return assemble_search


def _notes(run: Run) -> list[str]:
    """What the targets of the run had to say."""
    places = [place for place in run.environment.values() if isinstance(place, dict)]
    return [note for place in places if isinstance(note := place.get(NOTES), str)]


def _reproduce(run: Run, resolved: ResolvedStudy) -> list[str]:
    """The command that measures the same again. A series of kernels moves on, so the very release is named.

    A run that no study file is behind has its whole command for a name.
    """
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


def reproducer(run: Run, results: Results, within: float | None = None) -> Study:
    """Return the study of ``run`` on the very kernels it was measured on, which expects what came out.

    ``within`` is how far the means of deciding metrics may be from those of the run, as a share of them. Raises
    RequestError where other machines cannot measure it.
    """
    study = ResolvedStudy.model_validate_json(run.resolved).study
    if study.target.on_host:
        raise RequestError(f"run {run.id} measured this machine, which others do not have; expected a run of guests")
    if not run.stopped:
        raise RequestError(f"run {run.id} is not finished", hint="finish it with its own command")
    varied = [spec for factor in study.factors for spec in factor.kernels]
    inexact = next((spec for spec in varied if not _names_one(spec)), None)
    if inexact is not None:
        raise RequestError(
            f"run {run.id} compares {inexact}, which is not one kernel for ever; expected packages by their release",
            hint="measure with exact kernels, as `ajuste kernel list` names them: --kernel debian:6.1.0-50-amd64,…",
        )
    figures = tuple(
        ExpectedFigure(
            metric=one.metric,
            configuration=one.configuration,
            verdict=(one.verdict,),
            **_limits(results, one, within),
        )
        for one in results.verdicts
        if one.deciding
    )
    kernel = study.target.kernel and _exact(study.target.kernel, run)
    exact = study.target.clock == "virtual" and (not kernel or _names_one(kernel))
    expect = ExpectTable(digest=results.digest if exact else "", figures=figures)
    return study.model_copy(update={"target": study.target.model_copy(update={"kernel": kernel}), "expect": expect})


def _names_one(spec: str) -> bool:
    kernel = parse_spec(spec)
    return isinstance(kernel, PackagedKernel) and kernel.exact


def _limits(results: Results, verdict: Verdict, within: float | None) -> dict[str, float]:
    own = next(one for one in results.configurations if one.name == verdict.configuration)
    if within is None or verdict.metric not in own.metrics:
        return {}
    mean = own.metrics[verdict.metric].mean
    return {"least": mean - within * abs(mean), "most": mean + within * abs(mean)}


def _with_root(command: str, resolved: ResolvedStudy) -> str:
    """``command`` as the person types it, who may need sudo for what it changes on this machine."""
    changes = bool(resolved.writes) or any(one.scratch for one in resolved.configurations)
    if not resolved.study.target.on_host or not (calling_ids() if os.geteuid() == 0 else changes):
        return command
    # Of a library or notebook the program has another name.
    return as_root(shlex.split(command)[1:]) if Path(sys.argv[0]).name == "ajuste" else f"sudo {command}"


_GROWN: Final = 1.2
"""By so much the budget exceeds what is likely to be needed."""
_LATELY: Final = 8
"""Blocks that say how long a block takes."""
_BUDGETS: Final = ("--blocks", "--max-time")


def _continuation(record: KeptRecord, resolved: ResolvedStudy, results: Results) -> Continuation | None:
    """The command that measures on where verdicts are open; it has the words of the person, whatever kernel they name
    meanwhile.
    """
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
    """The command that a person gave; empty where a run is a part of something else."""
    named, target = shlex.split(run.named), resolved.study.target
    if named[:1] == ["ajuste"]:
        return [word for word in named if word != "--fresh"] if named[1] in ("compare", "ablate") else []
    words = ["ajuste", "run", *named, "--seed", str(resolved.study.design.seed)]
    if target.kernel and "--kernel" not in named:
        words += ["--kernel", target.kernel]
    return [*words, "--target", "host"] if target.on_host else words


def _without_options(words: Sequence[str]) -> list[str]:
    """``words`` without what says how long to measure."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word.partition("=")[0] not in _BUDGETS:
            kept.append(word)
        skip = not skip and word in _BUDGETS
    return kept


def _seconds_per_block(record: KeptRecord, resolved: ResolvedStudy) -> float | None:
    """How long the last blocks took, trials at once counted once."""
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
    """At least ``value``, with two digits."""
    step = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return int(math.ceil(value / step) * step)


def _duration(seconds: float) -> str:
    """At least so long, as an option says it."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)}{unit}"
    return f"{math.ceil(seconds)}s"


def _compared_again(words: list[str], run: Run, resolved: ResolvedStudy) -> list[str]:
    """The words of ``ajuste compare`` with the exact kernels."""
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
    """The ``kernels`` as they were measured; what was built for it is told as it was ``typed``."""
    texts = [text.strip() for text in split_at(",", typed)]
    if len(texts) != len(kernels):
        texts = list(kernels)
    pairs = zip(texts, kernels, strict=True)
    return ",".join(text if is_to_build(text) else _exact(spec, run) for text, spec in pairs)


def _exact(spec: str, run: Run) -> str:
    source, _, _ = spec.partition(":")
    release = run.environment.get(spec, {}).get("kernel")
    return f"{source}:{release}" if release and source not in ("path", BUILT) else spec
