"""What a source of a live metric is. Each kind is one file in ``sources``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ajuste.run.live.reading import Fold, Shown

READ_SECONDS = 0.8
"""A source that takes longer has shown nothing this time."""
PAST_SECONDS = 10.0
"""Nothing is waited for longer than that before an experiment begins."""


Past = Callable[[float, float], Sequence[float]]
"""The figures of slices in a row until now: how far apart they begin, and how long each counts, in seconds."""


class NothingShownError(Exception):
    """A source shows nothing now; the message says why, in a few words."""


@dataclass(frozen=True)
class Source:
    """One metric where it is.

    ``read`` gives what is shown now; it may be called from another thread, one call at a time, and raises
    NothingShownError within about ``READ_SECONDS``. ``fold`` makes the figure of several readings. Sources with the
    same ``origin`` are read one after the other, others at once. ``close`` lets go of what is open. A source that
    remembers has a ``past``, which raises NothingShownError like ``read``, but may take ``PAST_SECONDS``.
    """

    origin: str
    read: Callable[[], Shown]
    fold: Fold
    close: Callable[[], None] = lambda: None
    past: Past | None = None
