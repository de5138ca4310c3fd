"""The place where trials are to be carried out, in a person's words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ajuste.cli.choice import Machines, cluster_of
from ajuste.model.error import RequestError
from ajuste.study.read import parse_study
from ajuste.study.schema import Study


def study(**target: str) -> Study:
    analysis = {"metrics": ["elapsed"]}
    workload = {"command": ["true"]}
    return parse_study({"name": "one", "factor": [], "workload": workload, "target": target, "analysis": analysis})


def test_nowhere_else_is_asked_for() -> None:
    assert Machines().cluster_for(study(kind="host")) is None


def test_workers_here_are_no_cluster() -> None:
    guest = study(kernel="debian:5.10")
    assert Machines(workers=2).cluster_for(guest) is None
    assert str(Machines(cluster="tls://lab1:8786").cluster_for(guest)) == "the cluster tls://lab1:8786"


def test_what_contradicts_itself_is_refused() -> None:
    guest = study(kernel="debian:5.10")
    with pytest.raises(RequestError, match="--cluster and --workers"):
        Machines(cluster="tls://lab1:8786", workers=2).cluster_for(guest)
    with pytest.raises(RequestError, match="require --cluster"):
        Machines(insecure=True).cluster_for(guest)


@pytest.mark.parametrize("target", [{"kind": "host"}, {"kernel": "debian:5.10", "clock": "wall"}])
def test_workers_of_one_machine_do_not_measure_by_its_clock(target: dict[str, str]) -> None:
    with pytest.raises(RequestError, match="would disturb each other"):
        Machines(workers=2).cluster_for(study(**target))


def test_machines_measure_themselves_and_not_guests_by_their_clocks() -> None:
    there = Machines(cluster="tls://lab1:8786").cluster_for(study(kind="host"))
    assert str(there) == "the cluster tls://lab1:8786"
    with pytest.raises(RequestError, match="--cluster does not support guests under the wall clock"):
        Machines(cluster="tls://lab1:8786").cluster_for(study(kernel="debian:5.10", clock="wall"))


@pytest.mark.parametrize(
    "address", ["lab1", "lab1:8786", "inproc://1", "tcp://lab1", "http://lab1:80", "tcp://a b:1", ""]
)
def test_an_address_is_one_of_a_scheduler(address: str) -> None:
    with pytest.raises(RequestError, match="expected the address of a scheduler, such as tls://host:8786"):
        cluster_of("--cluster", address, None, insecure=False)


def test_a_cluster_imports_nothing_of_the_present_directory(tmp_path: Path) -> None:
    """Root may be in a directory that everybody can write."""
    mark, stranger = tmp_path / "mark", tmp_path / "stranger"
    stranger.mkdir()
    for name in ("random", "socket", "signal", "distributed", "cryptography", "ajuste"):
        (stranger / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")
    words = [str(Path(sys.executable).parent / "ajuste"), "cluster", "worker", "--scheduler", "tls://127.0.0.1:1"]
    done = subprocess.run(
        [*words, "--cluster-keys", "none"], cwd=stranger, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, "not found" in done.stderr) == (2, True), done.stderr
    assert not mark.exists()


def test_the_kubernetes_manifest_starts_what_there_is() -> None:
    manifest = Path(__file__).parents[2] / "docs" / "examples" / "kubernetes.yaml"
    parts = list(yaml.safe_load_all(manifest.read_text()))
    commands = [
        container["command"]
        for part in parts
        if part["kind"] == "Deployment"
        for container in part["spec"]["template"]["spec"]["containers"]
    ]
    (service,) = [part for part in parts if part["kind"] == "Service"]
    assert [command[:3] for command in commands] == [
        ["ajuste", "cluster", "scheduler"],
        ["ajuste", "cluster", "worker"],
    ]
    for command, option in zip(commands, ("--listen", "--scheduler"), strict=True):
        address = command[command.index(option) + 1]
        cluster = cluster_of(option, address, Path(command[command.index("--cluster-keys") + 1]), insecure=False)
        assert cluster.port == service["spec"]["ports"][0]["port"]
    assert cluster.host == service["metadata"]["name"]
