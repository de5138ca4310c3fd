from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ajuste.analysis.record import thin

lines = st.lists(st.tuples(st.integers(1, 1000), st.integers(-50, 50)), min_size=1, max_size=300).map(
    lambda steps: [(float(sum(s for s, _ in steps[: n + 1])), float(value)) for n, (_, value) in enumerate(steps)]
)


@given(lines, st.integers(4, 60))
def test_what_is_kept_was_there_and_is_not_too_much(line: list[tuple[float, float]], most: int) -> None:
    thinned = thin(line, most)
    assert len(thinned) <= max(most, 2)
    assert set(thinned) <= set(line)
    assert thinned == sorted(thinned)
    assert (thinned[0], thinned[-1]) == (line[0], line[-1])
    for extreme in (min, max):
        assert extreme(value for _, value in thinned) == extreme(value for _, value in line)


@given(lines)
def test_with_enough_room_the_line_is_the_same(line: list[tuple[float, float]]) -> None:
    thinned = thin(line, len(line) + 4)
    at, values = zip(*line, strict=True)
    assert np.allclose(np.interp(at, *zip(*thinned, strict=True)), values)  # type: ignore[call-overload]


def test_a_step_needs_four_points() -> None:
    step = [(float(n), float(n >= 30)) for n in range(45)]
    assert thin(step, 10) == [(0, 0), (29, 0), (30, 1), (44, 1)]
