"""The worker's side of trials by a machine's own clock: one study at a time, one block at a time.

The machine's lock is held, its values are journalled and put back, as for an experiment that was started here.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ajuste.catalogue.loader import catalogue
from ajuste.executor.cluster.answer import Answer, carried_out, failure, from_here
from ajuste.executor.cluster.wire import HostJob
from ajuste.executor.executor import Executor
from ajuste.executor.host.caller import host_site
from ajuste.executor.host.machine import of_this_machine
from ajuste.executor.host.prepared import prepared_for, require_possible
from ajuste.kernel.spec import kernel_kind
from ajuste.machine.files import sha256_of
from ajuste.machine.home import AGENT, Home, find_program, native_program
from ajuste.machine.installation import ajuste_version
from ajuste.machine.inventory.inventory import take_inventory
from ajuste.machine.session import machine_marks
from ajuste.model.capability import Asked, Rule
from ajuste.model.error import AjusteError, Place, RequestError, RunError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Perturbation, Plan
from ajuste.model.trial import Slot
from ajuste.model.wording import visible_line
from ajuste.study.commands import plan_for
from ajuste.study.location import KeyPath as Keys
from ajuste.study.location import dotted
from ajuste.study.named import require_allowed
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study

LEASE_SECONDS: Final = 60.0
"""So long after its last block a machine is kept ready for the next one. A coordinator that comes later finds a
machine that is prepared again.
"""


@dataclass(frozen=True)
class _Sent:
    """Where a study comes from that was sent: a file of that name, in a directory that may be here as well."""

    directory: Path
    hint: str = "the study was sent by its coordinator"

    def place(self, keys: Keys) -> Place:
        return Place(self.directory, field=dotted(keys))


@dataclass
class _Stay:
    """A study that is on the machine, from when it comes until everything is put back."""

    parcel: HostJob
    resolved: ResolvedStudy
    stack: ExitStack = field(default_factory=ExitStack)
    target: Executor | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    """No plan is begun any more."""
    gone: threading.Event = field(default_factory=threading.Event)
    """Everything is put back."""


class Bench:
    """This machine. ``make`` makes the target of a study that was resolved on it."""

    def __init__(self, make: Callable[[ResolvedStudy], Executor], lease_s: float = LEASE_SECONDS) -> None:
        self._make = make
        self._lease_s = lease_s
        self._at_work = threading.Lock()
        self._lock = threading.Lock()
        self._stay: _Stay | None = None
        self._blocks = 0

    def survey(self, text: str) -> Answer:
        """Whether this machine can measure a study, what the study comes to here, and what the machine is."""
        try:
            parcel = HostJob.model_validate_json(text)
        except ValidationError:
            return from_here(refusal=f"its Ajuste {ajuste_version()} cannot read the request")
        if parcel.ajuste != ajuste_version():
            return from_here(refusal=f"it has Ajuste {ajuste_version()} instead of {parcel.ajuste}")
        try:
            if parcel.agent != sha256_of(native_program(AGENT)):
                return from_here(refusal="its agent was built from other sources than the coordinator's")
            resolved = resolved_here(parcel)
            require_possible(resolved, catalogue(), accept_risk=parcel.accept_risk)
        except AjusteError as error:
            return from_here(refusal=error.message[:2000])
        marks = machine_marks()
        return from_here(
            identity=f"{marks['machine']} {marks['kernel']}",
            resolved=resolved.model_dump_json(),
            inventory=take_inventory().model_dump_json(),
        )

    def carry_out(self, text: str, plans: Sequence[Plan]) -> Answer:
        """Carry out the plans of a block, one after the other, and say what was observed. All of them, or an error:
        nothing is done that the study would not do here.
        """
        with self._at_work:
            try:
                parcel = HostJob.model_validate_json(text)
                resolved = self._resolved(parcel)
                _require_of_study(plans, resolved)
                stay = self._with_us(parcel, resolved)
                return from_here(done=[carried_out(self._target(stay), plan) for plan in plans])
            except ValidationError:
                return from_here(refusal=f"its Ajuste {ajuste_version()} cannot read the request")
            except AjusteError as error:
                self.close()
                return failure(error)
            finally:
                self._renew()

    def close_of(self, text: str) -> Answer:
        """As ``close``, if the machine was made ready for that parcel."""
        with self._lock:
            ours = self._stay is not None and self._stay.parcel.model_dump_json() == text
        if ours:
            self.close()
        return from_here()

    def close(self) -> None:
        """End the stay: whatever runs is ended, and everything put back when this returns."""
        with self._lock:
            stay, self._stay = self._stay, None
        if stay is None:
            return
        stay.ended.set()
        if stay.target is None:  # It is being made ready: the same thread undoes it.
            stay.gone.wait()
            return
        _end(stay)

    def _resolved(self, parcel: HostJob) -> ResolvedStudy:
        if self._stay is not None and self._stay.parcel == parcel:
            return self._stay.resolved
        resolved = resolved_here(parcel)
        require_possible(resolved, catalogue(), accept_risk=parcel.accept_risk)
        return resolved

    def _renew(self) -> None:
        if self._stay is not None:
            self._blocks += 1
            lease = threading.Timer(self._lease_s, self._expire, [self._blocks])
            lease.daemon = True
            lease.start()

    def _expire(self, blocks: int) -> None:
        with self._at_work:
            if self._blocks == blocks:
                self.close()

    def _with_us(self, parcel: HostJob, resolved: ResolvedStudy) -> _Stay:
        self._blocks += 1
        stay = self._stay
        if stay is not None and stay.parcel == parcel:
            return stay
        self.close()
        stay = _Stay(parcel, resolved)
        with self._lock:
            self._stay = stay
        try:
            target = stay.stack.enter_context(self._make(resolved))
        except BaseException:
            self._forget(stay)
            raise
        with self._lock:
            stay.target = target
            ended = stay.ended.is_set()
        if ended:
            _end(stay)
            raise _ended()
        return stay

    def _forget(self, stay: _Stay) -> None:
        """Of what could not be made ready, nothing is left."""
        with self._lock:
            if self._stay is stay:
                self._stay = None
        stay.gone.set()

    def _target(self, stay: _Stay) -> Executor:
        if stay.ended.is_set() or stay.target is None:
            raise _ended()
        return stay.target


def _end(stay: _Stay) -> None:
    try:
        stay.stack.close()
    finally:
        stay.gone.set()


def _ended() -> RunError:
    return RunError("the study was ended on this machine")


def resolved_here(parcel: HostJob) -> ResolvedStudy:
    """The study on this machine: its kernel's places, its programs, its caller. Raises RequestError."""
    try:
        study = Study.model_validate_json(parcel.study).at(_Sent(Path(parcel.directory)))
    except (ValidationError, RecursionError):
        raise RequestError(
            f"Ajuste {ajuste_version()} cannot read the study that it received",
            hint="use the same version of Ajuste on all machines",
        ) from None
    options: frozenset[Rule] = frozenset({"--accept-risk"}) if parcel.accept_risk else frozenset()
    require_allowed(study, Asked("worker", options=options), catalogue(), kernel_kind)
    here = {HOST_KERNEL: KernelVersion.parse(platform.release())}
    return resolve(study, of_this_machine(catalogue()), here, find_program, host_site())


def _require_of_study(plans: Sequence[Plan], resolved: ResolvedStudy) -> None:
    """Whether each of ``plans`` is one that the study has on this machine. Raises RequestError."""
    known = [
        plan_for(resolved, Slot(block=0, position=0, configuration=name, seed=0), 0).model_copy(
            update={"perturbation": Perturbation()}
        )
        for name in resolved.names
    ]
    for plan in plans:
        disturbed = Perturbation(environment_bytes=plan.perturbation.environment_bytes)
        plain = plan.model_copy(update={"id": known[0].id, "perturbation": Perturbation()})
        if plan.perturbation != disturbed or plain not in known:
            raise RequestError(
                f"plan {visible_line(plan.id[:80])!r} not found in the study on this machine",
                hint="use the same version of Ajuste on all machines",
            )


def on_this_machine(own: Home) -> Callable[[ResolvedStudy], Executor]:
    """What makes the executor of a study that was resolved on this machine."""
    return lambda resolved: prepared_for(resolved, own)
