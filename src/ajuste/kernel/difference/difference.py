"""What differs between the build options of two kernels: option by option, and what each difference comes from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ajuste.kernel.kconfig.config_file import ConfigFile
from ajuste.kernel.kconfig.tree import KconfigAnswer, KconfigOption, OptionExplanation
from ajuste.model.base import BaseModel

Reason = Literal["asked", "follows", "default", "rules", "compiler", "unknown"]
"""Why an option differs in B: ``asked``, it was free to be set; ``follows``, from other options that differ;
``default``, a default changed; ``rules``, the Kconfig files of the versions differ;
``compiler``, a test of the tools that built it; ``unknown`` where there is no source that would tell."""
Kind = Literal["changed", "new", "gone"]

ELSEWHERE: Final = "Elsewhere"
_MOST_CAUSES: Final = 4


class OptionDifference(BaseModel):
    """An option that differs. ``a`` and ``b`` are its values as in a .config, or ``absent``. It is ``new`` or ``gone``
    if the other version has no option of that name. ``follows_from`` are other changes that bring it with them, most
    direct first; ``why`` says it in full. ``title`` is its prompt, ``help`` a sentence, ``file`` where it is defined.
    """

    name: str
    a: str
    b: str
    kind: Kind = "changed"
    reason: Reason = "unknown"
    follows_from: tuple[str, ...] = ()
    why: str = ""
    title: str = ""
    help: str = ""
    file: str = ""
    menus: tuple[str, ...] = ()

    def subsystem(self, depth: int = 2) -> str:
        """The ``depth`` outermost menus it is in: a name to group by."""
        return " › ".join(self.menus[:depth]) or ELSEWHERE

    @property
    def said(self) -> str:
        """In a few words where the difference comes from; empty where that is not known."""
        if self.kind != "changed":
            return "new in B's version" if self.kind == "new" else "gone in B's version"
        if self.reason == "asked":
            return "set explicitly"
        if self.reason == "follows":
            others = ("others",) if self.follows_from[_MOST_CAUSES:] else ()
            return f"because of {', '.join((*self.follows_from[:_MOST_CAUSES], *others))}"
        return "" if self.reason == "unknown" else self.why.partition("\n")[0]

    @property
    def in_neither(self) -> bool:
        """Whether only one kernel offers it, and does not use it."""
        return {self.a, self.b} <= {"n", "absent"}


class Side(BaseModel):
    """One of the two kernels. ``kernel`` and ``compiler`` are what its configuration says, ``source`` the Kconfig files
    that were read for it, ``lacking`` why there are none, ``asked`` the options that were asked for when it was built
    here.
    """

    name: str
    kernel: str = ""
    compiler: str = ""
    options: int = 0
    source: str = ""
    lacking: str = ""
    asked: Mapping[str, str] = {}


class KernelDifference(BaseModel):
    """All that differs, by name; what is in neither kernel comes last."""

    a: Side
    b: Side
    changes: tuple[OptionDifference, ...]

    @property
    def effective(self) -> tuple[OptionDifference, ...]:
        """What differs in the kernels themselves."""
        return tuple(change for change in self.changes if not change.in_neither)

    def counts(self) -> dict[str, int]:
        """How many of the effective changes there are of each reason, and how many of the others."""
        reasons: list[str] = [change.reason for change in self.effective]
        found = {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}
        return {"total": len(reasons), **found, "in_neither": len(self.changes) - len(reasons)}

    def followers(self) -> Counter[str]:
        """How many changes each one brings with it directly."""
        return Counter(name for change in self.effective for name in change.follows_from)

    def groups(self, depth: int = 2) -> dict[str, tuple[OptionDifference, ...]]:
        """The effective changes by the ``depth`` outermost menus they are in; in each what was asked for first, and of
        that what most others follow from.
        """
        order: tuple[Reason, ...] = ("asked", "default", "follows", "rules", "compiler", "unknown")
        followers = self.followers()
        found: dict[str, list[OptionDifference]] = {}
        for change in self.effective:
            found.setdefault(change.subsystem(depth), []).append(change)

        def rank(change: OptionDifference) -> tuple[int, int, str]:
            return order.index(change.reason), -followers[change.name], change.name

        names = sorted(found, key=lambda name: (name == ELSEWHERE, name))
        return {name: tuple(sorted(found[name], key=rank)) for name in names}

    def within(self, text: str) -> KernelDifference:
        """Only the changes whose name, menus or file have ``text`` in them."""
        wanted = text.casefold()
        kept = [
            change
            for change in self.changes
            if any(wanted in place.casefold() for place in (*change.menus, change.file, change.name))
        ]
        return self.model_copy(update={"changes": tuple(kept)})


# What a difference comes from, by the rules of one or both kernels.


_TOOLS: Final = re.compile(
    r"(CC|GCC|CLANG|AS|LD|LLD|RUST|RUSTC|PAHOLE|BINDGEN|TOOLCHAIN|GENKSYMS)_.*|CC_VERSION_TEXT|TOOLS_SUPPORT_.*"
)


@dataclass(frozen=True)
class KnownOptions:
    """A kernel's options, and what its Kconfig files say of those that differ: None where there are no files."""

    config: ConfigFile
    answer: KconfigAnswer | None = None
    asked: Mapping[str, str] = field(default_factory=dict)


def differing(a: ConfigFile, b: ConfigFile) -> tuple[str, ...]:
    """The options that are not written alike, by name."""
    return tuple(sorted(name for name in {*a.settings, *b.settings} if a[name] != b[name]))


def changes(a: KnownOptions, b: KnownOptions, *, one_source: bool) -> tuple[OptionDifference, ...]:
    """Every difference with what it comes from; ``one_source`` if the rules of both are the same ones."""
    names = differing(a.config, b.config)
    found = [_change(name, frozenset(names), a, b, one_source) for name in names]
    return tuple(sorted(found, key=lambda change: (change.in_neither, change.name)))


def _change(name: str, names: Collection[str], a: KnownOptions, b: KnownOptions, one_source: bool) -> OptionDifference:
    before, after = _explanation(a, name), _explanation(b, name)
    kind = _kind(name, a, b)
    reason, follows_from, why = _origin(name, names, a, b, one_source, kind)
    option = _option(b, name) or _option(a, name)
    menus = b.config.menus.get(name) or a.config.menus.get(name) or ()
    change = OptionDifference(
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
    name: str, names: Collection[str], a: KnownOptions, b: KnownOptions, one_source: bool, kind: Kind
) -> tuple[Reason, tuple[str, ...], str]:
    before, after = _explanation(a, name), _explanation(b, name)
    if name in b.asked or name in a.asked:
        return "asked", (), "it is set explicitly"
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
    name: str,
    names: Collection[str],
    before: OptionExplanation | None,
    a: KnownOptions,
    b: KnownOptions,
    one_source: bool,
) -> tuple[Reason, tuple[str, ...], str]:
    """What could be set in B: whether it has its value from somebody, or only is what it is by default."""
    value, was = b.config[name].text or "n", a.config[name].text or "n"
    by_default = b.answer is not None and b.answer.defaults.get(name) == value
    if before is not None and by_default and before.cause not in ("asked", "default", "choice"):
        if found := _through(before, names, name):
            return "follows", found, f"{before.sentence}; otherwise its default is {value}"
        if not one_source:
            return "rules", (), before.sentence
    if by_default and a.answer is not None and a.answer.defaults.get(name) == was:
        return "default", (), f"its default changes from {was} to {value}"
    if b.answer is None:
        return "unknown", (), ""
    return "asked", (), ""


def _foreign(name: str, a: KnownOptions, b: KnownOptions) -> str:
    """Says so if the sources that were read cannot have given an option its value: a distribution's patches can."""
    for known in (b, a):
        told = _explanation(known, name)
        if told is None:
            continue
        setting = known.config[name]
        if told.cause == "unknown":
            if setting.is_on:
                return "option not found in this source"
        elif told.value.casefold() != (setting.text.casefold() if setting.is_on else told.value and "n"):
            return f"by this source it is {told.value or 'empty'}, not {setting}"
    return ""


def _through(told: OptionExplanation, names: Collection[str], name: str) -> tuple[str, ...]:
    """The options among ``names`` that a value follows from: the most direct ones."""
    direct = tuple(one for one in told.deciding if one in names and one != name)
    if direct:
        return direct
    return tuple(dict.fromkeys(one for step in told.because for one in _through(step, names, name)))


def _kind(name: str, a: KnownOptions, b: KnownOptions) -> Kind:
    if a.answer is None or b.answer is None:
        return "changed"
    there = (name in a.answer.options, name in b.answer.options)
    return {(False, True): "new", (True, False): "gone"}.get(there, "changed")  # type: ignore[return-value]


def _explanation(known: KnownOptions, name: str) -> OptionExplanation | None:
    return known.answer.explanations.get(name) if known.answer else None


def _option(known: KnownOptions, name: str) -> KconfigOption | None:
    return known.answer.options.get(name) if known.answer else None
