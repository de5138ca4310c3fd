"""What a study names, and who may name it: no field that names a path, a command or a kernel is undecided."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import kernel_kind
from ajuste.model.capability import ASKERS, KINDS, Asked, Asker, Kind, asked_here, rule, told
from ajuste.model.error import RequestError
from ajuste.study.location import StudySource
from ajuste.study.named import NAMES, PLAIN, named_in, require_allowed
from ajuste.study.read import checked_study
from ajuste.study.schema import Study

BASE: dict[str, Any] = {
    "name": "asked",
    "factor": [{"name": "vm.swappiness", "levels": [10, 60]}],
    "workload": {"kind": "fio"},
    "target": {"kind": "vm", "kernel": "debian:6.12"},
    "analysis": {"metrics": ["elapsed"]},
}
HOST = {"target": {"kind": "host", "clock": "wall"}}


def study(**tables: Any) -> Study:
    found = BASE | tables
    return checked_study(found, StudySource(Path("study.toml"), ""), catalogue(), with_files=False)


def kinds(**tables: Any) -> set[Kind]:
    return {one.kind for one in named_in(study(**tables), catalogue(), kernel_kind)}


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
    for one in get_args(annotation):
        yield from parts(one)


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
        for name, one in kind.parameters.items()
        if one.chosen_by == "anyone" and (one.type == "file" or name in ("file", "source", "directory", "port"))
    ]
    assert open_files == []


HARMFUL: dict[str, tuple[Kind, dict[str, Any]]] = {
    "a file of a workload": ("path", HOST | {"workload": {"kind": "fio", "parameters": {"file": "/etc/shadow"}}}),
    "the sources of a build": ("path", HOST | {"workload": {"kind": "kernbench", "parameters": {"source": "/x"}}}),
    "a directory of programs": ("path", HOST | {"workload": {"kind": "unixbench", "parameters": {"directory": "x"}}}),
    "a parameter for the host": ("path", HOST | {"workload": {"kind": "fio", "host_parameters": {"file": "/x"}}}),
    "a parameter that varies": (
        "path",
        HOST | {"factor": [{"name": "workload.file", "levels": ["/etc/a", "/etc/b"]}]},
    ),
    "a parameter among settings": (
        "path",
        HOST | {"factor": [{"name": "s", "settings": {"a": {"workload.file": "/a"}, "b": {"workload.file": "/b"}}}]},
    ),
    "a file of the background": (
        "path",
        HOST | {"workload": {"kind": "matrix", "background": [{"kind": "fio", "parameters": {"file": "/x"}}]}},
    ),
    "a command": ("command", HOST | {"workload": {"command": ["id"]}}),
    "a preparation": ("command", HOST | {"workload": {"kind": "matrix", "prepare": ["id"]}}),
    "a variant": (
        "command",
        HOST
        | {
            "factor": [{"name": "command", "levels": ["a", "b"]}],
            "workload": {"variant": [{"name": "a", "command": ["id"]}, {"name": "b", "command": ["ls"]}]},
        },
    ),
    "a service": ("command", HOST | {"workload": {"kind": "matrix", "service": [{"command": ["id"]}]}}),
    "root": ("root command", HOST | {"workload": {"kind": "matrix", "as_root": True}}),
    "a user of a service": (
        "root command",
        HOST | {"workload": {"kind": "matrix", "service": [{"command": ["id"], "user": "root"}]}},
    ),
    "a file system": ("device", HOST | {"scratch": {}}),
    "a disk": ("device", HOST | {"disk": {"device": "/dev/sdb"}}),
    "a policy that can hang it": ("risk", HOST | {"workload": {"kind": "matrix", "attributes": {"policy": "fifo"}}}),
    "a boot": (
        "boot",
        HOST | {"factor": [{"name": "boot.mitigations", "levels": ["off", "auto"]}]},
    ),
    "a program by its file": ("path", {"workload": {"command": ["true"], "programs": ["/root/key"]}}),
    "a command by its file": ("path", {"workload": {"command": ["/root/key"]}}),
    "a way out of the system's directories": ("path", {"workload": {"command": ["/usr/bin/../../root/key"]}}),
    "a file beside the study": ("path", {"workload": {"command": ["true"], "files": ["key"]}}),
    "a kernel by its file": ("kernel file", {"target": {"kernel": "path:/root/vmlinuz"}}),
    "a kernel of a tree": ("kernel source", {"target": {"kernel": "build:/agents/tree"}}),
    "a kernel with a patch": ("kernel source", {"target": {"kernel": "build:debian:6.1+x.patch"}}),
    "a kernel to build": ("kernel build", {"target": {"kernel": "build:debian:6.1+NUMA=n"}}),
    "kernels that vary": (
        "kernel source",
        {"factor": [{"name": "kernel", "levels": ["debian:6.1", "build:/tree"]}], "target": {"kind": "vm"}},
    ),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_what_reaches_this_machine_is_found_and_refused_to_agents(name: str) -> None:
    kind, tables = HARMFUL[name]
    assert kind in kinds(**tables)
    agent = Asked("agent", frozenset({"vm.swappiness"}))
    with pytest.raises(RequestError, match="an agent may"):
        require_allowed(study(**tables), agent, catalogue(), kernel_kind)
    owner = Asked("owner").planning
    require_allowed(study(**tables), owner, catalogue(), kernel_kind)


def test_a_modelled_machine_by_its_file_is_a_path() -> None:
    found = Study.model_validate(BASE | {"target": BASE["target"] | {"machine": {"model": "/root/m.toml"}}})
    assert "path" in {one.kind for one in named_in(found, catalogue(), kernel_kind)}


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
    require_allowed(study(**tables), Asked("agent", frozenset({"vm.swappiness"})), catalogue(), kernel_kind)


def test_the_table_decides_every_kind_for_everybody() -> None:
    names: tuple[Asker, ...] = get_args(Asker)
    assert set(ASKERS) == set(names)
    assert set(KINDS) == set(get_args(Kind))
    assert {rule("viewer", kind) for kind in KINDS} == {"no"}
    assert {asker for asker in names if rule(asker, "kernel source") != "no"} == {"owner", "sudo"}
    assert {rule(asker, "place") for asker in names} == {"no"}
    assert {kind for kind in KINDS if rule("bundle", kind) == "yes"} == {
        "parameter", "guest command", "guest root", "kernel package"
    }  # fmt: skip


def test_a_child_process_works_for_who_asked() -> None:
    agent = Asked("agent", frozenset({"vm.swappiness", "nice"}))
    assert asked_here(environment=told(agent)) == agent
    assert asked_here(environment={}).asker == "owner"
    assert asked_here(environment={"SUDO_UID": "1000"}).asker == "sudo"
    with pytest.raises(RequestError, match="expected one of"):
        asked_here(environment={"AJUSTE_ASKED_BY": "root:"})
