"""What a difference comes from, by the rules of one or both kernels."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from ajuste.kernel.diff.difference import Change, Kind, Reason
from ajuste.kernel.kconfig.config_file import ConfigFile
from ajuste.kernel.kconfig.explanation import Explanation, Option
from ajuste.kernel.kconfig.message import Answer

_TOOLS: Final = re.compile(
    r"(CC|GCC|CLANG|AS|LD|LLD|RUST|RUSTC|PAHOLE|BINDGEN|TOOLCHAIN|GENKSYMS)_.*|CC_VERSION_TEXT|TOOLS_SUPPORT_.*"
)


@dataclass(frozen=True)
class Known:
    """A kernel's options, and what its Kconfig files say of those that differ: None where there are no files."""

    config: ConfigFile
    answer: Answer | None = None
    asked: Mapping[str, str] = field(default_factory=dict)


def differing(a: ConfigFile, b: ConfigFile) -> tuple[str, ...]:
    """The options that are not written alike, by name."""
    return tuple(sorted(name for name in {*a.settings, *b.settings} if a[name] != b[name]))


def changes(a: Known, b: Known, *, one_source: bool) -> tuple[Change, ...]:
    """Every difference with what it comes from; ``one_source`` if the rules of both are the same ones."""
    names = differing(a.config, b.config)
    found = [_change(name, frozenset(names), a, b, one_source) for name in names]
    return tuple(sorted(found, key=lambda change: (change.in_neither, change.name)))


def _change(name: str, names: Collection[str], a: Known, b: Known, one_source: bool) -> Change:
    before, after = _explanation(a, name), _explanation(b, name)
    kind = _kind(name, a, b)
    reason, follows_from, why = _origin(name, names, a, b, one_source, kind)
    option = _option(b, name) or _option(a, name)
    menus = b.config.menus.get(name) or a.config.menus.get(name) or ()
    change = Change(
        name=name,
        a=str(a.config[name]),
        b=str(b.config[name]),
        kind=kind,
        reason=reason,
        follows_from=follows_from,
        why=why if why or after is None or before is None else after.sentence,
        menus=menus,
    )
    if option is None:
        return change
    described = {"title": option.title, "help": option.help, "file": option.file, "menus": option.menus or menus}
    return change.model_copy(update=described)


def _origin(
    name: str, names: Collection[str], a: Known, b: Known, one_source: bool, kind: Kind
) -> tuple[Reason, tuple[str, ...], str]:
    before, after = _explanation(a, name), _explanation(b, name)
    if name in b.asked or name in a.asked:
        return "asked", (), "it was asked for by name"
    if _TOOLS.fullmatch(name):
        return "compiler", (), "the tools that built the kernels differ"
    if after is None and before is None:
        return "unknown", (), ""
    if kind != "changed":
        return "rules", (), ""
    if foreign := _foreign(name, a, b):
        return "rules", (), foreign
    if after is None or after.cause in ("asked", "default", "range"):
        return _of_free(name, names, before, a, b, one_source)
    for told in (after, before):
        if told is not None and (found := _through(told, names, name)):
            return "follows", found, "\n".join(told.sentences())
    if not one_source:
        return "rules", (), after.sentence
    return ("default" if after.cause == "hidden" else "asked"), (), after.sentence


def _of_free(
    name: str, names: Collection[str], before: Explanation | None, a: Known, b: Known, one_source: bool
) -> tuple[Reason, tuple[str, ...], str]:
    """What could be set in B: whether it has its value from somebody, or only is what it is by default."""
    value, was = b.config[name].text or "n", a.config[name].text or "n"
    by_default = b.answer is not None and b.answer.defaults.get(name) == value
    if before is not None and by_default and before.cause not in ("asked", "default", "choice"):
        if found := _through(before, names, name):
            return "follows", found, f"{before.sentence}; where it may be set, {value} is its default"
        if not one_source:
            return "rules", (), before.sentence
    if by_default and a.answer is not None and a.answer.defaults.get(name) == was:
        return "default", (), f"by default it was {was} and is {value}"
    if b.answer is None:
        return "unknown", (), ""
    return "asked", (), ""


def _foreign(name: str, a: Known, b: Known) -> str:
    """Says so if the sources that were read cannot have given an option its value: a distribution's patches can."""
    for known in (b, a):
        told = _explanation(known, name)
        if told is None:
            continue
        setting = known.config[name]
        if told.cause == "unknown":
            if setting.is_on:
                return "the source that was read has no such option"
        elif told.value.casefold() != (setting.text.casefold() if setting.is_on else told.value and "n"):
            return f"by the source that was read it would be {told.value or 'empty'}, not {setting}"
    return ""


def _through(told: Explanation, names: Collection[str], name: str) -> tuple[str, ...]:
    """The options among ``names`` that a value follows from: the most direct ones."""
    direct = tuple(one for one in told.deciding if one in names and one != name)
    if direct:
        return direct
    return tuple(dict.fromkeys(one for step in told.because for one in _through(step, names, name)))


def _kind(name: str, a: Known, b: Known) -> Kind:
    if a.answer is None or b.answer is None:
        return "changed"
    there = (name in a.answer.options, name in b.answer.options)
    return {(False, True): "new", (True, False): "gone"}.get(there, "changed")  # type: ignore[return-value]


def _explanation(known: Known, name: str) -> Explanation | None:
    return known.answer.explanations.get(name) if known.answer else None


def _option(known: Known, name: str) -> Option | None:
    return known.answer.options.get(name) if known.answer else None
