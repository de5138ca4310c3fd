"""The order in which several machines measure a run, as a testbed of theirs may decide it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from ajuste.design.stopping import Stop, StoppingLimits
from ajuste.model.trial import Trial
from ajuste.model.verdict import Finding
from ajuste.run.schedule import TrialHistory


class StopAll(Exception):
    """Stops all machines at once; ``stop`` says why."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.words)
        self.stop = stop


class MachineOrder(ABC):
    """Assigns blocks to machines in waves, with a look after each wave, and knows reasons to stop all machines."""

    assigned: Mapping[int, str]
    """Machines by the blocks of the current wave."""

    @abstractmethod
    def assign(self, first: int, history: TrialHistory, limits: StoppingLimits) -> tuple[int, StoppingLimits]:
        """Assign the next wave, from block ``first`` on. Return its last block, and ``limits`` that end the run when
        every machine has measured its blocks.
        """

    @abstractmethod
    def harm(self, findings: Sequence[Finding], trials: Sequence[Trial], history: TrialHistory) -> Stop | None:
        """Return the stop if a deciding metric worsens significantly, on all machines together or on one of them."""

    @abstractmethod
    def require_guards(self, trial: Trial, machine: str, history: TrialHistory) -> None:
        """Raise StopAll if ``trial`` breaks a guard."""
