"""The space of a search: points, their place for a model, and what a kernel made of them."""

from __future__ import annotations

import pytest

from ajuste.model.trial import Factor
from ajuste.model.tunable import Span
from ajuste_search.tuning.sampler import Space, build_space


def factor(name: str, *levels: str, span: Span | None = None) -> Factor:
    return Factor(name=name, levels=levels, baseline=levels[0], span=span)


def test_factors_with_one_level_are_no_axes() -> None:
    space = build_space([factor("a", "1", "2", "3"), factor("b", "7")])
    assert [axis.name for axis in space.axes] == ["a"]
    assert space.size == 3


@pytest.mark.parametrize(
    ("levels", "places"),
    [
        (("10", "15", "20"), (0, 0.5, 1)),
        (("1", "10", "100"), (0, 0.5, 1)),
        (("0", "1", "1000"), (0, 0.5, 1)),
        (("3", "1", "2"), (1, 0, 0.5)),
    ],
    ids=["linear", "by ratios where wide", "by rank where wide from 0", "in any order"],
)
def test_numbers_lie_between_0_and_1(levels: tuple[str, ...], places: tuple[float, ...]) -> None:
    space = build_space([factor("a", *levels)])
    assert [row[0] for row in space.rows(space.all_points())] == pytest.approx(places)


def test_a_range_by_ratios_is_taken_by_ratios_though_narrow() -> None:
    space = build_space([factor("a", "1", "2", "4", span=Span(low=1, high=4, scale="log"))])
    assert space.row({"a": "2"}) == pytest.approx((0.5,))


def test_words_have_a_column_each_and_none_is_nearer_than_another() -> None:
    space = build_space([factor("governor", "none", "bfq", "kyber")])
    assert space.rows(space.all_points()).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_a_value_that_the_kernel_made_lies_where_it_is() -> None:
    space = build_space([factor("a", "100", "200", "300")])
    assert space.row({"a": "150"}) == pytest.approx((0.25,))
    assert space.find_point({"a": "200"}) == (1,)
    assert space.find_point({"a": "150"}) is None


def test_neighbours_are_one_step_away_on_one_axis_or_two() -> None:
    space: Space = build_space([factor("a", "1", "2", "3"), factor("b", "1", "2", "3")])
    assert space.neighbours((0, 0)) == [(0, 1), (1, 0), (1, 1)]
