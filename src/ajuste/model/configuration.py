"""Factors and configurations: what is varied, and one choice of it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ajuste.model.span import Span

KERNEL_FACTOR = "kernel"
COMMAND_FACTOR = "command"
SETTINGS_FACTOR = "settings"
"""What a factor is called whose levels speak for themselves: ``vm.swappiness=10 nice=5``."""


class Factor(BaseModel):
    """A tunable, process attribute, workload parameter (``workload.NAME``), ``kernel``, ``command``, or a name for
    several settings at once, with the levels under study.

    Levels are text as they are written, in the order given; ``baseline`` is one of them. ``span`` is the range of a
    numeric one that was given as a range.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    levels: tuple[str, ...] = Field(min_length=1)
    baseline: str
    span: Span | None = None


class Configuration(BaseModel):
    """One level for every factor, in the factors' order. ``name`` is unique in a study, e.g. ``nice=4
    base_slice_ns=3000000``.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    levels: dict[str, str]
    baseline: bool = False
