"""Check before anything runs whether a study may be carried out on this machine: rights, what it lacks, risks."""

from __future__ import annotations

import os
import resource
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.host.availability import (
    NEEDS_ROOT,
    HostMachine,
    why_no_weight,
    why_not_writable,
)
from ajuste.machine.home import as_root
from ajuste.model.error import RequestError
from ajuste.model.plan import REAL_TIME, Attributes, Command, FileLocation, Plan, Write
from ajuste.model.trial import SETTINGS_FACTOR
from ajuste.model.tunable import RISKS
from ajuste.model.wording import listed
from ajuste.study.named import LOOP, disks_of_mkfs
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste.study.schema import Study

REAL_TIME_NOTE = "a real-time process that never sleeps blocks every other process on its CPU"


def require_possible(resolved: ResolvedStudy, catalogue: Catalogue, *, accept_risk: bool, dry: bool = False) -> None:
    """Raise RequestError for missing root rights, for a tunable or control groups that this machine lacks or locks, for
    a kernel module, and for what can hang the machine unless the person has accepted that. A study that is ``dry`` is
    only planned, which needs no root.
    """
    _refuse_modules(resolved)
    if resolved.study.workload.as_root and not dry and os.geteuid() != 0:
        raise _refusal("a workload with as_root")
    once = Plan(id="once", before=resolved.setup, after=resolved.cleanup)
    for plan in () if dry else (once, *map(_plan, resolved.configurations)):
        require_rights(plan)
    machine = HostMachine()
    _require_writable(resolved, catalogue, machine, dry=dry)
    _require_weights(resolved, machine)
    if not accept_risk and (risk := next(risks(resolved, catalogue), None)):
        raise RequestError(risk.what, hint=f"add --accept-risk to do it anyway, or {risk.instead}")


@dataclass(frozen=True)
class Risk:
    """An effect of a study on this machine that the user has to accept, with what to do ``instead``."""

    what: str
    instead: str


def risks(resolved: ResolvedStudy, catalogue: Catalogue) -> Iterator[Risk]:
    """Yield everything in ``resolved`` that requires --accept-risk on this machine."""
    for parameter in disks_of_mkfs(resolved.study.scratch) if resolved.study.scratch else ():
        yield Risk(
            f"{parameter.where} = {parameter.value[:80]!r} may lead to another disk or a directory of this machine",
            "use only options of the file system itself",
        )
    for configuration in resolved.configurations:
        name = configuration.configuration.name
        device = configuration.scratch.device if configuration.scratch else ""
        if device and not device.startswith(LOOP):
            yield Risk(f"{name} overwrites {device} of this machine", "omit device for a file of its own")
        for tunable in (catalogue.find_tunable(write.tunable) for write in configuration.writes):
            if tunable.risk == "data":
                yield Risk(f"{name} {RISKS['data']}: {tunable.risk_note}", "use a server of its own")
        if reason := _reason_to_hang(configuration, catalogue):
            yield Risk(f"{name} can hang this machine: {reason}", "use a guest, where there is no risk")


def _refuse_modules(resolved: ResolvedStudy) -> None:
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
    why = why_no_weight(machine)
    weighted = [configuration.configuration.name for configuration in resolved.configurations if _weight(configuration)]
    if why and weighted:
        raise RequestError(
            f"{listed(weighted)} {'needs' if len(weighted) == 1 else 'need'} a control group's weight: {why}",
            hint=f"use a guest, which has control groups{_or_without(weighted, resolved.study)}",
        )


def _weight(configuration: ResolvedConfiguration) -> bool:
    commands = (configuration.workload, *configuration.background, *(s.command for s in configuration.services))
    return any(command.attributes.cgroup_weight is not None for command in commands)


def _or_without(names: Sequence[str], study: Study) -> str:
    # The option knows levels by their factor, as the names of configurations do where only one has settings.
    factor = study.factors[0]
    if len(study.factors) > 1 or not factor.settings or factor.name == SETTINGS_FACTOR:
        return ""
    return f", or leave levels out: {' '.join(f'--without {shlex.quote(name)}' for name in names)}"


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


def _is_present(write: Write) -> bool:
    # Whether this machine has that value now: to write it again changes nothing.
    if not isinstance(write.location, FileLocation):
        return False
    with suppress(OSError):
        return Path(write.location.path).read_text(errors="replace").split() == write.value.split()
    return False


def _reason_to_hang(configuration: ResolvedConfiguration, catalogue: Catalogue) -> str:
    for write in configuration.writes:
        tunable = catalogue.find_tunable(write.tunable)
        if tunable.risk == "hang" and not _is_present(write):
            return f"{tunable.name}: {tunable.risk_note}"
    served = (service.command for service in configuration.services)
    commands: tuple[Command, ...] = (configuration.workload, *configuration.background, *served)
    for command in commands:
        if command.attributes.policy in REAL_TIME:
            return f"policy {command.attributes.policy}: {REAL_TIME_NOTE}"
    return ""


# The rights of a trial.


WITHOUT_ROOT = (
    "without root, nice from 0 to 19, affinity and the policies batch and idle can be set; and in a guest everything "
    '(--vm, or kind = "vm" in a study)'
)


def require_rights(plan: Plan) -> None:
    """Raise RequestError for what ``plan`` does and only root may (credentials(7), getrlimit(2))."""
    if os.geteuid() == 0:
        return
    if plan.writes:
        raise _refusal(f"changing {', '.join(write.tunable for write in plan.writes)}")
    if plan.scratch is not None:
        raise _refusal("making a file system for the trial")
    workload = () if plan.workload is None else (plan.workload,)
    for command in (*plan.before, *plan.background, *plan.after, *workload):
        if reason := _beyond_rights(command.attributes):
            raise _refusal(reason)


def _refusal(what: str) -> RequestError:
    return RequestError(f"{what} needs root on this machine", hint=f"run {as_root()}\n{WITHOUT_ROOT}")


def _beyond_rights(attributes: Attributes) -> str:
    least_nice = min(os.getpriority(os.PRIO_PROCESS, 0), 20 - _limit(resource.RLIMIT_NICE))
    if attributes.nice is not None and attributes.nice < least_nice:
        return f"nice {attributes.nice}"
    if attributes.policy in REAL_TIME and (attributes.priority or 1) > _limit(resource.RLIMIT_RTPRIO):
        return f"the policy {attributes.policy}"
    if attributes.cgroup_weight is not None or attributes.cgroup_limits:
        return "a control group of its own"
    return ""


def _limit(which: int) -> int:
    soft, _ = resource.getrlimit(which)
    return 99 if soft == resource.RLIM_INFINITY else soft
