"""Workloads: a command with parameters, its background load, and what is read from its output."""

from __future__ import annotations

import re
from typing import Final, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from ajuste.model.base import ClosedModel
from ajuste.model.cause import Cause
from ajuste.model.metric import Metric, MetricFamily, expand_families

ELAPSED: Final = "elapsed"
# Placeholder of a parameter: `{name}` in a workload's arguments stands for the parameter of that name.
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class Parameter(ClosedModel):
    """A parameter of a bundled workload.

    ``integer``: ``{name}`` is replaced by the number, ``minimum`` … ``maximum``. ``choice``: an argument that is just
    ``{name}`` is replaced by the arguments that ``choices`` has for the value, which may be none at all. ``flag``: the
    same with the values ``0`` and ``1``. ``file``: ``{name}`` is replaced by the name of a file.

    ``modules`` has, by value, a kernel module of Ajuste's own that the workload needs then: it is built for the guest's
    kernel, and never loaded on this machine.

    ``chosen_by`` is who may choose the value on this machine: ``anyone``, also an agent; or its ``owner``, because the
    value names a path or reaches beyond the workload (see ``model.capability``).
    """

    what: str
    type: Literal["integer", "choice", "flag", "file"] = "integer"
    default: str
    unit: str = ""
    minimum: int | None = None
    maximum: int | None = None
    choices: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    modules: dict[str, str] = Field(default_factory=dict)
    chosen_by: Literal["owner", "anyone"] = "owner"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.type == "integer" and (self.minimum is None or self.maximum is None):
            raise ValueError("an integer needs a minimum and a maximum")
        if self.type == "choice" and self.default not in self.choices:
            raise ValueError("the default is not among the choices")
        if self.type == "flag" and set(self.choices) != {"0", "1"}:
            raise ValueError("the choices of a flag are 0 and 1")
        if not set(self.modules) <= set(self.choices):
            raise ValueError("modules are for values among the choices")
        if self.type == "file" and self.chosen_by == "anyone":
            raise ValueError("a file is its owner's to choose")
        return self


class ServiceKind(ClosedModel):
    """A server whose own settings can be passed as arguments: ``setting`` are those of one, with ``{name}`` and
    ``{value}``, which match ``names`` (such as ``example``) and ``values``. Of an option that is obeyed ``once`` the
    texts are joined.

    ``running`` are patterns of the settings that a running server takes at once, and ``risks`` says which of them can
    lose data, and how. ``acts_on`` are the causes of lost time of those that match a pattern (the first that does), and
    ``tries`` the levels of a setting that are worth trying, as for a ``Tunable``.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    title: str
    programs: tuple[str, ...] = Field(min_length=1)
    setting: tuple[str, ...] = Field(min_length=1)
    names: str = r"[A-Za-z_][A-Za-z0-9_.-]*"
    example: str = "max_connections"
    values: str = r".*"
    once: bool = False
    running: tuple[str, ...] = ()
    risks: dict[str, str] = Field(default_factory=dict)
    acts_on: dict[str, tuple[Cause, ...]] = Field(default_factory=dict)
    tries: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        text = " ".join(self.setting)
        if "{name}" not in text or "{value}" not in text:
            raise ValueError("a setting needs {name} and {value}")
        if self.once and len(self.setting) != 2:
            raise ValueError("an option that is given once is an option and its text")
        if not re.fullmatch(self.names, self.example):
            raise ValueError(f"the example {self.example} does not match {self.names}")
        return self

    def pass_setting(self, command: tuple[str, ...], name: str, value: str) -> tuple[str, ...]:
        """Return ``command`` with the setting."""
        words = tuple(word.replace("{name}", name).replace("{value}", value) for word in self.setting)
        if self.once and words[0] in command[:-1]:
            at = len(command) - 2 - command[-2::-1].index(words[0])
            return (*command[: at + 1], f"{command[at + 1]} {words[1]}", *command[at + 2 :])
        return (*command, *words)


class KindService(ClosedModel):
    """A server that a workload needs, as in a study's ``[[workload.service]]``: ``{port}`` is its port and ``{data}``
    the directory of its data, there and in the workload's arguments.
    """

    name: str
    command: tuple[str, ...]
    ready: str | tuple[str, ...] | None = None
    stop: str = "TERM"
    data: tuple[str, ...] | None = None
    setting: tuple[str, ...] | None = None


class WorkloadKind(ClosedModel):
    """A catalogue entry. ``parser`` names a module of ``ajuste.outputs``; ``package`` the Debian package of
    ``program``, ``needs`` more programs that it starts, with theirs. ``endless`` workloads never end by themselves:
    they are for the background. One that ``writes`` files runs where Ajuste was called, others need no place. ``main``
    is the one of ``metrics`` that people ask for; ``each`` has the families of those that are alike (see
    ``expand_families``). ``services`` are the servers of a study that names none itself.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    title: str
    what: str
    program: str
    arguments: tuple[str, ...] = ()
    package: str = ""
    needs: dict[str, str] = Field(default_factory=dict)
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    parser: str = ""
    each: dict[str, MetricFamily] = Field(default_factory=dict, exclude=True)
    metrics: tuple[Metric, ...] = ()
    main: str = ""
    endless: bool = False
    writes: bool = False
    services: tuple[KindService, ...] = Field(default=(), alias="service")

    @field_validator("metrics")
    @classmethod
    def _expand(cls, metrics: tuple[Metric, ...], info: ValidationInfo) -> tuple[Metric, ...]:
        return tuple(expand_families(metrics, info.data.get("each", {})))

    @model_validator(mode="after")
    def _complete(self) -> Self:
        used = {name for argument in self.arguments for name in PLACEHOLDER.findall(argument)}
        if used - ({"port", "data"} if self.services else set()) != set(self.parameters):
            raise ValueError(f"arguments use {sorted(used)}, parameters are {sorted(self.parameters)}")
        if self.main and self.main not in {metric.name for metric in self.metrics}:
            raise ValueError(f"the main metric {self.main} is not among the metrics")
        return self

    @property
    def leading_metrics(self) -> tuple[str, ...]:
        """The main metric and ``elapsed``, first what a person feels: in CPU time no waiting shows."""
        main = next((metric for metric in self.metrics if metric.name == self.main), None)
        if main is None:
            return (ELAPSED,)
        return (ELAPSED, main.name) if main.cpu_time else (main.name, ELAPSED)
