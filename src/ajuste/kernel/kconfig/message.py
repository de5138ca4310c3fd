"""What is asked of the process that reads a Kconfig tree, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import ConfigDict

from ajuste.model.base import BaseModel


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class KconfigQuestion(_Message):
    """About one configuration, ``config``: the value of each option as text, ``n`` where it is off.

    ``explain`` has for each option in question the value that was wanted, if any; ``describe`` further options that are
    only to be described; ``defaults`` those whose value without the configuration's word is wanted; ``values`` asks for
    the value of all.
    """

    config: dict[str, str]
    explain: dict[str, str | None] = {}
    describe: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    values: bool = False


class KconfigReading(_Message):
    """What the reader of Kconfig files found."""

    asked: tuple[KconfigQuestion, ...]


class KconfigAnswer(_Message):
    """``options`` has those that the kernel has. ``values`` is what the whole configuration comes to once Kconfig has
    applied its rules.
    """

    explanations: dict[str, OptionExplanation] = {}
    options: dict[str, KconfigOption] = {}
    values: dict[str, str] = {}
    defaults: dict[str, str] = {}


# Why an option of a kernel has its value.


Cause = Literal["asked", "dependency", "selected", "choice", "hidden", "default", "range", "unknown"]
"""``asked``: the configuration says so and may; ``dependency``: a ``depends on`` (or the condition of a prompt) is
not met; ``selected``: other options force it on; ``choice``: of a group another one is taken; ``hidden``: it has no
prompt, so it can only follow from others; ``default``: nobody said anything; ``range``: a number beyond its limits;
``unknown``: this kernel has no such option."""


class KconfigOption(BaseModel):
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


class OptionExplanation(BaseModel):
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
    because: tuple[OptionExplanation, ...] = ()
    nearest: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """The whole chain, from the option to what decides."""
        yield self.sentence
        for cause in self.because:
            yield from cause.sentences()

    def hint(self) -> str:
        """The chain in one text, for an error."""
        return "\n".join(dict.fromkeys(self.sentences()))
