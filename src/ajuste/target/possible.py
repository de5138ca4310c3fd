"""Whether a study may be carried out on this machine at all, known before anything is run."""

from __future__ import annotations

from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.plan import Command, Plan
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste.target.availability import why_no_weight, why_not_writable
from ajuste.target.machine import Machine
from ajuste.target.rights import require_rights

REAL_TIME = ("fifo", "rr")
REAL_TIME_NOTE = "a real-time process that never sleeps leaves nothing to anybody else on its CPU"


def require_possible(resolved: ResolvedStudy, catalogue: Catalogue, *, accept_risk: bool) -> None:
    """Raises RequestError for what needs root if there is none, for a tunable or control groups that this machine lacks
    or locks, for a kernel module, and for what can hang the machine unless the person has accepted that.
    """
    _refuse_modules(resolved)
    once = Plan(id="once", before=resolved.setup, after=resolved.cleanup)
    for plan in (once, *map(_plan, resolved.configurations)):
        require_rights(plan)
    machine = Machine()
    _require_writable(resolved, catalogue, machine)
    _require_weights(resolved, machine)
    if accept_risk:
        return
    for configuration in resolved.configurations:
        if reason := _risk(configuration, catalogue):
            raise RequestError(
                f"{configuration.configuration.name} can hang this machine: {reason}",
                hint="--accept-risk does it all the same; in a virtual machine there is no risk",
            )


def _refuse_modules(resolved: ResolvedStudy) -> None:
    """Raises RequestError if a configuration needs a module: none of ours is ever loaded on this machine."""
    for configuration in resolved.configurations:
        if configuration.modules:
            raise RequestError(
                f"{configuration.configuration.name} needs the kernel module {configuration.modules[0]}, which is "
                "loaded in guests only, never on this machine",
                hint="a guest: --target vm --kernel debian:5.10, for example",
            )


def _require_writable(resolved: ResolvedStudy, catalogue: Catalogue, machine: Machine) -> None:
    names = (write.tunable for configuration in resolved.configurations for write in configuration.writes)
    for name in dict.fromkeys(names):
        tunable = catalogue.find_tunable(name)
        if why := why_not_writable(catalogue, tunable, machine):
            raise RequestError(
                f"{name} cannot be changed on this machine: {why}", hint=f"ajuste tunables show '{name}' says more"
            )


def _require_weights(resolved: ResolvedStudy, machine: Machine) -> None:
    for configuration in resolved.configurations:
        commands = (configuration.workload, *configuration.background)
        if any(command.attributes.cgroup_weight is not None for command in commands) and (
            why := why_no_weight(machine)
        ):
            raise RequestError(
                f"{configuration.configuration.name} needs a control group's weight: {why}",
                hint="a guest has control groups: [target] with a kernel instead of this machine",
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
    commands: tuple[Command, ...] = (configuration.workload, *configuration.background)
    for command in commands:
        if command.attributes.policy in REAL_TIME:
            return f"policy {command.attributes.policy}: {REAL_TIME_NOTE}"
    return ""
