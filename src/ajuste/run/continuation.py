"""Commands that measure a run again, or go on with it."""

from __future__ import annotations

import itertools
import math
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ajuste.kernel.spec import (
    BUILT,
    is_to_build,
)
from ajuste.machine.home import as_root
from ajuste.model.caller import calling_ids
from ajuste.model.continuation import Continuation
from ajuste.model.results import Results
from ajuste.model.verdict import EFFECTS, LINES
from ajuste.model.wording import split_at
from ajuste.study.resolved import ResolvedStudy

if TYPE_CHECKING:
    from ajuste.store.record import KeptRecord
    from ajuste.store.store import Run


# Commands with an option for the measured kernels; other commands derive theirs from other options.
_WITH_KERNELS: Final = frozenset({"compare", "ablate", "suite", "tune"})

# Factor of the suggested budget over the blocks likely needed.
_GROWN: Final = 1.2

# Number of last blocks that estimate the seconds of a block.
_LATELY: Final = 8

_BUDGETS: Final = ("--blocks", "--max-time")
FEWEST_MORE: Final = 4


def reproducing_commands(run: Run, resolved: ResolvedStudy) -> list[str]:
    """Return the commands that measure ``run`` again: a series of kernels moves on, so the exact release is named, and
    runs without a study file are named by their command.
    """
    study, words = resolved.study, _words(run)
    if words[1] == "run":
        words = [*_of_study(words, resolved), "--fresh"]
        if "--kernel" in words:
            words = _compared_again(words, run, resolved)
        elif study.target.kernel:
            words[3:3] = ["--kernel", exact_spec(study.target.kernel, run)]
        return [shlex.join(words)]
    if words[1] not in _WITH_KERNELS:
        return [run.named]
    if words[1] != "tune":
        again = _compared_again(words, run, resolved)
        # Without --fresh an equal run under the virtual clock is shown, not measured.
        fresh = ["--fresh"] if study.target.clock == "virtual" else []
        return [shlex.join([*again[:2], *fresh, *again[2:]])]
    return [shlex.join([*(_compared_again(words, run, resolved) if study.target.kernel else words), "--fresh"])]


def with_root(command: str, resolved: ResolvedStudy) -> str:
    """Return ``command`` as to be given by a user: changing this machine needs root, a cluster's machines do not."""
    options = itertools.takewhile(lambda word: word != "--", shlex.split(command))
    if any(word.partition("=")[0] == "--cluster" for word in options):
        return command
    changes = bool(resolved.writes) or any(configuration.scratch for configuration in resolved.configurations)
    if not resolved.study.target.on_host or not (calling_ids() if os.geteuid() == 0 else changes):
        return command
    # In a library or notebook sys.argv has another program.
    return as_root(shlex.split(command)[1:]) if Path(sys.argv[0]).name == "ajuste" else f"sudo {command}"


def continuation(record: KeptRecord, resolved: ResolvedStudy, results: Results) -> Continuation | None:
    """Return how to go on with an undecided run; None for others. Its words are those typed, not the exact kernels: it
    must be resumed as it was begun.
    """
    run = record.run
    open_verdicts = [
        verdict
        for verdict in (*results.verdicts, *EFFECTS.of(results), *LINES.of(results))
        if verdict.deciding and verdict.is_open
    ]
    stopped = run.stopped or "interrupted"
    if not open_verdicts or stopped not in ("budget", "time", "interrupted"):
        return None
    words = _typed(run, resolved)
    if not words:
        return None
    each = _seconds_per_block(record, resolved)
    if stopped == "interrupted":
        return Continuation(command=with_root(shlex.join(words), resolved), seconds_per_block=each)
    known = [verdict.more_blocks for verdict in open_verdicts if verdict.more_blocks]
    more = max(known) if len(known) == len(open_verdicts) else max(results.blocks, FEWEST_MORE)
    budget = resolved.study.budget
    blocks = budget.max_blocks if stopped == "budget" else results.blocks
    wanted = blocks + _GROWN * more
    step = 10 ** max(0, math.floor(math.log10(wanted)) - 1)
    enough = int(math.ceil(wanted / step) * step)  # rounded up to two digits
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
    return Continuation(command=with_root(command, resolved), seconds_per_block=each)


def _typed(run: Run, resolved: ResolvedStudy) -> list[str]:
    # Empty for a run that is part of something else, such as a suite.
    words, target = _words(run), resolved.study.target
    if words[1] in ("compare", "ablate"):
        return words
    if words[1] != "run":
        return []
    words = _of_study(words, resolved)
    return [*words, "--kernel", target.kernel] if target.kernel and "--kernel" not in words else words


def _words(run: Run) -> list[str]:
    # Runs of earlier versions: those of a study are named without the command, and others may have --fresh.
    words = shlex.split(run.named)
    end = words.index("--") if "--" in words else len(words)
    words = [*(word for word in words[:end] if word != "--fresh"), *words[end:]]
    return words if words[:1] == ["ajuste"] else ["ajuste", "run", *words]


def _of_study(words: Sequence[str], resolved: ResolvedStudy) -> list[str]:
    # What a study's file might say otherwise by then.
    seed = [] if "--seed" in words else ["--seed", str(resolved.study.design.seed)]
    host = ["--target", "host"] if resolved.study.target.on_host and "--target" not in words else []
    return [*words, *seed, *host]


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
    return [*words[:2], "--kernel", ",".join(exact_spec(spec, run) for spec in kernels), *words[2:]]


def _exactly(typed: str, kernels: Sequence[str], run: Run) -> str:
    # A kernel built for the run stays as typed, so that it is built again.
    texts = [text.strip() for text in split_at(",", typed)]
    if len(texts) != len(kernels):
        texts = list(kernels)
    pairs = zip(texts, kernels, strict=True)
    return ",".join(text if is_to_build(text) else exact_spec(spec, run) for text, spec in pairs)


def exact_spec(spec: str, run: Run) -> str:
    """Return the kernel of ``run`` by its exact release; a file or a built kernel as it is."""
    source, _, _ = spec.partition(":")
    release = run.environment.get(spec, {}).get("kernel")
    return f"{source}:{release}" if release and source not in ("path", BUILT) else spec
