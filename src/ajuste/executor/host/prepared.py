"""A host that is made ready for one study: its changes tried, its set-up run, and its clean-up whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Self

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import NEEDS_ROOT, require_rights, why_no_weight, why_not_writable
from ajuste.executor.host.caller import agents_directory
from ajuste.executor.host.host import HostExecutor
from ajuste.executor.host.machine import HostMachine
from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Failed
from ajuste.model.plan import REAL_TIME, Command, Plan, Write
from ajuste.model.wording import Say
from ajuste.outputs.services import with_advice
from ajuste.outputs.trial import with_last_words
from ajuste.study.named import LOOP, disks_of_mkfs
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy


class PreparedHost(HostExecutor):
    """Entering tries each of the ``changes`` (the writes of one configuration) once and takes it back: RequestError for
    a value that the kernel refuses, a place that is locked or not there. Then it runs ``setup``; leaving runs
    ``cleanup`` if the set-up began, also after a failure or an interruption. Neither is measured; each of their
    commands may take ``timeout_ns``. ``first`` is called before anything is changed.
    """

    def __init__(
        self,
        home: Home | None = None,
        say: Say = lambda _: None,
        *,
        changes: Sequence[tuple[Write, ...]] = (),
        setup: tuple[Command, ...] = (),
        cleanup: tuple[Command, ...] = (),
        first: Callable[[Executor], None] = lambda _: None,
        timeout_ns: int,
        wait_s: float = 0,
    ) -> None:
        super().__init__(home, say, wait_s=wait_s)
        self._first = first
        self._changes = tuple(dict.fromkeys(writes for writes in changes if writes))
        self._setup = setup
        self._cleanup = cleanup
        self._timeout_ns = timeout_ns
        self._prepared = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(agents_directory())
            super().__enter__()
            stack.push(super().__exit__)
            self._first(self)
            for number, writes in enumerate(self._changes):
                self._try(Plan(id=f"change-{number}", writes=writes))
            stack.callback(self._clean_up)
            self._once("setup", self._setup)
            self._prepared = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._prepared.close()

    def _try(self, plan: Plan) -> None:
        observation = self.run(plan)
        for event in observation.events:
            if isinstance(event, Failed):
                raise RequestError(
                    f"{event.tunable or 'the change'} cannot be set on this machine: {event.message}",
                    hint="see what this machine accepts with `ajuste tunables show NAME`; nothing was changed",
                )
        if observation.problem:
            raise RunError(f"the changes could not be tried: {observation.problem}")

    def _clean_up(self) -> None:
        if self._cleanup:
            # A trial may have been cut short.
            self.begin_anew()
            self._once("cleanup", self._cleanup)

    def _once(self, name: str, commands: tuple[Command, ...]) -> None:
        if not commands:
            return
        observation = self.run(Plan(id=name, before=commands, timeout_ns=self._timeout_ns))
        failures = [event.message for event in observation.events if isinstance(event, Failed)]
        if failures or observation.problem:
            why = with_last_words("; ".join(failures) or observation.problem, observation.events)
            raise RunError(with_advice(f"the {name} command failed: {why}"))


def prepared_for(
    resolved: ResolvedStudy,
    home: Home,
    say: Say = lambda _: None,
    first: Callable[[Executor], None] = lambda _: None,
    *,
    wait_s: float = 0,
) -> PreparedHost:
    """This machine, made ready for that study; ``first`` is called before anything is changed."""
    return PreparedHost(
        home,
        say,
        first=first,
        changes=[configuration.writes for configuration in resolved.configurations],
        setup=resolved.setup,
        cleanup=resolved.cleanup,
        timeout_ns=round(resolved.study.workload.timeout_s * 1e9),
        wait_s=wait_s,
    )


# Whether a study may be carried out on this machine at all, known before anything is run.


REAL_TIME_NOTE = "a real-time process that never sleeps blocks every other process on its CPU"


def require_possible(resolved: ResolvedStudy, catalogue: Catalogue, *, accept_risk: bool, dry: bool = False) -> None:
    """Raises RequestError for what needs root if there is none, for a tunable or control groups that this machine lacks
    or locks, for a kernel module, and for what can hang the machine unless the person has accepted that. A study that
    is ``dry`` is only planned, which needs no root.
    """
    _refuse_modules(resolved)
    once = Plan(id="once", before=resolved.setup, after=resolved.cleanup)
    for plan in () if dry else (once, *map(_plan, resolved.configurations)):
        require_rights(plan)
    machine = HostMachine()
    _require_writable(resolved, catalogue, machine, dry=dry)
    _require_weights(resolved, machine)
    if accept_risk:
        return
    for one in disks_of_mkfs(resolved.study.scratch) if resolved.study.scratch else ():
        raise RequestError(
            f"{one.where} = {one.value[:80]!r} may lead to another disk or a directory of this machine",
            hint="add --accept-risk to do it anyway, or use only options of the file system itself",
        )
    for configuration in resolved.configurations:
        device = configuration.scratch.device if configuration.scratch else ""
        if device and not device.startswith(LOOP):
            raise RequestError(
                f"{configuration.configuration.name} overwrites {device} of this machine",
                hint="add --accept-risk to do it anyway, or omit device for a file of its own",
            )
        if reason := _risk(configuration, catalogue):
            raise RequestError(
                f"{configuration.configuration.name} can hang this machine: {reason}",
                hint="add --accept-risk to do it anyway, or use a guest, where there is no risk",
            )


def _refuse_modules(resolved: ResolvedStudy) -> None:
    """Raises RequestError if a configuration needs a module: none of ours is ever loaded on this machine."""
    for configuration in resolved.configurations:
        if configuration.modules:
            raise RequestError(
                f"{configuration.configuration.name} needs the kernel module {configuration.modules[0]}, which "
                "Ajuste loads only in guests",
                hint="use a guest, such as --target vm --kernel debian:5.10",
            )


def _require_writable(resolved: ResolvedStudy, catalogue: Catalogue, machine: HostMachine, *, dry: bool) -> None:
    names = (write.tunable for configuration in resolved.configurations for write in configuration.writes)
    for name in dict.fromkeys(names):
        tunable = catalogue.find_tunable(name)
        why = why_not_writable(catalogue, tunable, machine)
        if why and not (dry and why.startswith(NEEDS_ROOT)):
            raise RequestError(
                f"{name} cannot be changed on this machine: {why}", hint=f"see ajuste tunables show '{name}'"
            )


def _require_weights(resolved: ResolvedStudy, machine: HostMachine) -> None:
    for configuration in resolved.configurations:
        commands = (configuration.workload, *configuration.background, *(s.command for s in configuration.services))
        if any(command.attributes.cgroup_weight is not None for command in commands) and (
            why := why_no_weight(machine)
        ):
            raise RequestError(
                f"{configuration.configuration.name} needs a control group's weight: {why}",
                hint="use a guest, which has control groups: set a kernel in [target]",
            )


def _plan(configuration: ResolvedConfiguration) -> Plan:
    return Plan(
        id="possible",
        writes=configuration.writes,
        scratch=configuration.scratch,
        before=configuration.before,
        background=configuration.background,
        workload=configuration.workload,
        after=configuration.after,
    )


def _risk(configuration: ResolvedConfiguration, catalogue: Catalogue) -> str:
    for write in configuration.writes:
        tunable = catalogue.find_tunable(write.tunable)
        if tunable.risk == "hang":
            return f"{tunable.name}: {tunable.risk_note}"
    served = (service.command for service in configuration.services)
    commands: tuple[Command, ...] = (configuration.workload, *configuration.background, *served)
    for command in commands:
        if command.attributes.policy in REAL_TIME:
            return f"policy {command.attributes.policy}: {REAL_TIME_NOTE}"
    return ""
