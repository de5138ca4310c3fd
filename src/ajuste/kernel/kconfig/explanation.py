"""Why an option of a kernel has its value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict

Cause = Literal["asked", "dependency", "selected", "choice", "hidden", "default", "range", "unknown"]
"""``asked``: the configuration says so and may; ``dependency``: a ``depends on`` (or the condition of a prompt) is
not met; ``selected``: other options force it on; ``choice``: of a group another one is taken; ``hidden``: it has no
prompt, so it can only follow from others; ``default``: nobody said anything; ``range``: a number beyond its limits;
``unknown``: this kernel has no such option."""


class Option(BaseModel):
    """What a kernel's Kconfig says of an option: ``title`` is its prompt, ``help`` the first sentence of its help,
    ``menus`` the menus around it, outermost first, ``file`` where it is defined, below the source.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    kind: Literal["bool", "tristate", "string", "int", "hex"]
    title: str = ""
    help: str = ""
    menus: tuple[str, ...] = ()
    file: str = ""
    line: int = 0

    @property
    def directory(self) -> str:
        """Where its code most probably is, e.g. ``net/mptcp``."""
        return self.file.rpartition("/")[0]


class Explanation(BaseModel):
    """Why the option ``name`` has its ``value``, as ``sentence`` says; ``wanted`` is the value it was compared with,
    if any.

    ``deciding`` are the options that it follows from, most direct first: what is not met of its dependencies, what
    selects it, what is taken instead. ``because`` says of those that were not simply asked for why they are so.
    ``nearest`` are names like that of an unknown option.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    value: str
    wanted: str | None = None
    cause: Cause
    sentence: str
    deciding: tuple[str, ...] = ()
    because: tuple[Explanation, ...] = ()
    nearest: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """The whole chain, from the option to what decides."""
        yield self.sentence
        for cause in self.because:
            yield from cause.sentences()

    def hint(self) -> str:
        """The chain in one text, for an error."""
        return "\n".join(dict.fromkeys(self.sentences()))
