"""A host that is made ready for one study: its changes tried, its set-up run, and its clean-up whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Failed, Hello
from ajuste.model.observation import Observation
from ajuste.model.plan import Command, Plan, Write
from ajuste.study.resolved import ResolvedStudy
from ajuste.target.host import HostTarget
from ajuste.target.target import Target


class PreparedHost:
    """Entering tries each of the ``changes`` (the writes of one configuration) once and takes it back: RequestError for
    a value that the kernel refuses, a place that is locked or not there. Then it runs ``setup``; leaving runs
    ``cleanup`` if the set-up began, also after a failure or an interruption. Neither is measured; each of their
    commands may take ``timeout_ns``. ``first`` is called before anything is changed.
    """

    def __init__(
        self,
        host: HostTarget,
        *,
        changes: Sequence[tuple[Write, ...]] = (),
        setup: tuple[Command, ...] = (),
        cleanup: tuple[Command, ...] = (),
        first: Callable[[Target], None] = lambda _: None,
        timeout_ns: int,
    ) -> None:
        self._host = host
        self._first = first
        self._changes = tuple(dict.fromkeys(writes for writes in changes if writes))
        self._setup = setup
        self._cleanup = cleanup
        self._timeout_ns = timeout_ns
        self._stack = ExitStack()

    @property
    def hello(self) -> Hello:
        return self._host.hello

    @property
    def environment(self) -> dict[str, str]:
        return self._host.environment

    @property
    def parallel(self) -> int:
        return self._host.parallel

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._host)
            self._first(self._host)
            for number, writes in enumerate(self._changes):
                self._try(Plan(id=f"change-{number}", writes=writes))
            stack.callback(self._clean_up)
            self._once("setup", self._setup)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, plan: Plan) -> Observation:
        return self._host.run(plan)

    def run_in_turn(self, plans: Sequence[Plan]) -> list[tuple[str, Observation]]:
        return self._host.run_in_turn(plans)

    def _try(self, plan: Plan) -> None:
        observation = self._host.run(plan)
        for event in observation.events:
            if isinstance(event, Failed):
                raise RequestError(
                    f"{event.tunable or 'the change'} cannot be set on this machine: {event.message}",
                    hint="nothing was changed; `ajuste tunables show NAME` says what this machine accepts",
                )
        if observation.problem:
            raise RunError(f"the changes could not be tried: {observation.problem}")

    def _clean_up(self) -> None:
        if self._cleanup:
            # A trial may have been cut short.
            self._host.begin_anew()
            self._once("cleanup", self._cleanup)

    def _once(self, name: str, commands: tuple[Command, ...]) -> None:
        if not commands:
            return
        observation = self._host.run(Plan(id=name, before=commands, timeout_ns=self._timeout_ns))
        failures = [event.message for event in observation.events if isinstance(event, Failed)]
        if failures or observation.problem:
            raise RunError(f"the {name} command failed: {'; '.join(failures) or observation.problem}")


def prepared_for(
    resolved: ResolvedStudy, host: HostTarget, first: Callable[[Target], None] = lambda _: None
) -> PreparedHost:
    """``host``, made ready for that study; ``first`` is called before anything is changed."""
    return PreparedHost(
        host,
        first=first,
        changes=[configuration.writes for configuration in resolved.configurations],
        setup=resolved.setup,
        cleanup=resolved.cleanup,
        timeout_ns=round(resolved.study.workload.timeout_s * 1e9),
    )
