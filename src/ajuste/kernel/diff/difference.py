"""What differs between the build options of two kernels: option by option, and what each difference comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

Reason = Literal["asked", "follows", "default", "rules", "compiler", "unknown"]
"""Why an option is otherwise in B: ``asked``, it was free to be set; ``follows``, from other options that differ;
``default``, what nobody sets is now otherwise; ``rules``, the Kconfig files of the version are otherwise;
``compiler``, a test of the tools that built it; ``unknown`` where there is no source that would tell."""
Kind = Literal["changed", "new", "gone"]

ELSEWHERE: Final = "Elsewhere"
_MOST_CAUSES: Final = 4


class Change(BaseModel):
    """An option that differs. ``a`` and ``b`` are its values as in a .config, or ``absent``. It is ``new`` or ``gone``
    if the other version has no option of that name. ``follows_from`` are other changes that bring it with them, most
    direct first; ``why`` says it in full. ``title`` is its prompt, ``help`` a sentence, ``file`` where it is defined.
    """

    model_config = ConfigDict(frozen=True)
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
            return "asked for"
        if self.reason == "follows":
            others = ("others",) if self.follows_from[_MOST_CAUSES:] else ()
            return f"because of {', '.join((*self.follows_from[:_MOST_CAUSES], *others))}"
        return "" if self.reason == "unknown" else self.why.partition("\n")[0]

    @property
    def in_neither(self) -> bool:
        """Whether it only could be chosen in one of both, and was not."""
        return {self.a, self.b} <= {"n", "absent"}


class Side(BaseModel):
    """One of both kernels. ``kernel`` and ``compiler`` are what its configuration says, ``source`` the Kconfig files
    that were read for it, ``lacking`` why there are none, ``asked`` the options that were asked for when it was built
    here.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    kernel: str = ""
    compiler: str = ""
    options: int = 0
    source: str = ""
    lacking: str = ""
    asked: Mapping[str, str] = {}


class Difference(BaseModel):
    """All that differs, by name; what is in neither kernel comes last."""

    model_config = ConfigDict(frozen=True)
    a: Side
    b: Side
    changes: tuple[Change, ...]

    @property
    def effective(self) -> tuple[Change, ...]:
        """What is otherwise in the kernels themselves."""
        return tuple(change for change in self.changes if not change.in_neither)

    def counts(self) -> dict[str, int]:
        """How many of the effective changes there are of each reason, and how many of the others."""
        reasons: list[str] = [change.reason for change in self.effective]
        found = {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}
        return {"total": len(reasons), **found, "in_neither": len(self.changes) - len(reasons)}

    def followers(self) -> Counter[str]:
        """How many changes each one brings with it directly."""
        return Counter(name for change in self.effective for name in change.follows_from)

    def groups(self, depth: int = 2) -> dict[str, tuple[Change, ...]]:
        """The effective changes by the ``depth`` outermost menus they are in; in each what was asked for first, and of
        that what most others follow from.
        """
        order: tuple[Reason, ...] = ("asked", "default", "follows", "rules", "compiler", "unknown")
        followers = self.followers()
        found: dict[str, list[Change]] = {}
        for change in self.effective:
            found.setdefault(change.subsystem(depth), []).append(change)

        def rank(change: Change) -> tuple[int, int, str]:
            return order.index(change.reason), -followers[change.name], change.name

        names = sorted(found, key=lambda name: (name == ELSEWHERE, name))
        return {name: tuple(sorted(found[name], key=rank)) for name in names}

    def within(self, text: str) -> Difference:
        """Only the changes whose name, menus or file have ``text`` in them."""
        wanted = text.casefold()
        kept = [
            change
            for change in self.changes
            if any(wanted in place.casefold() for place in (*change.menus, change.file, change.name))
        ]
        return self.model_copy(update={"changes": tuple(kept)})
