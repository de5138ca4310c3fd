"""Where trials are to be carried out, in a person's words."""

from __future__ import annotations

import pytest

from ajuste.cli.choice import chosen_cluster, cluster_of
from ajuste.model.error import RequestError
from ajuste.study.read import parse_study
from ajuste.study.schema import Study


def study(**target: str) -> Study:
    analysis = {"metrics": ["elapsed"]}
    workload = {"command": ["true"]}
    return parse_study({"name": "one", "factor": [], "workload": workload, "target": target, "analysis": analysis})


def test_nowhere_else_is_asked_for() -> None:
    assert chosen_cluster(study(kind="host"), None, None) is None


def test_workers_here_are_no_cluster() -> None:
    guest = study(kernel="debian:5.10")
    assert chosen_cluster(guest, None, 2) is None
    assert str(chosen_cluster(guest, "tls://lab1:8786", None)) == "the cluster tls://lab1:8786"


def test_what_contradicts_itself_is_refused() -> None:
    guest = study(kernel="debian:5.10")
    with pytest.raises(RequestError, match="--cluster and --workers"):
        chosen_cluster(guest, "tls://lab1:8786", 2)
    with pytest.raises(RequestError, match="require --cluster"):
        chosen_cluster(guest, None, 2, insecure=True)


@pytest.mark.parametrize("target", [{"kind": "host"}, {"kernel": "debian:5.10", "clock": "wall"}])
def test_workers_of_one_machine_do_not_measure_by_its_clock(target: dict[str, str]) -> None:
    with pytest.raises(RequestError, match="would disturb each other"):
        chosen_cluster(study(**target), None, 2)


def test_machines_measure_themselves_and_not_guests_by_their_clocks() -> None:
    there = chosen_cluster(study(kind="host"), "tls://lab1:8786", None)
    assert str(there) == "the cluster tls://lab1:8786"
    with pytest.raises(RequestError, match="--cluster does not support guests under the wall clock"):
        chosen_cluster(study(kernel="debian:5.10", clock="wall"), "tls://lab1:8786", None)


@pytest.mark.parametrize(
    "address", ["lab1", "lab1:8786", "inproc://1", "tcp://lab1", "http://lab1:80", "tcp://a b:1", ""]
)
def test_an_address_is_one_of_a_scheduler(address: str) -> None:
    with pytest.raises(RequestError, match="expected the address of a scheduler, such as tls://host:8786"):
        cluster_of("--cluster", address, None, insecure=False)
