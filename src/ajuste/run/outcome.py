"""The outcome of a run: its results, computed from the store."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ajuste.design.stopping import Why
from ajuste.executor.executor import NOTES
from ajuste.machine.home import KINDS, plugin_of
from ajuste.model.continuation import CONTINUATION, REPRODUCE
from ajuste.model.error import RunError
from ajuste.model.facets import stored_results
from ajuste.model.origin import IMPORTED
from ajuste.model.plan import Command
from ajuste.model.relevance import read_no_chance
from ajuste.model.results import Results
from ajuste.model.three_sigma import THREE_SIGMA
from ajuste.run.continuation import continuation, reproducing_commands, with_root
from ajuste.run.facets import MeasuredRun, group_machines, with_facets
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy

if TYPE_CHECKING:
    from ajuste.store.store import Run, Store

UNFINISHED: Final = "the run is not finished; run the same command again to resume"
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
    results = results.with_facet(IMPORTED, True).with_facet(REPRODUCE, tuple(again))  # noqa: FBT003 - its value
    return results.with_facet(CONTINUATION, None)


def with_three_sigma(results: Results, run: Run, store: Store) -> Results:
    """Return ``results`` of ``run`` with what the 3-sigma rule says; the verdicts beside it stay as they are.

    Raises RequestError where the run does not compare configurations one by one, or nothing that knows the rule is
    installed.
    """
    from ajuste.store.record import KeptRecord

    resolved = ResolvedStudy.model_validate_json(run.resolved)
    rows = rule_of_three_sigma().requested(MeasuredRun(run, store, KeptRecord(run, store), resolved, results))
    return results.with_facet(THREE_SIGMA, rows)


def rule_of_three_sigma() -> Any:
    """Return the facet of the 3-sigma rule. Raises RequestError with the command that installs it."""
    return plugin_of("analyse", "facets", THREE_SIGMA.key)


def keep_results(run: Run, results: Results, store: Store) -> None:
    """Store the results of a run that ended, and its first sentence for lists."""
    from ajuste.report.format import result_labels
    from ajuste.report.headline import first_sentence, headlines

    answer = first_sentence(results, headlines(results, result_labels(results)))
    store.keep_results(run, answer, results.model_dump_json())


def original_results(run: Run, store: Store) -> Results:
    """Return the results of ``run``, without the marks of an import."""
    if (stored := store.results(run)) is not None:
        with suppress(ValueError):  # Another version of Ajuste may have written them.
            return stored_results(stored)
    results = _computed(run, store)
    if run.stopped:
        with suppress(RunError):  # A read-only store is shown as well.
            keep_results(run, results, store)
    return results


def _computed(run: Run, store: Store) -> Results:
    from ajuste.store.record import KeptRecord  # stored results need no statistics

    resolved = ResolvedStudy.model_validate_json(run.resolved)
    record = KeptRecord(run, store)
    places = [place for place in run.environment.values() if isinstance(place, dict)]
    results = _assembler(resolved)(
        resolved,
        record,
        run=run.id,
        stopped=_STOPPED.get(run.stopped, "interrupted"),
        stopped_because=run.stopped_because or UNFINISHED,
        environment={**run.environment, **_commands(resolved)},
        reproduce=[with_root(command, resolved) for command in reproducing_commands(run, resolved)],
        notes=list(dict.fromkeys(note for place in places if isinstance(note := place.get(NOTES), str))),
        created=run.created,
        ajuste=run.ajuste,
        **({"machines": machines} if (machines := store.machines(run)) else {}),
        **({"no_chance": no_chance} if (no_chance := read_no_chance(run.environment)) else {}),
    )
    results = results.with_facet(CONTINUATION, continuation(record, resolved, results))
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


def _assembler(resolved: ResolvedStudy) -> Callable[..., Results]:
    if resolved.kind:
        assembler: Callable[..., Results] = plugin_of(KINDS[resolved.kind], "assemblers", resolved.kind)
        return assembler
    from ajuste.analysis.results import assemble

    return partial(assemble, group_machines=group_machines)
