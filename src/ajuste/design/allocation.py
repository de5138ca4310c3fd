"""Allocation: which configurations later blocks hold, once some of them are decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ajuste.model.verdict import Finding

Allocation = Literal["undecided", "all", "refine"]
"""``undecided``: later blocks hold the baseline and what is still undecided; ``all``: every block holds everything;
``refine``: blocks hold what the surface over a grid of levels needs (see ``design.refinement``).
"""


def members(names: Sequence[str], baseline: str, findings: Sequence[Finding]) -> tuple[str, ...]:
    """The configurations of the blocks that follow ``findings``, in the order of ``names``.

    The baseline, and what is undecided on a metric that decides. Where nothing is, and yet it goes on (for the least
    time that was asked for), all of them: a block of the baseline alone would tell nothing.

    Every comparison is a confidence sequence of its own over the blocks that hold its pair. Up to when it is measured
    depends on its past only, and the sequence holds at every such time: a comparison that ended stays as it was then.
    """
    undecided = {v.subject for v in findings if v.deciding and v.verdict == "undecided" and not v.depends_on_machine}
    if not undecided:
        return tuple(names)
    return tuple(name for name in names if name == baseline or name in undecided)
