from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.topology import parse_cpus


@given(st.sets(st.integers(0, 300), min_size=1))
def test_numbers_come_back_sorted_and_once(cpus: set[int]) -> None:
    assert parse_cpus(",".join(map(str, [*cpus, *cpus]))) == tuple(sorted(cpus))


def test_ranges_are_inclusive_as_in_taskset() -> None:
    assert parse_cpus("0-2,5,7-7") == (0, 1, 2, 5, 7)


@pytest.mark.parametrize("text", ["", "a", "1,", "-1", "3-1", "1-", "0,,1", "0 1", "99999"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected"):
        parse_cpus(text)
