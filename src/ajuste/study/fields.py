"""What fields of a study file may be: kinds of values, and the table that all tables are."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, StringConstraints, WithJsonSchema

from ajuste.model.cpus import parse_cpus

Whole = Annotated[int, Strict()]
Real = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Switch = Annotated[bool, Strict()]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$", max_length=80)]


def level_text(value: Any) -> str:
    """A level as text, as it is written to the kernel: ``true`` is ``1``."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError("expected a number, a text, true or false")


def _cpus_text(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, list | tuple) and value and all(type(v) is int for v in value):
        value = ",".join(map(str, value))
    parse_cpus(value if isinstance(value, str) else repr(value))
    return str(value)


_LEVEL_SCHEMA = {"type": ["integer", "number", "string", "boolean"]}
_CPUS_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": r"^\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*$"},
        {"type": "integer", "minimum": 0},
        {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    ]
}
Level = Annotated[str, BeforeValidator(level_text), WithJsonSchema(_LEVEL_SCHEMA)]
Cpus = Annotated[str, BeforeValidator(_cpus_text), WithJsonSchema(_CPUS_SCHEMA)]
Levels = Annotated[
    tuple[Level, ...],
    BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,)),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_LEVEL_SCHEMA, {"type": "array", "items": _LEVEL_SCHEMA, "minItems": 1}]}),
]
Argument = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
Claimed = Annotated[str, StringConstraints(pattern=r"^(no-)?[a-z][a-z0-9_]*(=[a-z0-9]+)?$", max_length=40)]
"""What a kernel must have, in form: ``numa``, ``no-numa``, ``hz=250``."""
Argv = Annotated[tuple[Argument, ...], Field(min_length=1)]


class StudyTable(BaseModel):
    """A table in which nothing is that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
