from __future__ import annotations

import tomllib
from operator import attrgetter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jsonschema.protocols import Validator

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.kernel import KernelVersion
from ajuste.study.builtin import BuiltinStudy, builtin_studies
from ajuste.study.read import json_schema, read_study
from ajuste.study.resolve import resolve
from looped import each


@pytest.fixture(scope="module")
def validator() -> Validator:
    schema = json_schema(catalogue())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@each(builtin_studies(), name=attrgetter("name"))
def test_the_built_in_studies_are_valid(study: BuiltinStudy, validator: Validator) -> None:
    assert not list(validator.iter_errors(tomllib.loads(study.path.read_text(encoding="utf-8"))))


def minimal() -> dict[str, Any]:
    return {
        "schema": 1,
        "name": "x",
        "factor": [{"name": "nice", "levels": [0, 4]}],
        "workload": {"kind": "matrix", "attributes": {"affinity": "0-1"}, "background": [{"command": ["yes"]}]},
        "target": {"kernel": "debian:5.10"},
        "analysis": {"metrics": ["elapsed"]},
    }


def test_a_minimal_study_is_valid(validator: Validator) -> None:
    validator.validate(minimal())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2),
        (("name",), "An X"),
        (("colour",), "red"),
        (("factor",), {}),
        (("factor", 0, "levels"), []),
        (("factor", 0, "levels"), [[]]),
        (("factor", 0, "level"), 1),
        (("workload", "command"), ["./job"]),
        (("workload", "attributes", "nice"), 30),
        (("workload", "attributes", "affinity"), "a"),
        (("workload", "background", 0, "count"), 0),
        (("target", "clock"), "sundial"),
        (("analysis", "metrics"), []),
        (("analysis", "metrics"), "elapsed"),
        (("design",), {"seed": "one"}),
        (("design",), {"seed": 2**63}),
        (("budget",), {"max_minutes": 0}),
    ],
)
def test_wrong_studies_are_refused(validator: Validator, path: tuple[str | int, ...], value: Any) -> None:
    document: Any = minimal()
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert list(validator.iter_errors(document))


def test_names_of_the_catalogue_are_suggested(catalogue: Catalogue) -> None:
    tables = json_schema(catalogue)["$defs"]
    suggested = tables["FactorTable"]["properties"]["name"]["anyOf"][0]["enum"]
    assert {"kernel", "nice", "base_slice_ns", "workload.size"} <= set(suggested)
    metrics = tables["AnalysisTable"]["properties"]["metrics"]["items"]["anyOf"][0]["enum"]
    assert {"elapsed", "hackbench.time"} <= set(metrics)
    kinds = tables["WorkloadTable"]["properties"]["kind"]["anyOf"][0]["enum"]
    assert "matrix" in kinds
    assert "spin" not in kinds
    assert "spin" in tables["BackgroundTable"]["properties"]["kind"]["anyOf"][0]["enum"]


def test_every_field_is_described() -> None:
    schema = json_schema(catalogue())
    tables = {"Study": schema, **schema["$defs"]}
    bare = [
        f"{table}.{name}"
        for table, table_schema in tables.items()
        for name, field in table_schema["properties"].items()
        if not field.get("description") and "$ref" not in str(field)
    ]
    assert bare == []


PAGES = Path(__file__).parents[2] / "docs" / "reference"
REFERENCE = (PAGES / "study-fields.md").read_text(encoding="utf-8")
GUIDE = (PAGES / "study-files.md").read_text(encoding="utf-8")
EXAMPLES = [block.split("```")[0] for block in GUIDE.split("```toml\n")[1:]]


def test_the_reference_names_every_field() -> None:
    headings = {"background", "metric", "sampler", "timeline", "variant"}
    for table in json_schema(catalogue())["$defs"].values():
        for name in set(table["properties"]) - headings:
            assert f"`{name}`" in REFERENCE, name
    assert all(f"`[[workload.{name}]]`" in REFERENCE for name in headings)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_reference_are_right(example: str, validator: Validator, tmp_path: Path) -> None:
    validator.validate(tomllib.loads(example))
    path = tmp_path / "example.toml"
    path.write_text(example, encoding="utf-8")
    study = read_study(path, catalogue(), parse_kernel=parse_spec)
    kernels = {spec: KernelVersion.parse(spec.partition(":")[2]) for spec in study.kernels}
    assert resolve(study, catalogue(), kernels, lambda name: f"/usr/bin/{name}").configurations
