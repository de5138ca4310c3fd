"""Winner, the configuration of a run that may be put to use: one that the verdicts are for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final

from ajuste.catalogue.level import WrongStep, whole_number
from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.catalogue.place import location
from ajuste.model.continuation import REPRODUCE
from ajuste.model.error import RequestError, nearest_names
from ajuste.model.event import Written
from ajuste.model.explained import EXPLAINED
from ajuste.model.origin import IMPORTED
from ajuste.model.plan import Attributes, FileLocation, Location, ServerSetting, Write, location_words
from ajuste.model.results import Results
from ajuste.model.tunable import Tunable
from ajuste.model.verdict import Verdict
from ajuste.model.wording import block_words, shell_line, visible_line
from ajuste.report.facets import objection
from ajuste.report.verdicts import ORDER, effect_band, effect_style, tally
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste_profiles.export import NO_WORDS, Export, ExportSetting, LeftOut, plain


def supported(results: Results, wanted: str | None = None) -> str:
    """Return the configuration to export: ``wanted``, or the best that is better than the baseline.

    It is better if it improves a deciding metric and worsens none. A person may also want one that only differs on
    metrics that have no better or worse. Raises RequestError where the verdicts support none.
    """
    if wanted is not None:
        if all(configuration.name != wanted for configuration in results.configurations):
            wanted = _without_units(results, wanted)
        _require(results, wanted)
        return wanted
    better = [
        name
        for name, verdicts in _deciding(results).items()
        if _is_better(verdicts) and objection(results, name) is None
    ]
    if not better:
        counts = tally(verdict for verdicts in _deciding(results).values() for verdict in verdicts)
        words = ", ".join(f"{count} × {word}" for word, count in counts) or "nothing was compared"
        raise RequestError(
            f"no configuration of the run {results.run} is known to be better than {_baseline(results)}: {words}",
            hint=_what_can_be_done(results),
        )
    return min(better, key=lambda name: _at_least(_deciding(results)[name]))


def _without_units(results: Results, wanted: str) -> str:
    # A level may be written as the answer shows it: `750 ms` for 750000000.
    units = {entry.name: entry.unit for entry in EXPLAINED.of(results)}
    names = "|".join(re.escape(factor.name) for factor in results.factors)
    words = []
    for word in re.split(rf"\s+(?=(?:{names})\s*=)", wanted):
        name, equals, level = (part.strip() for part in word.partition("="))
        with suppress(WrongStep):
            if (value := whole_number(level, units.get(name, ""))) is not None:
                level = str(value)
        words.append(f"{name}{equals}{level}")
    return " ".join(words)


def deciding_verdicts(results: Results, configuration: str) -> list[Verdict]:
    """Return the verdicts on a configuration by the metrics that the study is about."""
    return _deciding(results).get(configuration, [])


def _require(results: Results, wanted: str) -> None:
    names = [configuration.name for configuration in results.configurations]
    if wanted not in names:
        nearest = nearest_names(wanted, names, most=3, likeness=50)
        raise RequestError(
            f"the run {results.run} has no configuration {wanted!r}",
            hint=f"did you mean {' or '.join(map(repr, nearest))}?"
            if nearest
            else f"list them: ajuste report {results.run}",
        )
    if wanted == _baseline(results):
        raise RequestError(f"{wanted} is the baseline of the run {results.run}; expected another configuration")
    if (error := objection(results, wanted)) is not None:
        raise error
    verdicts = deciding_verdicts(results, wanted)
    against = [v for v in verdicts if v.verdict == "worsens"]
    if against or not any(v.verdict in ("improves", "differs") for v in verdicts):
        summary = "; ".join(f"{v.metric}: {v.verdict}" for v in against or verdicts) or "nothing was measured"
        raise RequestError(
            f"the verdict on {wanted} does not support using it: {summary}",
            hint="choose a configuration that improves a metric",
        )


def _deciding(results: Results) -> dict[str, list[Verdict]]:
    by_configuration: dict[str, list[Verdict]] = {}
    for verdict in results.verdicts:
        if verdict.deciding:
            by_configuration.setdefault(verdict.configuration, []).append(verdict)
    return by_configuration


def _is_better(verdicts: Sequence[Verdict]) -> bool:
    words = {verdict.verdict for verdict in verdicts}
    return "improves" in words and "worsens" not in words


def _at_least(verdicts: Sequence[Verdict]) -> float:
    # The least that is gained on the first metric that improves, smaller being better: not the luckiest estimate.
    first = next(verdict for verdict in verdicts if verdict.verdict == "improves")
    limit = first.high if first.direction == "lower" else first.low
    if limit is None:
        return float("inf")
    return limit if first.direction == "lower" else -limit


def _baseline(results: Results) -> str:
    return next(configuration.name for configuration in results.configurations if configuration.baseline)


def _what_can_be_done(results: Results) -> str:
    words = {verdict.verdict for verdicts in _deciding(results).values() for verdict in verdicts}
    if "differs" in words and "improves" not in words:
        return "neither higher nor lower counts as better: name the configuration that you want"
    if words & {"improves"}:
        return "improving one metric worsens another; choose the study's metrics by what matters to you"
    if "undecided" in words:
        return "measure more blocks: run the same command with a larger budget to continue"
    return f"a configuration can be exported if it {ORDER[0]} a metric of the study"


# One configuration of a run beside its baseline: what it sets, what came of it, and what speaks for it.


_FILE_NAME: Final = re.compile(r"[^a-z0-9-]+")
_NOT_SET: Final = "is not a setting of a running system"


def configuration_export(
    results: Results, resolved: ResolvedStudy, written: Sequence[Written], name: str, *, whole: bool = False
) -> Export:
    """Return what configuration ``name`` sets and the baseline does not, or the ``whole`` of what it sets. ``written``
    is what its trials wrote.
    """
    chosen, baseline = resolved.find(name), resolved.find(resolved.baseline)
    known = {write.tunable: write for write in written}
    at_baseline = {write.tunable: write.value for write in baseline.writes}
    settings, left_out = [], []
    for write in chosen.writes:
        if at_baseline.get(write.tunable) == write.value and not whole:
            continue
        recorded = known.get(write.tunable)
        became = recorded.after if recorded else write.value
        if why := why_not_catalogued(write, became, catalogue()):
            left_out.append(LeftOut(f"{write.tunable} = {became}", why))
            continue
        settings.append(
            ExportSetting(
                tunable=write.tunable,
                location=write.location,
                asked=write.value,
                became=became,
                before=recorded.before if recorded else None,
                companions=write.companions,
            )
        )
    words = tuple(word for word in _arguments(chosen) if word not in _arguments(baseline))
    if IMPORTED.of(results):  # An imported run may claim anything, for one what is started first.
        left_out += [LeftOut(word, "the run is imported: set what is booted yourself") for word in words]
        words = ()
    return Export(
        name=f"ajuste-{_FILE_NAME.sub('-', results.study.lower())[:80]}",
        configuration=name,
        evidence=tuple(visible_line(line) for line in _evidence(results, resolved, name)),
        settings=tuple(settings),
        attributes=_attributes(chosen, baseline),
        kernel_arguments=words,
        left_out=(*left_out, *_left_out(chosen, baseline)),
    )


def why_not_catalogued(write: Write, became: str, known: Catalogue) -> str:
    """Return why a setting, perhaps a stranger's, is not written to a file; empty if it may be.

    It may be a place of the catalogue with a value that is one there.
    """
    try:
        tunable = known.find_tunable(write.tunable)
    except RequestError:
        return "it is not in the catalogue"
    if isinstance(write.location, ServerSetting):
        return "it is a setting of a running server: write it in the server's configuration"
    places = [location(where) for where in tunable.where]
    if tunable.parts or tunable.name != write.tunable or write.location not in places:
        return f"the catalogue does not have {tunable.name} at {location_words(write.location)}"
    if any(not _is_companion(place, tunable, known) for place in write.companions):
        return "it names places that the kernel does not change along with it"
    choices = {choice for where in tunable.where for choice in where.choices}
    for value in (write.value, became):
        try:
            known.check_level(tunable, plain(value))
        except RequestError:
            if value not in choices:
                return f"{tunable.name} cannot be {value[:40]!r}"
    return ""


def _is_companion(place: Location, tunable: Tunable, known: Catalogue) -> bool:
    for name in tunable.companions:
        other = known.tunables[name]
        if place in map(location, (other.instance(tunable.chosen) if other.parts else other).where):
            return True
    path = PurePosixPath(getattr(place, "path", ""))
    folders = [folder.format(**tunable.chosen) for folder in tunable.companion_directories]
    return isinstance(place, FileLocation) and ".." not in path.parts and str(path.parent) in folders


def _arguments(configuration: ResolvedConfiguration) -> tuple[str, ...]:
    return configuration.kernel_arguments or (configuration.boot.words if configuration.boot else ())


def _attributes(chosen: ResolvedConfiguration, baseline: ResolvedConfiguration) -> Attributes:
    attributes, others = chosen.workload.attributes, baseline.workload.attributes
    differing = {name: value for name, value in attributes if value != getattr(others, name)}
    if "policy" in differing and attributes.priority is not None:
        differing["priority"] = attributes.priority
    return Attributes.model_validate(differing)


def _left_out(chosen: ResolvedConfiguration, baseline: ResolvedConfiguration) -> Iterable[LeftOut]:
    if chosen.kernel != baseline.kernel:
        yield LeftOut(f"the kernel {chosen.kernel} instead of {baseline.kernel}", "a kernel is installed and booted")
    if chosen.boot is not None:
        if chosen.boot.kernel:
            yield LeftOut(f"the kernel {chosen.boot.kernel}", "a kernel is installed and booted")
        for word in chosen.boot.without:
            yield LeftOut(f"the command line without {word}", NO_WORDS)
    if chosen.workload.argv != baseline.workload.argv:
        yield LeftOut(f"the command {' '.join(chosen.workload.argv)}", f"it {_NOT_SET}")
    if chosen.background != baseline.background:
        yield LeftOut("the background load", f"it {_NOT_SET}")
    if chosen.scratch != baseline.scratch:
        yield LeftOut("the file system of the trials", "it is chosen when a file system is made or mounted")


def _evidence(results: Results, resolved: ResolvedStudy, name: str) -> Iterable[str]:
    if IMPORTED.of(results):
        yield "IMPORTED from a bundle: others measured it. Look at every line before you use it."
    yield f"{name}, compared with {results.reference(name) or resolved.baseline}."
    yield f"Study {results.study}: {results.question or results.title}"
    for verdict in deciding_verdicts(results, name):
        style = effect_style([verdict], verdict.unit)[verdict.scale]
        band = f" within {effect_band(results.smallest_effect)}" if verdict.verdict == "equivalent" else ""
        counted = block_words(verdict.blocks, of_rounds=verdict.of_rounds)
        yield (
            f"{verdict.metric}: {verdict.verdict}{band}, {style.estimate(verdict)} ({style.interval(verdict)}; "
            f"{100 * verdict.level:g} % confidence over all comparisons, {counted})"
        )
    yield f"Measured {results.created} by Ajuste {results.ajuste}: {_where(results, resolved, name)}"
    yield f"Run {results.run}, digest {results.digest}"
    yield from (f"Again: {shell_line(command)}" for command in REPRODUCE.of(results))


def _where(results: Results, resolved: ResolvedStudy, name: str) -> str:
    machine = resolved.find(name).machine
    about = results.environment.get(machine.name, {})
    kernel = about.get("kernel", "") if isinstance(about, dict) else ""
    if resolved.study.target.on_host:
        return f"on a machine by its wall clock, kernel {kernel}." if kernel else "on a machine by its wall clock."
    clock = "under the virtual clock" if results.clock == "virtual" else "under the wall clock"
    return f"in a virtual machine {clock}, kernel {kernel or machine.kernel}; measure again where you use it."
