"""In which build options the kernels of a run differ."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

KERNEL_OPTIONS: Final = "kernel options"
"""Where the environment of a run has them, by kernel."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Option(_Part):
    """An option with its values in the baseline's kernel and in this one; ``because`` says what it comes from, if that
    is known.
    """

    name: str
    title: str
    baseline: str
    own: str
    because: str


class KernelOptions(_Part):
    """What is otherwise than in the kernel ``baseline``: ``total`` options. Some are told, first those that were
    asked for.
    """

    baseline: str
    total: int
    options: tuple[Option, ...]
