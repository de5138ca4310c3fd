"""Levels are normalised to what the kernel shows, and refused with the range."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.catalogue.level import check_level
from ajuste.catalogue.loader import catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.topology import parse_cpus

INTEGERS = [tunable for tunable in catalogue().tunables.values() if tunable.type == "integer"]


@given(st.sampled_from(INTEGERS), st.integers(-(10**19), 10**19))
def test_a_number_is_taken_exactly_if_it_is_in_the_range_or_special(tunable: Any, number: Any) -> None:
    inside = tunable.minimum <= number <= tunable.maximum or str(number) in tunable.special
    text = f"  {number:+d} "
    if inside:
        assert check_level(tunable, text) == str(number)
    else:
        with pytest.raises(RequestError, match=r"out of range") as raised:
            check_level(tunable, text)
        assert str(tunable.maximum) in raised.value.message
        assert tunable.unit in raised.value.message


@given(st.text())
def test_any_text_is_either_normalised_for_good_or_refused(text: str) -> None:
    for name in ("base_slice_ns", "affinity", "policy", "sched_verbose", "sched_feat_hrtick"):
        tunable = catalogue().tunables[name]
        try:
            level = check_level(tunable, text)
        except RequestError:
            continue
        assert check_level(tunable, level) == level


@given(st.sets(st.integers(0, 9999), min_size=1))
def test_a_list_of_cpus_keeps_its_cpus(cpus: list[int]) -> None:
    text = ", ".join(map(str, sorted(cpus, reverse=True)))
    assert parse_cpus(check_level(catalogue().tunables["affinity"], text)) == tuple(sorted(cpus))


@pytest.mark.parametrize(
    ("name", "text", "level"),
    [
        ("affinity", "2,0,1,7", "0-2,7"),
        ("sched_autogroup_enabled", "Off", "0"),
        ("sched_feat_hrtick", "true", "1"),
        ("sched_verbose", "on", "Y"),
        ("sched_verbose", "n", "N"),
        ("policy", " FIFO", "fifo"),
        ("sched_rt_runtime_us", "-1", "-1"),
        ("nice", "+4", "4"),
    ],
)
def test_what_people_write_becomes_what_the_kernel_shows(name: str, text: str, level: str) -> None:
    assert check_level(catalogue().tunables[name], text) == level


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("sched_min_granularity_ns", "0.75 MiB", "MiB is the wrong unit"),
        ("nice", "0;10", "not a whole number"),
        ("sched_min_granularity_ns", "99999", "between 100000 and 1000000000 ns"),
        ("sched_rt_runtime_us", "-2", "-1 (no limit)"),
        ("sched_autogroup_enabled", "2", "expected 0 (off) or 1 (on)"),
        ("policy", "fif", "other, batch, idle, fifo, rr"),
        ("affinity", "3-1", "list of CPUs"),
        ("affinity", "", "list of CPUs"),
        ("numa_balancing_scan_size_mb", "0", "expected between 1 and"),
        ("nice", "²", "not a whole number"),
    ],
)
def test_a_wrong_level_says_what_would_be_right(name: str, text: str, message: str) -> None:
    with pytest.raises(RequestError) as raised:
        check_level(catalogue().tunables[name], text)
    assert name in raised.value.message
    assert message in raised.value.message


@pytest.mark.parametrize(("text", "hint"), [("64mb", "did you mean MB?"), ("64X", "KiB"), ("50%", "MiB")])
def test_a_wrong_unit_names_the_right_ones(text: str, hint: str) -> None:
    with pytest.raises(RequestError) as raised:
        check_level(catalogue().tunables["vm.dirty_bytes"], text)
    assert hint in (raised.value.hint or "")


def test_a_choice_depends_on_the_kernel() -> None:
    preempt = catalogue().tunables["preempt"]
    assert check_level(preempt, "voluntary", KernelVersion.parse("6.12")) == "voluntary"
    with pytest.raises(RequestError, match="full, lazy"):
        check_level(preempt, "voluntary", KernelVersion.parse("7.1"))
    with pytest.raises(RequestError, match="none, voluntary, full"):
        check_level(preempt, "lazy", KernelVersion.parse("6.12"))
