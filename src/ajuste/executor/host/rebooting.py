"""This machine in the boots of an experiment: trials run in the boot that they belong to, or ask for it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final, Self

from ajuste.executor.executor import Begun, Executor, TrialDone, TrialRequest
from ajuste.machine.boot.session import BootSession, RebootWanted
from ajuste.model.boot import BootState, KeptBoots
from ajuste.model.event import Hello
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.study.answerable import round_of

_LOG: Final = logging.getLogger(__name__)


class RebootingExecutor(Executor):
    """``inner`` is this machine; ``session`` says in which boot of the experiment it is."""

    keeps_values = True

    def __init__(self, inner: Executor, session: BootSession) -> None:
        self._inner = inner
        self._session = session

    @property
    def hello(self) -> Hello:
        return self._inner.hello

    @property
    def environment(self) -> dict[str, str]:
        """That of the boots is in ``boots``."""
        return self._inner.environment

    @property
    def boots(self) -> KeptBoots:
        return self._session.kept_boots

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._inner.__exit__(*exception)

    def run(self, plan: Plan) -> Observation:
        return self._inner.run(plan)

    def carry_out(self, requests: Sequence[TrialRequest], begun: Begun) -> Iterator[list[TrialDone]]:
        """Those of the first boot that is asked for: in it, or else RebootWanted is raised for it."""
        wanted = _boot_of(requests[0])
        own = [request for request in requests if _boot_of(request) == wanted]
        current = self._session.current
        if current is None or (current.round, current.state) != (wanted[0], wanted[1].name):
            _LOG.info("reboot asked for", extra={"state": wanted[1].name, "round": wanted[0]})
            self._session.ask(*wanted)
            raise RebootWanted
        self._session.begin_trials([(one.slot.block, one.slot.position, one.attempt) for one in own])
        for request in own:  # One at a time: a trial is kept before the next one begins.
            yield from super().carry_out([request], begun)
        if rest := [request for request in requests if _boot_of(request) != wanted]:
            yield from self.carry_out(rest, begun)


def _boot_of(request: TrialRequest) -> tuple[int, BootState]:
    state = request.study.find(request.slot.configuration).boot
    return round_of(request.study.study, request.slot.block), state or BootState()
