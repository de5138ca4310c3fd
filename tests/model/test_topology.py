"""Topologies: which there can be, who shares what, and how they are written on a command line."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from ajuste.model.plan import MemoryNode
from ajuste.model.topology import MOST_CPUS, Topology, parse_topology

SERVER = Topology(sockets=2, cores=2, threads=2)


def test_cpus_are_numbered_from_thread_to_thread_and_socket_to_socket() -> None:
    assert SERVER.cpus == 8
    assert SERVER.by_core == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert SERVER.by_socket == SERVER.by_die == SERVER.by_group == ((0, 1, 2, 3), (4, 5, 6, 7))
    parts = Topology(dies=2, llc_groups=4, cores=8)
    assert parts.by_socket == (tuple(range(8)),)
    assert parts.by_die == (tuple(range(4)), tuple(range(4, 8)))
    assert parts.by_group == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert parts.by_core == tuple((cpu,) for cpu in range(8))


def test_a_die_has_one_llc_unless_it_is_said_otherwise() -> None:
    assert Topology(dies=2, cores=8).cores_of_group == 4
    assert Topology(cores=8, llc_groups=4).cores_of_group == 2


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"sockets": 2, "cores": 2, "threads": 2}, "2 sockets × 2 cores × 2 threads; 2 cores share an LLC"),
        ({"cores": 8, "dies": 2, "llc_groups": 4}, "2 dies × 4 cores; 2 cores share an LLC"),
        ({"threads": 2}, "1 core × 2 threads; each core has an LLC"),
    ],
)
def test_it_is_said_in_words(table: dict[str, int], words: str) -> None:
    assert Topology(**table).in_words == words


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"threads": 3}, "threads is 3; expected 1, 2, 4 or 8"),
        ({"cores": 3, "dies": 2}, "dies is 2; expected a divisor of the socket's 3 cores"),
        ({"cores": 8, "llc_groups": 3}, "llc_groups is 3; expected a divisor of the socket's 8 cores"),
        ({"cores": 8, "dies": 4, "llc_groups": 2}, "llc_groups is 2; expected a multiple of the socket's 4 dies"),
        ({"sockets": 2, "cores": 8, "threads": 2}, "32 CPUs in all; expected at most 16"),
        ({"cores": 0}, "greater than or equal to 1"),
        ({"cores": "2"}, "valid integer"),
        ({"sockets": True}, "valid integer"),
        ({"clusters": 2}, "Extra inputs are not permitted"),
    ],
)
def test_a_topology_that_cannot_be_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Topology.model_validate(table)
    assert words in str(refused.value)


def test_it_must_agree_with_the_machine() -> None:
    assert SERVER.problem_with(8, ()) == ""
    assert "cpus is 4; expected 8, as the topology (2 sockets" in SERVER.problem_with(4, ())
    halves = [MemoryNode(cpus=4, memory_mib=64), MemoryNode(memory_mib=64), MemoryNode(cpus=4, memory_mib=64)]
    assert SERVER.problem_with(8, halves) == ""
    uneven = [MemoryNode(cpus=2, memory_mib=64), MemoryNode(cpus=6, memory_mib=64)]
    assert "cpus of node 0 is 2, which splits an LLC group" in SERVER.problem_with(8, uneven)
    assert "expected a multiple of 4" in SERVER.problem_with(8, uneven)


@given(st.builds(dict, sockets=st.integers(1, 4), cores=st.integers(1, 8), threads=st.sampled_from([1, 2, 4, 8])))
def test_a_topology_on_a_command_line_is_the_table(table: dict[str, int]) -> None:
    text = ",".join(f"{name} = {value}" for name, value in table.items())
    assert parse_topology(text) == table


@given(
    st.text()
    | st.lists(st.tuples(st.sampled_from(["sockets", "cores", "llc_groups", "x"]), st.text())).map(
        lambda parts: ",".join(f"{name}={value}" for name, value in parts)
    )
)
def test_any_text_is_a_table_of_numbers_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        table = parse_topology(text)
        assert table
        assert set(table) <= set(Topology.model_fields)
        assert all(1 <= value <= 99 for value in table.values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "found ''; expected NAME=NUMBER with one of sockets, dies, llc_groups, cores, threads"),
        ("2", "found '2'"),
        ("sockets=2,cores", "cores is ''; expected a number"),
        ("sockets=0", "sockets is '0'; expected a number between 1 and 16"),
        ("sockets=²", "sockets is '²'"),
        ("cores=2,cores=2", "cores is given twice"),
    ],
)
def test_what_is_no_topology_says_what_one_is(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="expected") as refused:
        parse_topology(text)
    assert words in str(refused.value)


@given(
    sockets=st.integers(1, 2),
    dies=st.integers(1, 2),
    groups=st.integers(1, 2),
    cores=st.integers(1, 3),
    threads=st.sampled_from([1, 2]),
)
def test_every_cpu_is_in_one_set_of_each_level(sockets: int, dies: int, groups: int, cores: int, threads: int) -> None:
    assume(sockets * dies * groups * cores * threads <= MOST_CPUS)
    topology = Topology(
        sockets=sockets, dies=dies, llc_groups=dies * groups, cores=dies * groups * cores, threads=threads
    )
    levels = [topology.by_core, topology.by_group, topology.by_die, topology.by_socket]
    for level in levels:
        assert [cpu for group in level for cpu in group] == list(range(topology.cpus))
    for inner, outer in itertools.pairwise(levels):
        assert all(any(set(group) <= set(larger) for larger in outer) for group in inner)
