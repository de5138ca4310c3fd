"""The one family of errors. Raised where the cause is known, shown once at the edge (``ajuste.cli``)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from difflib import SequenceMatcher

# Longest name that suggestions are made for: longer ones are near to none, and comparing them takes long.
LONGEST_SUGGESTED: Final = 100


@dataclass(frozen=True)
class Place:
    """The place in a file where something is wrong. ``line`` counts from 1; ``field`` is a dotted path such as
    ``budget.max_blocks``.
    """

    file: Path | str
    line: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        text = str(self.file)
        if self.line is not None:
            text += f":{self.line}"
        if self.field:
            text += f": {self.field}"
        return text


class AjusteError(Exception):
    """Something went wrong that a person can understand.

    ``message`` says what was found and what would be right, ``hint`` what to do next (a command, nearest names).
    ``of_candidate`` says that the kernel, program or revision is at fault, not this machine: another one may do.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self, message: str, *, hint: str | None = None, place: Place | None = None, of_candidate: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.place = place
        self.of_candidate = of_candidate

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class RequestError(AjusteError):
    """The request was wrong and nothing was changed: exit code 2."""

    exit_code = 2

    def at(self, place: Place | None) -> RequestError:
        """Return the error with the ``place`` where it was asked for."""
        return RequestError(self.message, hint=self.hint, place=place, of_candidate=self.of_candidate)


class RunError(AjusteError):
    """The run failed; everything was restored and what was measured is kept: exit code 1."""

    exit_code = 1


# Least likeness of a part of a name to what was written: `nosuch` is no part of `instructions`.
LEAST_OF_PART: Final = 0.8


def nearest_names(
    name: str,
    known: Iterable[str],
    *,
    most: int = 1,
    likeness: int = 60,
    parts: bool = True,
) -> list[str]:
    """Return the ``known`` names similar to ``name``, nearest first; ``likeness`` goes up to 100.

    With ``parts`` a much shorter name is also like what it is a part of: ``balancing`` like ``numa_balancing_mode``.
    """
    from difflib import SequenceMatcher  # only a mistake needs it

    if not name or len(name) > LONGEST_SUGGESTED:
        return []
    matcher = SequenceMatcher(None, "", name, autojunk=False)
    scores = {other: 100 * _likeness(matcher, name, other, likeness / 100, parts=parts) for other in known}
    near = [other for other, score in scores.items() if score >= likeness]
    return sorted(near, key=lambda other: -scores[other])[:most]


def _likeness(matcher: SequenceMatcher[str], name: str, other: str, least: float, *, parts: bool) -> float:
    # Return the similarity of `other` to `name`, up to 1, or 0 below `least`. `matcher` knows `name`.
    matcher.set_seq1(other)
    short, long = sorted((len(name), len(other)))
    weight = 0.0  # of a part beside the whole: the smaller the part, the less
    if parts and short >= 3 and long >= 1.5 * short:
        weight = 0.9 if long < 8 * short else 0.6
    common = matcher.quick_ratio() * (short + long) / 2  # letters, in whatever order: most names have too few
    if not common or max(2 * common / (short + long), weight * common / short) < least:
        return 0.0
    part = _likeness_of_part(matcher, name, other) if weight else 0.0
    return max(matcher.ratio(), weight * part if part >= LEAST_OF_PART else 0.0)


def _likeness_of_part(matcher: SequenceMatcher[str], name: str, other: str) -> float:
    # Return the similarity of the shorter text to an equally long part of the longer.
    from difflib import SequenceMatcher

    length = min(len(name), len(other))
    shifts = {there - here for there, here, _ in matcher.get_matching_blocks()}
    pairs = ((other[max(0, shift) :][:length], name[max(0, -shift) :][:length]) for shift in shifts)
    # Letters that stand out at an end are none of the part: of `nope`, `ope` is in `openshift`, not all of it.
    return max(
        SequenceMatcher(None, there, here, autojunk=False).ratio() * (len(there) + len(here)) / (2 * length)
        for there, here in pairs
    )


def did_you_mean(names: Iterable[str]) -> str | None:
    """Return ``did you mean a or b?`` for a hint; ``None`` where there is no name."""
    text = " or ".join(names)
    return f"did you mean {text}?" if text else None
