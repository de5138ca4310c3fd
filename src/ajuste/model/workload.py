"""Workloads: a command with parameters, its background load, and what is read from its output."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ajuste.model.metric import Metric


class Parameter(BaseModel):
    """A parameter of a bundled workload; ``{name}`` in its command is replaced by the value (never through a
    shell).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    what: str
    type: Literal["integer", "choice", "flag"] = "integer"
    default: str
    minimum: int | None = None
    maximum: int | None = None
    choices: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class WorkloadKind(BaseModel):
    """A catalogue entry. ``parser`` names a module of ``ajuste.parse``; ``package`` the Debian package of
    ``program``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    title: str
    what: str
    program: str
    arguments: tuple[str, ...] = ()
    package: str = ""
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    parser: str = ""
    metrics: tuple[Metric, ...] = ()
    endless: bool = False
