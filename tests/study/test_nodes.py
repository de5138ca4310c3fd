"""Machines with several nodes of memory, as a study writes them."""

from __future__ import annotations

from typing import Any

import pytest

from ajuste.model.error import RequestError
from ajuste.model.plan import nodes_in_words
from ajuste.study.read import parse_study
from ajuste.study.schema import Study

NODES = [{"cpus": 2, "memory_mib": 256, "distances": [10, 31]}, {"memory_mib": 128, "distances": [31, 10]}]


def study(**target: Any) -> Study:
    return parse_study(
        {
            "schema": 1,
            "name": "nodes",
            "factor": [],
            "workload": {"kind": "pages"},
            "target": {"kernel": "debian:6.1", **target},
            "analysis": {"metrics": ["elapsed"]},
        }
    )


def test_the_machine_is_as_large_as_its_nodes() -> None:
    target = study(node=NODES).target
    assert (target.cpus, target.memory_mib) == (2, 384)
    assert study(node=NODES, cpus=2, memory_mib=384).target == target
    assert nodes_in_words(target.nodes) == (
        "node 0: 2 CPUs, 256 MiB, distances 10 31; node 1: 0 CPUs, 128 MiB, distances 31 10"
    )


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"node": NODES, "cpus": 3}, "expected 2 and 384"),
        ({"node": NODES, "memory_mib": 512}, "as the nodes"),
        ({"node": NODES[:1]}, "two at least"),
        ({"node": [{"memory_mib": 64}, {"memory_mib": 64}]}, "must have CPUs"),
        ({"node": [{**NODES[0], "distances": [10]}, NODES[1]]}, "node 0 has 1 distances; there are 2 nodes"),
        ({"node": [{**NODES[0], "distances": [20, 10]}, NODES[1]]}, "to itself is 10, not 20"),
        ({"node": [{**NODES[0], "distances": [10, 255]}, NODES[1]]}, "are 11 to 254"),
        ({"node": [{**NODES[0], "cpus": -1}, NODES[1]]}, "cpus"),
        ({"node": [{**NODES[0], "memory_mib": "256"}, NODES[1]]}, "memory_mib"),
    ],
)
def test_nodes_that_make_no_machine_are_refused(target: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError) as refused:
        study(**target)
    assert words in refused.value.message
