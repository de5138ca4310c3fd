"""The configurations of a study on given kernels. Pure, but for finding programs, which is passed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ajuste.catalogue.level import check_parameter
from ajuste.catalogue.loader import Catalogue
from ajuste.design.combinations import combination_count, combinations, subset_name
from ajuste.model.boot import boot_state, is_boot_name
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Write
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR, SETTINGS_FACTOR, Configuration, Factor
from ajuste.model.tunable import CgroupLimit, ProcessAttribute, SchedulerProgram, ScratchAttribute
from ajuste.outputs.base import counters_for
from ajuste.outputs.pattern import Pattern, Pointer
from ajuste.study.answerable import guest_notes
from ajuste.study.commands import CommandResolver
from ajuste.study.explain import explain, successor_notes
from ajuste.study.factors import (
    KERNEL_ARGUMENTS,
    NO_SCHEDULER,
    Knob,
    is_tunable,
    knob,
    names_set,
    service_called,
    service_part,
    set_by,
    workload_parameter,
)
from ajuste.study.metrics import (
    deciding_metrics,
    described_metrics,
    modelled_machine,
    resolve_samplers,
    resolve_timelines,
    wants_shares,
)
from ajuste.study.ranges import factor_span
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste.study.schema import FactorTable, Study
from ajuste.study.site import GUEST, PREFIX, Site, study_files

# Function from a program's name to its absolute path on this machine, like `shutil.which`.
FindProgram = Callable[[str], str | None]

# Spec that stands for the kernel of a host, which needs none.
HOST_KERNEL = ""

MOST_CONFIGURATIONS = 10_000

# Knob on each kernel, by the name that a factor sets, as it was given.
Knobs = dict[str, dict[str, Knob]]


def resolve(
    study: Study,
    catalogue: Catalogue,
    kernels: Mapping[str, KernelVersion],
    find_program: FindProgram,
    site: Site = GUEST,
) -> ResolvedStudy:
    """Resolve every configuration of ``study``, in the order of factors and levels.

    ``kernels`` has the version of each spec in ``study.kernels``, for a host that of ``HOST_KERNEL``. Commands are run
    at ``site``. Raises RequestError for a tunable that a kernel does
    not have, a level out of a successor's range, and a program that is not on this machine.
    """
    study_resolver = resolver(study, catalogue, kernels, find_program, site)
    made = combination_count(study_resolver.factors, study.design.combine)
    if made > MOST_CONFIGURATIONS:
        raise RequestError(
            f"the levels make {made} configurations; expected at most {MOST_CONFIGURATIONS}",
            place=study.place("factor"),
        )
    configurations = tuple(
        map(study_resolver.configuration, combinations(study_resolver.factors, study.design.combine))
    )
    if len({c.configuration.name for c in configurations}) < made:
        raise RequestError("two configurations have the same name; use different names for the levels")
    return study_resolver.build_study(_within_conditions(study, study_resolver.factors, configurations))


def _within_conditions(
    study: Study, factors: Sequence[Factor], made: tuple[ResolvedConfiguration, ...]
) -> tuple[ResolvedConfiguration, ...]:
    # Compare each configuration with the one at its level of the conditions and the baseline's of all other factors.
    conditions = {table.name for table in study.factors if table.is_condition}
    baseline = next((each.configuration for each in made if each.configuration.baseline), None)
    others = [factor for factor in factors if len(factor.levels) > 1 and factor.name not in conditions]
    if baseline is None or not conditions or not others or study.design.judges_effects:
        return made
    by_levels = {tuple(each.configuration.levels.values()): each.configuration for each in made}

    def reference(configuration: Configuration) -> str:
        levels = {**baseline.levels, **{name: configuration.levels[name] for name in conditions}}
        there = by_levels.get(tuple(levels.values()))
        return "" if there is None or there.baseline or there is configuration else there.name

    return tuple(
        each.model_copy(
            update={"configuration": each.configuration.model_copy(update={"against": reference(each.configuration)})}
        )
        for each in made
    )


@dataclass(frozen=True)
class Resolver:
    """A study on its kernels, of which configurations are made one by one."""

    study: Study
    factors: tuple[Factor, ...]
    knobs: Knobs
    commands: CommandResolver
    catalogue: Catalogue

    def configuration(self, levels: tuple[str, ...]) -> ResolvedConfiguration:
        """Return the configuration of these levels of ``factors``, in their order."""
        chosen = {table.name: level for table, level in zip(self.study.factors, levels, strict=True)}
        settings: dict[str, str] = {}
        for table, level in zip(self.study.factors, levels, strict=True):
            settings |= set_by(table, level)
        kernel = settings.get(KERNEL_FACTOR) or self.study.target.kernel or ""
        written = {
            table.name: table.levels[factor.levels.index(level)]
            for table, factor, level in zip(self.study.factors, self.factors, levels, strict=True)
        }
        texts = {name: text for t in self.study.factors for name, text in set_by(t, written[t.name]).items()}
        parts = _parts(settings, texts, self.knobs, kernel, self.study, self.catalogue)
        background, loads = self.commands.background(written)
        served = self.commands.services.of(parts.services, parts.service_settings, written)
        return ResolvedConfiguration(
            configuration=Configuration(
                name=_name(self.study, self.knobs, kernel, levels) or self.commands.words,
                levels={factor.name: level for factor, level in zip(self.factors, levels, strict=True)},
                baseline=all(level == factor.baseline for factor, level in zip(self.factors, levels, strict=True)),
            ),
            kernel=kernel,
            kernel_arguments=parts.kernel_arguments,
            writes=tuple(parts.writes),
            workload=self.commands.workload(
                parts.parameters, parts.attributes, chosen.get(COMMAND_FACTOR), parts.limits
            ),
            background=background,
            loads=loads,
            modules=self.commands.modules(parts.parameters),
            scheduler=parts.scheduler,
            scratch=self.commands.scratch(parts.scratch),
            before=self.commands.before(parts.scheduler, served),
            after=self.commands.after(parts.scheduler, served),
            services=served.services,
            boot=boot_state((n, level) for n, level in settings.items() if is_boot_name(n))
            if self.study.across_boots
            else None,
        )

    def build_study(self, configurations: tuple[ResolvedConfiguration, ...]) -> ResolvedStudy:
        """Return the study with these configurations, which it made; each level of each factor is in one of them."""
        kind = self.catalogue.workloads.get(self.study.workload.kind or "")
        deciding = deciding_metrics(self.study, self.catalogue)
        described = described_metrics(self.study, self.catalogue)
        once = self.study.target.on_host
        return ResolvedStudy(
            study=self.study,
            factors=self.factors,
            configurations=configurations,
            deciding=deciding,
            described=described,
            counters=counters_for([metric.column for metric in (*deciding, *described)]),
            parser=kind.parser if kind else "",
            patterns=tuple(
                Pattern(metric=m.name, pattern=m.pattern, stream=m.stream, unit=m.unit)
                for m in self.study.workload.metrics
                if m.pattern is not None
            ),
            pointers=tuple(
                Pointer(metric=m.name, pointer=m.pointer, stream=m.stream, unit=m.unit)
                for m in self.study.workload.metrics
                if m.pointer is not None
            ),
            samplers=resolve_samplers(self.study),
            timelines=resolve_timelines(self.study),
            shares=wants_shares(self.study),
            rule=self.catalogue.rules.get(self.study.analysis.prediction or ""),
            setup=(*self.commands.setup, *self.commands.services.made) if once else (),
            cleanup=(*self.commands.cleanup, *self.commands.removed, *self.commands.services.removed) if once else (),
            programs=self.commands.programs,
            files={name: str(path.absolute()) for name, path in study_files(self.study).items()},
            explained=explain(self.study, self.knobs, self.factors, self.catalogue),
            notes=(*successor_notes(self.knobs), *guest_notes(self.study, self.catalogue), *self.study.notes),
            modelled=modelled_machine(self.study, self.catalogue),
            modules=self._modules(),
        )

    def _modules(self) -> tuple[str, ...]:
        # Those that the study does not name itself, with or without parameters.
        listed = {words.split()[0] for words in self.study.target.modules}
        levels = [set_by(table, level) for table in self.study.factors for level in table.levels]
        needed = [
            factor_knob.tunable.modules.get(value, "")
            for settings in levels
            for name, value in settings.items()
            for factor_knob in self.knobs.get(name, {}).values()
        ]
        made, types = self.study.scratch, self.catalogue.tunables.get(f"{PREFIX}type")
        if made is not None and types is not None:
            needed += ["" if made.device else "loop", types.modules.get(made.filesystem, "")]
        return tuple(dict.fromkeys(name for name in needed if name and name not in listed))


def resolver(
    study: Study,
    catalogue: Catalogue,
    kernels: Mapping[str, KernelVersion],
    find_program: FindProgram,
    site: Site = GUEST,
) -> Resolver:
    """Return the resolver of ``study``'s configurations; arguments and errors as of ``resolve``."""
    knobs: Knobs = {}
    for index in range(len(study.factors)):
        knobs |= _knobs(index, study, catalogue, kernels)
    factors = tuple(_factor(table, knobs, study, catalogue) for table in study.factors)
    return Resolver(study, factors, knobs, CommandResolver(study, catalogue, find_program, site), catalogue)


def _knobs(index: int, study: Study, catalogue: Catalogue, kernels: Mapping[str, KernelVersion]) -> Knobs:
    table = study.factors[index]
    knobs: Knobs = {}
    for name in filter(is_tunable, names_set(table)):
        tunable = catalogue.find_tunable(name)
        for spec in _kernels_with(name, table, study):
            try:
                factor_knob = knob(tunable, kernels[spec], catalogue, successor=table.successor)
            except RequestError as failure:
                field = "settings" if table.settings else "name"
                raise failure.at(study.place("factor", index, field)) from None
            values = _values(index, name, study, factor_knob, catalogue)
            knobs.setdefault(name, {})[spec] = replace(factor_knob, values=values)
    return knobs


def _kernels_with(name: str, table: FactorTable, study: Study) -> tuple[str, ...]:
    # On which kernels a level of `table` sets `name`: a level with a kernel of its own is on no other.
    if not (table.settings and table.kernels):
        return study.kernels or (HOST_KERNEL,)
    settings = (table.settings[level] for level in table.levels)
    return tuple(
        dict.fromkeys(
            level_settings.get(KERNEL_FACTOR, study.target.kernel or "")
            for level_settings in settings
            if name in level_settings
        )
    )


def _values(index: int, name: str, study: Study, factor_knob: Knob, catalogue: Catalogue) -> dict[str, str]:
    # A successor can have another range than the tunable that the levels were checked against.
    table = study.factors[index]
    values: dict[str, str] = {}
    for number, level in enumerate(table.levels):
        text = set_by(table, level).get(name)
        if text is None:
            continue
        try:
            values[text] = catalogue.check_level(factor_knob.tunable, text, factor_knob.version)
        except RequestError as failure:
            path = ("settings", level, name) if table.settings else ("levels", number)
            raise failure.at(study.place("factor", index, *path)) from None
    baseline = table.baseline_level
    if not table.settings and baseline not in values:  # the level of a range, written in another way
        values[baseline] = catalogue.check_level(factor_knob.tunable, baseline, factor_knob.version)
    return values


def _factor(table: FactorTable, knobs: Knobs, study: Study, catalogue: Catalogue) -> Factor:
    # The factor by the names of what is really varied: several, with slashes, where kernels differ in that.
    by_kernel = knobs.get(table.name, {}) if not table.settings else {}
    names = list(dict.fromkeys(knob.tunable.name for knob in by_kernel.values())) or [table.name]

    def text(level: str) -> str:
        if by_kernel:
            return next(iter(by_kernel.values())).values[level]
        if (parameter := workload_parameter(table.name)) and not table.settings:
            kind = catalogue.find_workload(study.workload.kind or "")
            return check_parameter(table.name, kind.parameters[parameter], level)
        if (part := service_part(table.name, study.workload)) and part.is_attribute and not table.settings:
            return catalogue.check_level(catalogue.find_tunable(part.name), level)
        return level

    return Factor(
        name="/".join(names),
        levels=tuple(map(text, table.levels)),
        baseline=text(table.baseline_level),
        span=factor_span(table, study, catalogue),
        in_order=table.in_order,
    )


def _name(study: Study, knobs: Knobs, kernel: str, levels: tuple[str, ...]) -> str:
    # Name a configuration by its levels; in an ablation by its lines.
    varied = [
        (table, level)
        for table, level in zip(study.factors, levels, strict=True)
        if len(table.levels) > 1 or not any(len(other.levels) > 1 for other in study.factors)
    ]
    if study.design.combine == "ablation":
        there = frozenset(place for place, (table, level) in enumerate(varied) if level != table.baseline_level)
        return subset_name(there, [table.name for table, _ in varied])
    return " ".join(_level_name(table, knobs.get(table.name, {}).get(kernel), level) for table, level in varied)


@dataclass
class _Parts:
    # What a configuration sets, by where it goes.
    writes: list[Write] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    scratch: dict[str, str] = field(default_factory=dict)
    services: dict[str, dict[str, str]] = field(default_factory=dict)
    service_settings: dict[str, dict[str, str]] = field(default_factory=dict)
    scheduler: str = ""
    kernel_arguments: tuple[str, ...] = ()


def _parts(
    levels: Mapping[str, str],
    texts: Mapping[str, str],
    knobs: Knobs,
    kernel: str,
    study: Study,
    catalogue: Catalogue,
) -> _Parts:
    # `texts` are the levels as the study gives them.
    parts = _Parts()
    for name, level in levels.items():
        if parameter := workload_parameter(name):
            parts.parameters[parameter] = level
        elif part := service_part(name, study.workload):
            service = service_called(part, study.workload).called
            if part.is_attribute:
                value = catalogue.check_level(catalogue.find_tunable(part.name), level)
                parts.services.setdefault(service, {})[part.name] = value
            else:
                parts.service_settings.setdefault(service, {})[part.name] = level
        elif name == KERNEL_ARGUMENTS:
            parts.kernel_arguments = tuple(level.split())
        elif name in knobs:
            _set_tunable(parts, knobs[name][kernel], texts[name])
    return parts


def _set_tunable(parts: _Parts, factor_knob: Knob, text: str) -> None:
    value = factor_knob.values[text]
    match factor_knob.location:
        case ProcessAttribute(name=name):
            parts.attributes[name] = value
        case CgroupLimit(name=name):
            parts.limits[name] = value
        case ScratchAttribute(name=name):
            parts.scratch[name] = value
        case SchedulerProgram():
            parts.scheduler = "" if value == NO_SCHEDULER else value
        case location:
            parts.writes.append(Write(tunable=factor_knob.tunable.name, location=location, value=value))


def _level_name(table: FactorTable, factor_knob: Knob | None, level: str) -> str:
    # A level in the name of a configuration. Commands and settings that were put together speak for themselves.
    if table.name in (COMMAND_FACTOR, SETTINGS_FACTOR):
        return level
    return f"{factor_knob.tunable.name if factor_knob and not table.settings else table.name}={level}"
