"""What is asked of the process that reads a Kconfig tree, and what it answers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from ajuste.kernel.kconfig.explanation import Explanation, Option


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True)


class Asked(_Message):
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


class Reading(_Message):
    asked: tuple[Asked, ...]


class Answer(_Message):
    """``options`` has those that the kernel has. ``values`` is what the whole configuration comes to once Kconfig has
    applied its rules.
    """

    explanations: dict[str, Explanation] = {}
    options: dict[str, Option] = {}
    values: dict[str, str] = {}
    defaults: dict[str, str] = {}
