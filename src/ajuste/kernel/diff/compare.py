"""Two configurations side by side, with what the Kconfig files of their sources say of what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ajuste.kernel.diff.difference import Difference, Side
from ajuste.kernel.diff.kconfig_source import KconfigSource, series_of, source_for
from ajuste.kernel.diff.named import NamedConfig
from ajuste.kernel.diff.origin import Known, changes, differing
from ajuste.kernel.kconfig.config_file import ConfigFile, Setting
from ajuste.kernel.kconfig.message import Answer, Asked
from ajuste.kernel.kconfig.tree import as_values, ask
from ajuste.model.error import AjusteError

Say = Callable[[str], None]


def compare(a: NamedConfig, b: NamedConfig, sources: Sequence[KconfigSource], say: Say) -> Difference:
    """What differs from ``a`` to ``b``. Where no source is here, or it cannot be read, that side says so and what
    differs is told without its reasons.
    """
    names = differing(a.config, b.config)
    source_a, source_b = source_for(a, sources), source_for(b, sources)
    asked_a, asked_b = _asked(names, a.config, b.config), _asked(names, b.config, a.config)
    one_source = source_a is not None and source_a == source_b
    lacking_a, lacking_b = _lacking(a, source_a), _lacking(b, source_b)
    answer_a: Answer | None = None
    answer_b: Answer | None = None
    try:
        if source_a is not None and one_source and names:
            answer_a, answer_b = _read(source_a, [asked_a, asked_b], say)
        elif names:
            answer_a = _read(source_a, [asked_a], say)[0] if source_a else None
            answer_b = _read(source_b, [asked_b], say)[0] if source_b else None
    except AjusteError as error:
        lacking_a = lacking_a or error.message
        lacking_b = lacking_b or error.message
    known_a = Known(a.config, answer_a, a.asked)
    known_b = Known(b.config, answer_b, b.asked)
    return Difference(
        a=_side(a, source_a if answer_a else None, lacking_a),
        b=_side(b, source_b if answer_b else None, lacking_b),
        changes=changes(known_a, known_b, one_source=one_source),
    )


def _read(source: KconfigSource, asked: list[Asked], say: Say) -> tuple[Answer, ...]:
    say(f"reading the Kconfig files of {source.title}")
    return ask(source.tree, asked)


def _asked(names: Sequence[str], own: ConfigFile, other: ConfigFile) -> Asked:
    return Asked(
        config=as_values(own), explain={name: _as_wanted(other[name]) for name in names}, defaults=tuple(names)
    )


def _as_wanted(setting: Setting) -> str:
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
        return "its file does not say which kernel it is for"
    return f"the source of a kernel {series} is not here"
