"""Lines with fewer points that look the same."""

from __future__ import annotations

from collections.abc import Sequence

Points = list[tuple[float, float]]


def thin(points: Sequence[tuple[float, float]], most: int) -> Points:
    """At most ``most`` (4 or more) of ``points``, which are in order of their first coordinate.

    Points within a level stretch say nothing and go first; then, in each of as many equal spans as there is room for,
    all but the lowest and the highest. First and last stay.
    """
    kept = _without_level(points)
    if len(kept) <= most:
        return kept
    first, *inner, last = kept
    spans = (most - 2) // 2
    width = (last[0] - first[0]) / spans
    groups: dict[int, Points] = {}
    for point in inner:
        groups.setdefault(min(spans - 1, int((point[0] - first[0]) / width)), []).append(point)
    extremes = [point for own in groups.values() for point in _extremes(own)]
    return [first, *extremes, last]


def _without_level(points: Sequence[tuple[float, float]]) -> Points:
    def says_something(place: int) -> bool:
        at_an_end = place in (0, len(points) - 1)
        return at_an_end or not (points[place - 1][1] == points[place][1] == points[place + 1][1])

    return [point for place, point in enumerate(points) if says_something(place)]


def _extremes(points: Points) -> Points:
    lowest, highest = (which(points, key=lambda point: point[1]) for which in (min, max))
    return sorted({lowest, highest})
