"""Things that a study names, and who may name them: no field that names a path, a command or a kernel is undecided."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import kernel_kind
from ajuste.model.capability import ASKERS, KINDS, Asked, Asker, Kind, asked_here, child_environment, granted, rule
from ajuste.model.error import RequestError
from ajuste.study.named import NAMES, PLAIN, named_in, require_allowed
from ajuste.study.problem import StudySource
from ajuste.study.read import checked_study
from ajuste.study.schema import Study
from harmful import BASE, HARMFUL, HOST


def study(**tables: Any) -> Study:
    document = BASE | tables
    return checked_study(document, StudySource(Path("study.toml"), ""), catalogue(), with_files=False)


def kinds(**tables: Any) -> set[Kind]:
    return {mention.kind for mention in named_in(study(**tables), catalogue(), kernel_kind)}


def tables(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in model.model_fields.values():
        for part in parts(field.annotation):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from tables(part, seen)


def parts(annotation: Any) -> Iterator[Any]:
    """The types that a value of the field can hold."""
    if get_origin(annotation) is Literal:
        return
    if not get_args(annotation):
        yield annotation
    for argument in get_args(annotation):
        yield from parts(argument)


def test_every_text_of_a_study_file_is_declared() -> None:
    texts = {
        f"{model.__name__}.{name}"
        for model in tables(Study, set())
        for name, field in model.model_fields.items()
        if any(part in (str, Any, dict) for part in parts(field.annotation))
    }
    assert texts - NAMES.keys() - PLAIN == set(), "declare these in study/named.py"
    assert NAMES.keys() & PLAIN == set()
    assert PLAIN - texts == set(), "no longer there"


def test_every_parameter_of_the_catalogue_says_who_may_choose_it() -> None:
    undecided = [
        f"{kind.name}.{name}"
        for kind in catalogue().workloads.values()
        for name, parameter in kind.parameters.items()
        if "chosen_by" not in parameter.model_fields_set
    ]
    assert undecided == []
    open_files = [
        f"{kind.name}.{name}"
        for kind in catalogue().workloads.values()
        for name, parameter in kind.parameters.items()
        if parameter.chosen_by == "anyone"
        and (parameter.type == "file" or name in ("file", "source", "directory", "port"))
    ]
    assert open_files == []


@pytest.mark.parametrize("name", HARMFUL)
def test_what_reaches_this_machine_is_found_and_refused_to_agents(name: str) -> None:
    kind, tables = HARMFUL[name]
    assert kind in kinds(**tables)
    agent = granted("agent", ["vm.swappiness"])
    with pytest.raises(RequestError, match="an agent may"):
        require_allowed(study(**tables), agent, catalogue(), kernel_kind)
    for asker in get_args(Asker):
        rights, reached = Asked(asker), kinds(**tables)
        if all(rule(asker, kind) == "yes" for kind in reached):
            require_allowed(study(**tables), rights, catalogue(), kernel_kind)
        else:
            with pytest.raises(RequestError, match="may"):
                require_allowed(study(**tables), rights, catalogue(), kernel_kind)
    require_allowed(study(**tables), Asked("owner").planning, catalogue(), kernel_kind)


def test_a_modelled_machine_by_its_file_is_a_path() -> None:
    modelled = Study.model_validate(BASE | {"target": BASE["target"] | {"machine": {"model": "/root/m.toml"}}})
    assert "path" in {mention.kind for mention in named_in(modelled, catalogue(), kernel_kind)}


@pytest.mark.parametrize(
    "tables",
    [
        {"workload": {"kind": "fio", "parameters": {"file": "in-the-guest"}}},
        {"workload": {"command": ["sh", "-c", "cat /etc/shadow"], "programs": ["cat", "/usr/bin/perf"]}},
        {"target": {"kernel": "mine:numa"}},
        HOST | {"workload": {"kind": "fio", "parameters": {"depth": 4}}},
        HOST | {"workload": {"kind": "redis-benchmark"}},
    ],
)
def test_what_reaches_no_more_than_a_guest_is_an_agents_to_choose(tables: dict[str, Any]) -> None:
    require_allowed(study(**tables), granted("agent", ["vm.swappiness"]), catalogue(), kernel_kind)


def test_the_table_decides_every_kind_for_everybody() -> None:
    names: tuple[Asker, ...] = get_args(Asker)
    assert set(ASKERS) == set(names)
    assert set(KINDS) == set(get_args(Kind))
    assert {rule("viewer", kind) for kind in KINDS} == {"no"}
    assert {asker for asker in names if rule(asker, "kernel source") == "yes"} == {"owner", "sudo"}
    assert {
        asker: rule(asker, "kernel source") for asker in names if rule(asker, "kernel source") not in ("yes", "no")
    } == {"study file": "--build"}
    assert {rule(asker, "place") for asker in names} == {"no"}
    assert {kind for kind in KINDS if rule("bundle", kind) == "yes"} == {
        "parameter", "guest command", "guest root", "kernel package"
    }  # fmt: skip


def test_a_child_process_works_for_who_asked() -> None:
    agent = granted("agent", ["vm.swappiness", "nice"])
    assert asked_here(environment=child_environment(agent)) == agent
    assert asked_here(environment={}).asker == "owner"
    assert asked_here(environment={"SUDO_UID": "1000"}).asker == "sudo"
    with pytest.raises(RequestError, match="expected one of"):
        asked_here(environment={"AJUSTE_ASKED_BY": "root:"})
