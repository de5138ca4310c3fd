"""Entrances: each passes the table of capabilities, with everything that a study can name of this machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import tomlkit

from ajuste.machine.home import Home
from ajuste.model.capability import Asker, rule
from ajuste.model.error import RequestError
from ajuste.study.read import parse_study
from ajuste_fleet.cluster.messages import HostJob
from ajuste_fleet.cluster.worker import resolved_here
from ajuste_lab.agents.budget import AgentBudget, AgentLimits
from ajuste_lab.agents.desk import AgentDesk
from ajuste_lab.agents.protocol import answered
from ajuste_lab.service import LabService
from harmful import BASE, HARMFUL, HOST
from owner import owners_client
from small_stores import Commands, small_store

REFUSES: Final = ("may ", "not allowed")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LabService]:
    place = Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    small_store(place.data / "store.sqlite")
    opened = LabService(place, command=("false",))
    yield opened
    opened.close()


def by_mcp(document: dict[str, Any], service: LabService) -> str:
    desk = AgentDesk(service, AgentBudget(AgentLimits()), ("vm.swappiness",))
    result = answered(desk, "plan", {"study": document})
    return result.content[0].text if result.is_error else ""  # type: ignore[union-attr]


def by_http(document: dict[str, Any], service: LabService) -> str:
    answer = owners_client(service).post("/api/run", json={"study": document})
    return answer.text if answer.status_code == 400 else ""


def by_page(document: dict[str, Any], service: LabService) -> str:
    try:
        service.checked(document)
    except RequestError as refused:
        return str(refused)
    return ""


def by_worker(document: dict[str, Any], service: LabService) -> str:
    job = HostJob(
        ajuste="", agent="0" * 64, study=parse_study(document).model_dump_json(), directory="/", accept_risk=False
    )
    try:
        resolved_here(job)
    except RequestError as refused:
        return str(refused)
    return ""


def by_study_file(document: dict[str, Any], service: LabService) -> str:
    """``ajuste run FILE`` without an option."""
    return _by_command(document, service, "run")


def by_gate(document: dict[str, Any], service: LabService) -> str:
    """``ajuste gate`` with a benchmark that says all that the study says, in fields of that name."""
    workload, target = dict(document["workload"]), document["target"]
    kernels = [level for factor in document["factor"] if factor["name"] == "kernel" for level in factor["levels"]]
    kernel = kernels[-1:] or ([target["kernel"]] if "kernel" in target else [])
    benchmark = {"name": "asked", "command": "true", "metric": "elapsed", "limit": "1%"} | workload
    benchmark |= {"kernel": kernel[0]} if kernel else {}
    benchmark |= {name: table for name, table in document.items() if name in ("scratch", "disk", "factor", "design")}
    directory = service.home.data / "project"
    directory.mkdir()
    subprocess.run(["git", "init", "--quiet", directory], check=True)
    (directory / "ajuste.toml").write_text(tomlkit.dumps({"benchmark": [json.loads(json.dumps(benchmark))]}))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        return Commands(service.home.data.parent / "own", patch).run("gate", "--base", "HEAD")[2]


def by_child(document: dict[str, Any], service: LabService) -> str:
    """The command line of a process that works for an agent."""
    return _by_command(document, service, "plan", AJUSTE_ASKED_BY="agent:vm.swappiness")


def _by_command(document: dict[str, Any], service: LabService, command: str, **variables: str) -> str:
    file = service.home.data / "study.toml"
    file.write_text(tomlkit.dumps(json.loads(json.dumps(document | {"schema": 1}))), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        commands = Commands(service.home.data.parent / "own", patch)
        for name, value in variables.items():
            patch.setenv(name, value)
        return commands.run(command, str(file))[2]


Entrance = Callable[[dict[str, Any], LabService], str]
ENTRANCES: Final[dict[str, tuple[Asker, Entrance]]] = {
    "mcp": ("agent", by_mcp),
    "http": ("agent", by_http),
    "page": ("page", by_page),
    "worker": ("worker", by_worker),
    "child process": ("agent", by_child),
    "study file": ("study file", by_study_file),
    "gate": ("project file", by_gate),
}
OPTIONS: Final = ("--accept-risk", "--reboots")
"""A study file is refused without them."""
STUDIES: Final = HARMFUL | {
    "a place": ("place", HOST | {"factor": [{"name": "kernel.core_pattern", "levels": ["a", "b"]}]})
}
_FIRST: Final = (
    *("not found", "outside the directory", "service", "variant", "cannot read", "is required", "unknown field"),
)
"""Words on what else is wrong with a study, which may come first, but not for agents: they learn nothing of this
machine.
"""


def pairs() -> Iterator[tuple[str, str]]:
    """Yield each harmful study at each entrance; a worker gets guests by their digests, and nothing else of them."""
    for name, (_, tables) in STUDIES.items():
        on_host = (BASE | tables)["target"].get("kind") == "host"
        yield from ((name, entrance) for entrance, (asker, _) in ENTRANCES.items() if asker != "worker" or on_host)


@pytest.mark.parametrize(("name", "entrance"), list(pairs()))
def test_an_entrance_refuses_what_the_table_refuses(name: str, entrance: str, service: LabService) -> None:
    kind, tables = STUDIES[name]
    asker, ask = ENTRANCES[entrance]
    document = BASE | tables
    refused = rule(asker, kind) != "yes"
    if not refused:
        return
    answer = ask(document, service)
    expected = REFUSES if asker == "agent" and entrance != "child process" else (*REFUSES, *OPTIONS, *_FIRST)
    assert any(words in answer for words in expected), answer


def test_what_is_allowed_passes(service: LabService) -> None:
    assert by_mcp(BASE | HOST | {"workload": {"kind": "fio", "parameters": {"depth": 2}}}, service).count("may") == 0
