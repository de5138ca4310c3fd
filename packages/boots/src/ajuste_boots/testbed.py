"""Testbed of this machine across the boots of an experiment: a trial runs in its own boot, or requests it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor, OnStart, TrialDone, TrialRequest
from ajuste.model.boot import BOOTS, BootState
from ajuste.model.error import RequestError
from ajuste.model.event import Hello
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.report.plan import PlannedStudy
from ajuste.run.experiment import Anew
from ajuste.run.relevance import ActivityObserver
from ajuste.run.testbed import Experiment, RebootingTestbed, RunOptions
from ajuste.study.answerable import boot_round
from ajuste.study.resolved import Machine, ResolvedStudy
from ajuste.study.schema import Study
from ajuste_boots.experiment import across_boots, end
from ajuste_boots.extent import planned_reboots
from ajuste_boots.loader import installed_kernel
from ajuste_boots.session import LOADER_NAMES, BootSession, RebootableMachine, RebootWanted

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
        """Return the environment of ``inner``; ``boots`` has the facts on each boot."""
        return self._inner.environment

    @property
    def records(self) -> Mapping[str, Any]:
        return {BOOTS: self._session.kept_boots.model_dump(mode="json")}

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._inner.__exit__(*exception)

    def run(self, plan: Plan) -> Observation:
        return self._inner.run(plan)

    def carry_out(self, requests: Sequence[TrialRequest], on_start: OnStart) -> Iterator[list[TrialDone]]:
        """Carry out the trials of the first requested boot in it, or raise RebootWanted for it."""
        wanted = _boot_of_request(requests[0])
        ready = [request for request in requests if _boot_of_request(request) == wanted]
        current = self._session.current
        if current is None or (current.round, current.state) != (wanted[0], wanted[1].name):
            _LOG.info("reboot asked for", extra={"state": wanted[1].name, "round": wanted[0]})
            self._session.ask(*wanted)
            raise RebootWanted
        self._session.begin_trials([(trial.slot.block, trial.slot.position, trial.attempt) for trial in ready])
        for request in ready:  # One at a time: a trial is stored before the next one starts.
            yield from super().carry_out([request], on_start)
        if rest := [request for request in requests if _boot_of_request(request) != wanted]:
            yield from self.carry_out(rest, on_start)


def _boot_of_request(request: TrialRequest) -> tuple[int, BootState]:
    state = request.study.find(request.slot.configuration).boot
    return boot_round(request.study.study, request.slot.block), state or BootState()


class BootedTestbed(RebootingTestbed):
    """Measures in all the boots of an experiment, in each of which a study is resolved as it was when it began."""

    loaders: ClassVar[tuple[str, ...]] = LOADER_NAMES

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        assert options.reboots is None or isinstance(options.reboots, BootSession)
        self._session = options.reboots

    @property
    def release(self) -> str:
        return self._session.plan.kernel if self._session else super().release

    @property
    def marks(self) -> dict[str, str]:
        return self._session.plan.marks if self._session else super().marks

    def planned(self, resolved: ResolvedStudy, catalogue: Catalogue) -> PlannedStudy:
        for state in resolved.boots:
            if state.kernel:
                installed_kernel(state.kernel)
        planned = super().planned(resolved, catalogue)
        return planned.model_copy(update={"reboots": planned_reboots(resolved)})

    def prepared(self, resolved: ResolvedStudy, catalogue: Catalogue) -> Experiment:
        experiment = super().prepared(resolved, catalogue)
        if self._session is None and not self.options.reboots_allowed:
            raise RequestError(
                "this study reboots this machine",
                hint="add --reboots to `ajuste run` or `ajuste compare`; `ajuste plan` and --dry-run show how often",
            )
        return experiment

    def executor(self, experiment: Experiment, machine: Machine, first: Callable[[Executor], None]) -> Executor:
        host = super().executor(experiment, machine, first)
        return host if self._session is None else RebootingExecutor(host, self._session)

    def observer(self, experiment: Experiment, catalogue: Catalogue) -> ActivityObserver | None:
        return super().observer(experiment, catalogue) if self._session is None else None

    def carry_out(
        self, study: Study, catalogue: Catalogue, fresh: Anew, measured: Callable[[RunOptions, Anew], int]
    ) -> int:
        return across_boots(study, catalogue, self.options, fresh, measured)

    def unfinished(self) -> tuple[str, ...] | None:
        session = BootSession.load(self.options.home.reboots, RebootableMachine())
        return None if session is None else tuple(session.plan.originals)

    def end(self) -> None:
        if (session := BootSession.load(self.options.home.reboots, RebootableMachine())) is not None:
            end(session)
