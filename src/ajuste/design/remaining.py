"""How long a run will probably go on, told before it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ajuste.design.allocation import Allocation
from ajuste.design.looks import look_from, review_from
from ajuste.model.verdict import Finding


@dataclass(frozen=True)
class Remaining:
    """``blocks`` are those that all have (the baseline at least) until the end; ``own`` tells of each configuration
    that is left out of some of them how many it has. ``at_most``: the budget ends it, or nobody knows.
    """

    blocks: int
    own: Mapping[str, int]
    at_most: bool

    def seconds(self, mean_seconds: Mapping[str, float]) -> float:
        """How long all of it takes, from the mean time of a trial of every configuration."""
        return sum(self.own.get(name, self.blocks) * each for name, each in mean_seconds.items())


def remaining(
    done: int, findings: Sequence[Finding], *, min_blocks: int, max_blocks: int, allocation: Allocation = "all"
) -> Remaining:
    """What is still to be measured after ``done`` measured blocks, if the deciding ``findings`` need as many more
    blocks as they say.

    A configuration that is undecided goes on until the review after it is decided; the run, until the look after
    everything is.
    """
    budget = max(0, max_blocks - done)
    deciding = [one for one in findings if one.deciding]
    wanted: dict[str, int | None] = {one.subject: 0 for one in deciding}
    for one in deciding:
        if one.verdict == "undecided":
            known = wanted[one.subject]
            more = one.more_blocks
            wanted[one.subject] = None if more is None or known is None else max(known, more)
    if not wanted:
        return Remaining(budget, {}, at_most=True)
    ends = {name: None if more is None else max(done + more, min_blocks) for name, more in wanted.items()}
    known_ends = [budget + done if end is None else look_from(end) for end in ends.values()]
    blocks = max(0, min(max(known_ends), max_blocks) - done)
    at_most = any(end is None or end > max_blocks for end in ends.values())
    if allocation == "all":
        return Remaining(blocks, {}, at_most)
    own = {
        name: min(blocks, review_from(end, min_blocks) - done if wanted[name] or done < min_blocks else 0)
        for name, end in ends.items()
        if end is not None
    }
    return Remaining(blocks, own, at_most)
