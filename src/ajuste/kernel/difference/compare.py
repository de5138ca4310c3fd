"""Two configurations side by side, with what the Kconfig files of their sources say of what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ajuste.kernel.difference.difference import (
    KernelDifference,
    KnownOptions,
    OptionDifference,
    Side,
    changes,
    differing,
)
from ajuste.kernel.difference.named import (
    KconfigSource,
    NamedConfig,
    kconfig_sources,
    named_config,
    series_of,
    source_for,
)
from ajuste.kernel.kconfig.config_file import ConfigFile, ConfigSetting
from ajuste.kernel.kconfig.message import KconfigAnswer, KconfigQuestion
from ajuste.kernel.kconfig.tree import as_values, ask
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError
from ajuste.model.kernel import DifferingOption, KernelImage, KernelOptions
from ajuste.model.wording import Say


def compare(a: NamedConfig, b: NamedConfig, sources: Sequence[KconfigSource], say: Say) -> KernelDifference:
    """What differs from ``a`` to ``b``. Where no source is here, or it cannot be read, that side says so and what
    differs is told without its reasons.
    """
    names = differing(a.config, b.config)
    source_a, source_b = source_for(a, sources), source_for(b, sources)
    asked_a, asked_b = _asked(names, a.config, b.config), _asked(names, b.config, a.config)
    one_source = source_a is not None and source_a == source_b
    lacking_a, lacking_b = _lacking(a, source_a), _lacking(b, source_b)
    answer_a: KconfigAnswer | None = None
    answer_b: KconfigAnswer | None = None
    try:
        if source_a is not None and one_source and names:
            answer_a, answer_b = _read(source_a, [asked_a, asked_b], say)
        elif names:
            answer_a = _read(source_a, [asked_a], say)[0] if source_a else None
            answer_b = _read(source_b, [asked_b], say)[0] if source_b else None
    except AjusteError as error:
        lacking_a = lacking_a or error.message
        lacking_b = lacking_b or error.message
    known_a = KnownOptions(a.config, answer_a, a.asked)
    known_b = KnownOptions(b.config, answer_b, b.asked)
    return KernelDifference(
        a=_side(a, source_a if answer_a else None, lacking_a),
        b=_side(b, source_b if answer_b else None, lacking_b),
        changes=changes(known_a, known_b, one_source=one_source),
    )


def _read(source: KconfigSource, asked: list[KconfigQuestion], say: Say) -> tuple[KconfigAnswer, ...]:
    say(f"reading the Kconfig files of {source.title}")
    return ask(source.tree, asked)


def _asked(names: Sequence[str], own: ConfigFile, other: ConfigFile) -> KconfigQuestion:
    return KconfigQuestion(
        config=as_values(own), explain={name: _as_wanted(other[name]) for name in names}, defaults=tuple(names)
    )


def _as_wanted(setting: ConfigSetting) -> str:
    return setting.text if setting.is_on else "n"


def _side(named: NamedConfig, source: KconfigSource | None, lacking: str) -> Side:
    return Side(
        name=named.name,
        kernel=named.config.kernel,
        compiler=named.config.compiler,
        options=sum(setting.is_on for setting in named.config.settings.values()),
        source=source.title if source else "",
        lacking="" if source else lacking,
        asked=dict(named.asked),
    )


def _lacking(named: NamedConfig, source: KconfigSource | None) -> str:
    if source is not None:
        return ""
    series = series_of(named.config.kernel)
    if not series:
        return "its file has no kernel version"
    return f"the source of kernel {series} is not cached"


# Kernels that are compared with each other in a study: in which build options each differs from the baseline's.


MOST_OPTIONS: Final = 40


def compared_options(
    baseline: str, images: Mapping[str, KernelImage], home: Home, say: Say
) -> dict[str, KernelOptions]:
    """For each of ``images``, by spec, that has the version of the ``baseline``'s. Between versions nearly all would be
    told, and what comes without its configuration has nothing to tell: these are left out.
    """
    version = images[baseline].version
    peers = [spec for spec, image in images.items() if spec != baseline and image.version == version]
    first = _config(baseline, home, say) if peers else None
    if first is None:
        return {}
    with kconfig_sources((), home, say) as sources:
        others = {spec: other for spec in peers if (other := _config(spec, home, say)) is not None}
        return {spec: _told(baseline, compare(first, other, sources, say)) for spec, other in others.items()}


def _config(spec: str, home: Home, say: Say) -> NamedConfig | None:
    try:
        return named_config(spec, home, say)
    except AjusteError:
        return None


def _told(baseline: str, difference: KernelDifference) -> KernelOptions:
    changes = sorted(difference.effective, key=lambda change: change.reason != "asked")
    return KernelOptions(baseline=baseline, total=len(changes), options=tuple(map(_option, changes[:MOST_OPTIONS])))


def _option(change: OptionDifference) -> DifferingOption:
    return DifferingOption(name=change.name, title=change.title, baseline=change.a, own=change.b, because=change.said)
