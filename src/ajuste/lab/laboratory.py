"""Everything that the pages share: one service, one index of runs, one watch of each run that goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ajuste.lab.index import RunFacts, RunIndex
from ajuste.lab.quietness import Quietness
from ajuste.lab.service import LabService
from ajuste.lab.watch import Watches
from ajuste.store.head import Head
from ajuste.store.remarks import RunNotes


@dataclass
class Laboratory:
    """``token`` is that of who may change things, ``address`` where the page is."""

    service: LabService
    token: str
    address: str
    index: RunIndex = field(init=False)
    notes: RunNotes = field(init=False)
    quietness: Quietness = field(init=False)
    watches: Watches = field(init=False)
    kept_kernels: tuple[float, dict[str, Any]] | None = None
    """When kernels were listed last, and what came of it."""

    def __post_init__(self) -> None:
        home = self.service.home
        self.index, self.notes = RunIndex(home), RunNotes(home)
        self.quietness, self.watches = Quietness(home, self.service.jobs), Watches(self.service)

    def runs(self) -> tuple[list[Head], dict[str, RunFacts]]:
        """All runs, the one begun last first, with what is known of them by now."""
        heads = self.service.runs()
        return heads, self.index.of(heads)
