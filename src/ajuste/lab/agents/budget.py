"""What one client may use: trials, minutes of measuring, calls; and what of this machine it may change."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.study.schema import Study
from ajuste.study.settings import canonical, names_set

MINUTE_S: Final = 60.0


@dataclass(frozen=True)
class AgentLimits:
    """``trials`` and ``minutes`` for all that a client starts, ``calls`` in any minute."""

    trials: int = 2000
    minutes: float = 120.0
    calls: int = 120


@dataclass
class _Charge:
    trials: int
    minutes: float
    since: float
    settled: bool = False


@dataclass
class AgentBudget:
    """What a client has used. What is started counts as much as it may take, until it has ended: then as much as it
    took. Safe to use from several threads; ``clock`` gives seconds that only grow.
    """

    limits: AgentLimits
    clock: Callable[[], float] = time.monotonic
    _charges: dict[str, _Charge] = field(default_factory=dict, init=False)
    _calls: deque[float] = field(default_factory=deque, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def call(self) -> None:
        """One more call. Raises RequestError for too many in a minute."""
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
        """Whether so much is left. Raises RequestError with what to make smaller."""
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

    def charge(self, job: str, trials: int, minutes: float) -> None:
        """That a job was started which may take so much."""
        with self._lock:
            self._charges[job] = _Charge(trials, minutes, self.clock())

    def settle(self, job: str, trials: int | None) -> None:
        """That a job has ended, after so many ``trials`` if that is known."""
        with self._lock:
            charge = self._charges.get(job)
            if charge is None or charge.settled:
                return
            charge.trials = charge.trials if trials is None else min(trials, charge.trials)
            charge.minutes = min(charge.minutes, (self.clock() - charge.since) / MINUTE_S)
            charge.settled = True

    def owns(self, job: str) -> bool:
        """Whether this client has started that job."""
        return job in self._charges

    @property
    def open_jobs(self) -> list[str]:
        """Those that were not seen to end."""
        with self._lock:
            return [job for job, charge in self._charges.items() if not charge.settled]

    def left(self) -> dict[str, float]:
        """The rest of trials and minutes."""
        with self._lock:
            trials, minutes = self._used()
        return {
            "trials": max(0, self.limits.trials - trials),
            "minutes": round(max(0.0, self.limits.minutes - minutes), 2),
        }

    def _used(self) -> tuple[int, float]:
        charges = self._charges.values()
        return sum(one.trials for one in charges), sum(one.minutes for one in charges)


# What a client may do to this machine itself: nothing, unless a person named the tunables.


_COMMANDS: Final = ("command", "setup", "prepare", "cleanup")


def require_host_allowed(study: Study, allowed: Collection[str], known: Catalogue) -> None:
    """Raises RequestError for a study of this machine that writes anything but what is ``allowed``, or that runs
    anything but workloads of the catalogue.
    """
    if not study.target.on_host:
        return
    if not allowed:
        raise RequestError(
            "this study runs on this machine, and this session may only use guests",
            hint='set target.kind = "vm" with a kernel, or ask for ajuste mcp --allow-host NAME,…',
        )
    names = {canonical(name, known) for factor in study.factors for name in names_set(factor)}
    if beyond := sorted(name for name in names if name not in allowed):
        raise RequestError(
            f"this session may not change {', '.join(beyond)[:200]} of this machine; allowed: {', '.join(allowed)}",
            hint="measure it in a guest, or ask the person to allow it",
        )
    table = study.workload
    own = [name for name in _COMMANDS if getattr(table, name) is not None]
    own += ["variant"] if table.variants else []
    own += ["service"] if table.services else []
    own += ["background"] if any(load.kind is None for load in table.background) else []
    own += ["as_root"] if table.as_root else []
    own += ["scratch"] if study.scratch else []
    own += ["disk"] if study.disk else []
    if own:
        raise RequestError(
            f"on this machine this session may only run workloads of the catalogue; the study has {', '.join(own)}",
            hint="use a workload of the catalogue, or measure in a guest",
        )
