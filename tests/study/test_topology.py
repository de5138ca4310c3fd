"""A study that says where the CPUs of its guests are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomlkit

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.topology import Topology
from ajuste.run.planning import planned_study
from ajuste.study.command_line.request import Request, split_commands
from ajuste.study.command_line.study import adhoc_study
from ajuste.study.overrides import overridden, with_topology
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste.study.resolved import ResolvedStudy, fingerprint
from ajuste.study.schema import Study
from shell import SMALL

STUDY = """
schema = 1
name = "topology"
factor = []
workload.kind = "matrix"
analysis.metrics = ["elapsed"]

[target]
kernel = "debian:5.10"
{target}

[target.topology]
{topology}
{more}
"""
SERVER = "sockets = 2\ncores = 2\nthreads = 2"


def read(folder: Path, topology: str = SERVER, target: str = "", more: str = "") -> Study:
    file = folder / "study.toml"
    file.write_text(STUDY.format(topology=topology, target=target, more=more))
    return read_study(file, catalogue(), parse_kernel=parse_spec)


def ask(**options: Any) -> Study:
    request = Request(split_commands(("matrix",)), **{"vm": True, "kernel": "debian:5.10", **options})
    return adhoc_study(request, catalogue(), parse_kernel=parse_spec)


def resolved(study: Study) -> ResolvedStudy:
    return resolve(study, catalogue(), {"debian:5.10": KernelVersion(major=5, minor=10)}, lambda name: f"/bin/{name}")


def test_it_decides_how_many_cpus_there_are(tmp_path: Path) -> None:
    target = read(tmp_path).target
    assert (target.cpus, target.topology) == (8, Topology(sockets=2, cores=2, threads=2))
    assert read(tmp_path, target="cpus = 8").target == target


def test_a_study_asks_for_as_many_cpus_as_a_guest_can_have(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(SMALL.replace("[target]", "[target]\ncpus = 16"))
    assert read_study(path).target.cpus == 16
    path.write_text(SMALL.replace("[target]", "[target]\ncpus = 17"))
    with pytest.raises(RequestError, match=r"cpus: found 17; expected .* 16"):
        read_study(path)


def test_it_is_part_of_what_is_measured_only_where_it_is_given(tmp_path: Path) -> None:
    study = read(tmp_path)
    without = study.model_copy(update={"target": study.target.model_copy(update={"topology": None})})
    flat = read(tmp_path, "cores = 8")
    assert len({fingerprint(resolved(variant)) for variant in (study, without, flat)}) == 3
    assert "topology" not in without.target.model_dump()
    assert "topology" not in resolved(without).study.target.model_dump_json()


def test_it_agrees_with_nodes(tmp_path: Path) -> None:
    nodes = "[[target.node]]\ncpus = 4\nmemory_mib = 128\n[[target.node]]\ncpus = 4\nmemory_mib = 128"
    target = read(tmp_path, more=nodes).target
    assert (target.cpus, target.memory_mib) == (8, 256)


@pytest.mark.parametrize(
    ("topology", "target", "more", "line", "words"),
    [
        ("cores = 3\nllc_groups = 2", "", "", 12, "llc_groups is 2; expected a divisor of the socket's 3 cores"),
        (SERVER, "cpus = 4", "", 8, "cpus is 4; expected 8, as the topology (2 sockets × 2 cores × 2 threads"),
        ("sockets = 0", "", "", 13, "expected at least 1"),
        ("modules = 2", "", "", 13, "unknown field; expected sockets, dies, llc_groups, cores, threads"),
        (
            SERVER,
            "",
            "[[target.node]]\ncpus = 2\nmemory_mib = 64\n[[target.node]]\ncpus = 6\nmemory_mib = 64",
            8,
            "cpus of node 0 is 2, which splits an LLC group of the topology; expected a multiple of 4",
        ),
        (
            "cores = 12\nllc_groups = 2",
            'machine.model = "zen4-8c"',
            "",
            12,
            "zen4-8c does not fit the guest: the topology's cores is 12; expected at most 8, as the machine has",
        ),
        (
            "cores = 2",
            'machine.model = "./pair.toml"',
            "",
            12,
            "llc_groups is 1, so 2 cores share an LLC; expected at least 2, because the machine's LLC is for 1 at most",
        ),
    ],
)
def test_what_cannot_be_is_one_error_at_its_place(
    tmp_path: Path, topology: str, target: str, more: str, line: int, words: str
) -> None:
    textbook = catalogue().machines["textbook"].model_copy(update={"cores": 2, "name": "pair"})
    document = {"machine": [textbook.model_dump(mode="json", exclude_none=True)]}
    (tmp_path / "pair.toml").write_text(tomlkit.dumps(document))
    with pytest.raises(RequestError) as refused:
        read(tmp_path, topology, target, more)
    assert words in refused.value.message
    assert "\n" not in refused.value.message
    assert refused.value.place is not None
    assert refused.value.place.line == line
    assert refused.value.exit_code == 2


def test_on_the_command_line_it_is_one_option() -> None:
    study = ask(topology="sockets=2,cores=2,threads=2", nice="0,10")
    assert (study.target.cpus, study.target.topology) == (8, Topology(sockets=2, cores=2, threads=2))
    plan = planned_study(resolved(study), catalogue())
    assert "8 CPUs (2 sockets × 2 cores × 2 threads; 2 cores share an LLC), 256 MiB" in plan.target
    assert any("boots to check that it shows the topology" in note for note in plan.notes)
    plain = planned_study(resolved(ask()), catalogue())
    assert "topology" not in plain.model_dump_json()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topology": "sockets=2,core=2"}, "--topology sockets=2,core=2: found 'core=2'; expected NAME=NUMBER"),
        ({"topology": "threads=3"}, "--topology threads=3: threads is 3; expected 1, 2, 4 or 8"),
        ({"topology": "cores=2", "cpus": "0,3"}, 'found CPU 3 in "3"; expected CPUs between 0 and 1'),
        ({"topology": "cores=2", "vm": False, "kernel": None}, "--topology: applies only to guests"),
        ({"topology": "cores=9", "machine": "zen4-8c"}, "cores is 9; expected at most 8"),
    ],
)
def test_on_the_command_line_what_cannot_be_names_the_option(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError) as refused:
        ask(**options)
    assert words in str(refused.value)


def test_a_guest_has_as_many_cpus_as_one_option_says(tmp_path: Path) -> None:
    assert ask(guest_cpus=4).target.cpus == 4
    assert ask(guest_cpus=4, cpus="0,1").target.cpus == 4
    assert ask(cpus="0,2").target.cpus == 3
    study = ask()
    changed = overridden(study, Request(guest_cpus=4), catalogue())
    assert changed.target == study.target.model_copy(update={"cpus": 4})
    for options, words in (
        ({"guest_cpus": 2, "cpus": "0,3"}, 'found CPU 3 in "3"; expected CPUs between 0 and 1'),
        ({"guest_cpus": 99}, "--guest-cpus 99: found 99; expected at most"),
        ({"guest_cpus": 3, "topology": "cores=2"}, "cpus is 3; expected 2"),
        ({"guest_cpus": 2, "vm": False, "kernel": None}, "--guest-cpus: applies only to guests"),
    ):
        with pytest.raises(RequestError) as refused:
            ask(**options)
        assert words in str(refused.value)
    placed = read(tmp_path, "cores = 2")
    host = study.model_copy(update={"target": study.target.model_copy(update={"kind": "host"})})
    for other, words in ((placed, "--guest-cpus 4: cpus is 4; expected 2"), (host, "applies only to guests")):
        with pytest.raises(RequestError) as refused:
            overridden(other, Request(guest_cpus=4), catalogue())
        assert words in str(refused.value)


def test_a_study_gets_another_topology(tmp_path: Path) -> None:
    study = read(tmp_path, target='machine.model = "zen4-8c"')
    changed = with_topology(study, "cores=4,llc_groups=2", catalogue())
    assert (changed.target.cpus, changed.target.topology) == (4, Topology(cores=4, llc_groups=2))
    assert changed.target.kernel == study.target.kernel
    for text, words in [
        ("cores=x", "--topology cores=x: cores is 'x'"),
        ("threads=3", "--topology threads=3: threads is 3"),
        ("cores=9", "--topology cores=9: zen4-8c does not fit the guest"),
    ]:
        with pytest.raises(RequestError) as refused:
            with_topology(study, text, catalogue())
        assert words in str(refused.value)


def test_the_rest_of_a_study_must_fit_another_topology(tmp_path: Path) -> None:
    study = read(tmp_path, more='[workload.attributes]\naffinity = "7"')
    with pytest.raises(RequestError, match='found CPU 7 in "7"; expected CPUs between 0 and 1'):
        with_topology(study, "cores=2", catalogue())
    host = study.model_copy(update={"target": study.target.model_copy(update={"kind": "host"})})
    with pytest.raises(RequestError, match="applies only to guests"):
        with_topology(host, "cores=2", catalogue())
