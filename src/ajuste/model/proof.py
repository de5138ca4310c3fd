"""What a running kernel was seen to have."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

PROOFS: Final = "proofs"
"""Where the environment of a run has its proofs, by the name of each machine."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Sight(_Part):
    """One thing that was looked at in the running kernel, and what was found."""

    what: str
    found: str


class Shown(_Part):
    """A feature as the running kernel shows it.

    ``present`` is ``None`` where that cannot be told. ``value`` is what there is of it, for a feature that every kernel
    has in one way or another (``250`` of hz). ``options`` are those of the kernel's configuration, which prove nothing:
    ``y``, ``m``, ``n``, or ``?`` where there is no configuration. ``claim`` is what was asked for, ``holds`` whether it
    is so.
    """

    feature: str
    title: str
    present: bool | None
    value: str = ""
    evidence: tuple[Sight, ...] = ()
    options: dict[str, str] = {}
    claim: str = ""
    holds: bool = True

    @property
    def state(self) -> str:
        """In a word: ``yes``, ``no``, ``not known``, or the value."""
        if self.present is None:
            return "not known"
        return (self.value or "yes") if self.present else "no"


class Proof(_Part):
    """All that was looked for in one kernel. ``arguments`` are words of its command line."""

    kernel: str
    release: str
    build: str
    arguments: tuple[str, ...] = ()
    features: tuple[Shown, ...]

    @property
    def broken(self) -> tuple[Shown, ...]:
        """The claims that do not hold."""
        return tuple(shown for shown in self.features if not shown.holds)
