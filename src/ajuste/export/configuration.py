"""One configuration of a run beside its baseline: what it sets, what came of it, and what speaks for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ajuste.export.document import Export, LeftOut, Setting
from ajuste.export.selection import deciding_verdicts
from ajuste.model.event import Written
from ajuste.model.plan import Attributes
from ajuste.model.results import Results
from ajuste.report.effect import effect_style
from ajuste.report.verdict_words import effect_band
from ajuste.report.visible import visible_line
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy

_NOT_SET: Final = "is not a setting of a running system"


def export_of(results: Results, resolved: ResolvedStudy, written: Sequence[Written], name: str) -> Export:
    """What the configuration ``name`` sets that the baseline does not. ``written`` is what its trials wrote."""
    chosen, baseline = resolved.find(name), resolved.find(resolved.baseline)
    known = {write.tunable: write for write in written}
    at_baseline = {write.tunable: write.value for write in baseline.writes}
    settings = []
    for write in chosen.writes:
        if at_baseline.get(write.tunable) != write.value:
            told = known.get(write.tunable)
            settings.append(
                Setting(
                    tunable=write.tunable,
                    location=write.location,
                    asked=write.value,
                    became=told.after if told else write.value,
                    before=told.before if told else None,
                    companions=write.companions,
                )
            )
    return Export(
        name=f"ajuste-{results.study}",
        configuration=name,
        evidence=tuple(visible_line(line) for line in _evidence(results, resolved, name)),
        settings=tuple(settings),
        attributes=_attributes(chosen, baseline),
        kernel_arguments=tuple(word for word in chosen.kernel_arguments if word not in baseline.kernel_arguments),
        left_out=tuple(_left_out(results, chosen, baseline)),
    )


def _attributes(chosen: ResolvedConfiguration, baseline: ResolvedConfiguration) -> Attributes:
    own, others = chosen.workload.attributes, baseline.workload.attributes
    differing = {name: value for name, value in own if value != getattr(others, name)}
    if "policy" in differing and own.priority is not None:
        differing["priority"] = own.priority
    return Attributes.model_validate(differing)


def _left_out(results: Results, chosen: ResolvedConfiguration, baseline: ResolvedConfiguration) -> Iterable[LeftOut]:
    if chosen.kernel != baseline.kernel:
        yield LeftOut(f"the kernel {chosen.kernel} instead of {baseline.kernel}", "a kernel is installed and booted")
    if chosen.workload.argv != baseline.workload.argv:
        yield LeftOut(f"the command {' '.join(chosen.workload.argv)}", f"it {_NOT_SET}")
    if chosen.background != baseline.background:
        yield LeftOut("the background load", f"it {_NOT_SET}")
    if chosen.scratch != baseline.scratch:
        yield LeftOut("the file system of the trials", "it is chosen when a file system is made or mounted")


def _evidence(results: Results, resolved: ResolvedStudy, name: str) -> Iterable[str]:
    yield f"{name}, compared with {resolved.baseline}."
    yield f"Study {results.study}: {results.question or results.title}"
    for verdict in deciding_verdicts(results, name):
        style = effect_style([verdict], verdict.unit)[verdict.scale]
        band = f" within {effect_band(results.smallest_effect)}" if verdict.verdict == "equivalent" else ""
        yield (
            f"{verdict.metric}: {verdict.verdict}{band}, {style.estimate(verdict)} ({style.interval(verdict)}; "
            f"{100 * verdict.level:g} % confidence over all comparisons, {verdict.blocks} blocks)"
        )
    yield f"Measured {results.created} by Ajuste {results.ajuste}: {_where(results, resolved, name)}"
    yield f"Run {results.run}, digest {results.digest}"
    yield from (f"Again: {command}" for command in results.reproduce)


def _where(results: Results, resolved: ResolvedStudy, name: str) -> str:
    machine = resolved.find(name).machine
    about = results.environment.get(machine.name, {})
    kernel = about.get("kernel", "") if isinstance(about, dict) else ""
    if resolved.study.target.kind == "host":
        return f"on a machine of its own clock, kernel {kernel}." if kernel else "on a machine, by its own clock."
    clock = "by a clock that counts instructions" if results.clock == "virtual" else "by the clock of its host"
    return f"in a virtual machine {clock}, kernel {kernel or machine.kernel}; measure again where it is to be used."
