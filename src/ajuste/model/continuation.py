"""Commands that measure a run again, or go on with it."""

from __future__ import annotations

from typing import Final

from ajuste.model.base import BaseModel
from ajuste.model.facet import Facet


class Continuation(BaseModel):
    """The continuation of an undecided run: ``command`` resumes it with a budget that is likely to be enough. A block
    took ``seconds_per_block`` of the host's time lately; None where that is not known.
    """

    command: str
    seconds_per_block: float | None = None


CONTINUATION: Final = Facet[Continuation | None]("continuation", Continuation, None, always=False)

REPRODUCE: Final = Facet[tuple[str, ...]]("reproduce", tuple[str, ...], ())
"""The exact commands that measure the run again, a line each."""
