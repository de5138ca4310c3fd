"""When the trials are looked at: a schedule of numbers of blocks that nothing measured has any influence on.

Any choice of looks that does not depend on the figures leaves the intervals valid (see ``analysis.sequence``). That it
does not depend on where a run was interrupted either makes an interrupted run end as an undisturbed one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import Final

LOOKS_EACH: Final = 40
"""Up to so many blocks the trials are looked at after every one."""

RARER: Final = 1.05
"""From then on, whenever there are so many times as many."""

REVIEW: Final = 1.1
"""So many times as many blocks lie between two reviews of what goes on being measured, at least."""


def looks() -> Iterator[int]:
    """The numbers of measured blocks after which there is a look, without end."""
    yield from range(1, LOOKS_EACH)
    number = LOOKS_EACH
    while True:
        yield number
        number = math.ceil(RARER * number)


def look_from(blocks: int) -> int:
    """The first look at ``blocks`` measured blocks or later."""
    if blocks <= LOOKS_EACH:
        return max(1, blocks)
    return next(number for number in looks() if number >= blocks)


def reviews(min_blocks: int) -> Iterator[int]:
    """The looks after which it is settled what goes on being measured; the first at ``min_blocks`` or soon after."""
    number = look_from(min_blocks)
    for _ in count():
        yield number
        number = look_from(max(number + 1, math.ceil(REVIEW * number)))


def last_review(measured: int, min_blocks: int) -> int | None:
    """The last review at ``measured`` blocks or before; ``None`` before the first."""
    found = None
    for number in reviews(min_blocks):
        if number > measured:
            return found
        found = number
    return found


def review_from(blocks: int, min_blocks: int) -> int:
    """The first review at ``blocks`` measured blocks or later."""
    return next(number for number in reviews(min_blocks) if number >= blocks)
