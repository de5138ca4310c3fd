"""The budget of one client: trials, minutes of this machine's time, and calls."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ajuste.model.error import RequestError

MINUTE_S: Final = 60.0


@dataclass(frozen=True)
class AgentLimits:
    """Limits of a client: ``trials`` and ``minutes`` for all its jobs, ``calls`` in any minute."""

    trials: int = 2000
    minutes: float = 120.0
    calls: int = 120


@dataclass
class _Charge:
    trials: int
    minutes: float
    since: float
    whole: bool
    settled: bool = False


@dataclass
class AgentBudget:
    """The use of a client. A running job is charged at its limits, an ended one at what it used.

    Safe to use from several threads; ``clock`` is monotonic, in seconds.
    """

    limits: AgentLimits
    clock: Callable[[], float] = time.monotonic
    _charges: dict[str, _Charge] = field(default_factory=dict, init=False)
    _calls: deque[float] = field(default_factory=deque, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def call(self) -> None:
        """Count a call. Raises RequestError for too many in a minute."""
        with self._lock:
            now = self.clock()
            while self._calls and self._calls[0] <= now - MINUTE_S:
                self._calls.popleft()
            if len(self._calls) >= self.limits.calls:
                raise RequestError(
                    f"more than {self.limits.calls} calls in a minute", hint="wait a minute, then call less often"
                )
            self._calls.append(now)

    def require(self, trials: int, minutes: float) -> None:
        """Raise RequestError, with what to reduce, unless enough of the budget is left."""
        with self._lock:
            used_trials, used_minutes = self._used()
            left = self.limits.trials - used_trials
            if trials > left:
                raise RequestError(
                    f"this takes up to {trials:,} trials; {max(0, left):,} of {self.limits.trials:,} are left",
                    hint="ask for fewer blocks or configurations",
                )
            left_minutes = self.limits.minutes - used_minutes
            if minutes > left_minutes:
                raise RequestError(
                    f"this takes up to {minutes:.3g} minutes; {max(0.0, left_minutes):.3g} of "
                    f"{self.limits.minutes:.3g} are left",
                    hint="set a lower max_minutes",
                )

    def charge(self, job: str, trials: int, minutes: float, *, whole: bool = False) -> None:
        """Charge a new job at its limits; the ``whole`` of its trials also once it has ended."""
        with self._lock:
            self._charges[job] = _Charge(trials, minutes, self.clock(), whole)

    def settle(self, job: str, trials: int) -> None:
        """Charge an ended job for its actual time, and for its ``trials`` unless all are charged."""
        with self._lock:
            charge = self._charges.get(job)
            if charge is None or charge.settled:
                return
            charge.trials = charge.trials if charge.whole else min(trials, charge.trials)
            charge.minutes = (self.clock() - charge.since) / MINUTE_S
            charge.settled = True

    def owns(self, job: str) -> bool:
        """Return whether this client has started that job."""
        return job in self._charges

    @property
    def open_jobs(self) -> list[str]:
        """Return the jobs whose end is not known."""
        with self._lock:
            return [job for job, charge in self._charges.items() if not charge.settled]

    def left(self) -> dict[str, float]:
        """Return the rest of trials and minutes."""
        with self._lock:
            trials, minutes = self._used()
        return {
            "trials": max(0, self.limits.trials - trials),
            "minutes": round(max(0.0, self.limits.minutes - minutes), 2),
        }

    def _used(self) -> tuple[int, float]:
        charges = self._charges.values()
        return sum(charge.trials for charge in charges), sum(charge.minutes for charge in charges)
