"""Lists and masks of CPUs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.topology import cpu_list, cpu_mask
from ajuste_profiles.tuned import of_mask, read_cpus, written

CPUS = st.lists(st.integers(0, 300), unique=True).map(sorted)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0,2-4", [0, 2, 3, 4]),
        ("1-5,^3,!4", [1, 2, 5]),
        ("0x1f", [0, 1, 2, 3, 4]),
        ("0x1,00000000,,40", [32, 40]),
        ("'2,1'", [1, 2]),
        ("", []),
        ("one", []),
        ("0-99999999999", []),
    ],
)
def test_a_list_is_read_as_tuned_reads_it(text: str, cpus: list[int]) -> None:
    assert read_cpus(text) == cpus


@given(CPUS)
def test_what_is_written_is_read_again(cpus: list[int]) -> None:
    assert read_cpus(written(cpus)) == cpus
    assert read_cpus(cpu_list(cpus)) == cpus
    assert of_mask(cpu_mask(cpus)) == tuple(cpus)


@given(CPUS)
def test_a_mask_has_groups_of_eight_digits(cpus: list[int]) -> None:
    groups = cpu_mask(cpus).split(",")
    assert all(len(group) == 8 for group in groups)
    assert int("".join(groups), 16) == sum(2**cpu for cpu in cpus)


@given(st.text())
def test_any_text_is_a_list_of_cpus_or_none(text: str) -> None:
    assert read_cpus(text) == sorted(set(read_cpus(text)))
