"""The JSON Schema of study files, with the names of the catalogue, so that editors complete and check them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ajuste.catalogue.loader import Catalogue
from ajuste.model.configuration import COMMAND_FACTOR, KERNEL_FACTOR
from ajuste.study.schema import Study
from ajuste.study.settings import WORKLOAD_PREFIX

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_RANGE = r"^[^.]+(\.[0-9]+\S*)?\.\.[^.]+(\.[0-9]+\S*)?$"


def json_schema(catalogue: Catalogue) -> dict[str, Any]:
    """The schema (draft 2020-12). Names are suggested, not required: metrics of one's own have names of their own."""
    schema = Study.model_json_schema(by_alias=True)
    tables = schema["$defs"]
    parameters = {name for kind in catalogue.workloads.values() for name in kind.parameters}
    factors = [
        KERNEL_FACTOR,
        COMMAND_FACTOR,
        *catalogue.tunables,
        *(WORKLOAD_PREFIX + name for name in sorted(parameters)),
    ]
    metrics = [*catalogue.metrics, *(metric.name for kind in catalogue.workloads.values() for metric in kind.metrics)]
    endless = [name for name, kind in catalogue.workloads.items() if kind.endless]
    ending = [name for name in catalogue.workloads if name not in endless]
    _suggest(tables["FactorTable"]["properties"]["name"], factors)
    for field in ("metrics", "describe"):
        for items in _arrays(tables["AnalysisTable"]["properties"][field]):
            _suggest(items, metrics)
    levels = tables["FactorTable"]["properties"]["levels"]
    a_list = {name: levels.pop(name) for name in ("type", "items", "minItems", "default")}
    del a_list["default"]
    levels["anyOf"] = [a_list, {"type": "string", "pattern": _RANGE}]
    tables["FactorTable"]["required"] = ["name"]
    tables["FactorTable"]["anyOf"] = [{"required": ["levels"]}, {"required": ["settings"]}]
    for table, kinds, jobs in (
        ("WorkloadTable", ending, ("kind", "command", "variant")),
        ("BackgroundTable", [*endless, *ending], ("kind", "command")),
    ):
        tables[table]["properties"]["kind"] |= {"anyOf": [{"enum": kinds}, {"type": "string"}, {"type": "null"}]}
        tables[table]["oneOf"] = [{"required": [job]} for job in jobs]
    return {"$schema": DIALECT, **schema, "title": "An Ajuste study"}


def _suggest(field: dict[str, Any], names: Iterable[str]) -> None:
    """Any text is allowed in ``field``, and ``names`` are offered."""
    field.pop("type", None)
    field["anyOf"] = [{"enum": list(dict.fromkeys(names))}, {"type": "string"}]


def _arrays(field: dict[str, Any]) -> list[dict[str, Any]]:
    """The schemas of the items in ``field``, whether it is an array or may be one."""
    return [choice["items"] for choice in (field, *field.get("anyOf", ())) if "items" in choice]
