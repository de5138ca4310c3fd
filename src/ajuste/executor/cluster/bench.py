"""A worker's machine, measured as it is: one study at a time, one block at a time.

Its lock is held, and its values are journalled and restored, as for an experiment that was started here.
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
from ajuste.executor.cluster.messages import Answer, HostJob, Said, answer, run_plan
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
from ajuste.model.error import AjusteError, Place, RequestError
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
"""A coordinator that is silent for so long is gone: everything is restored, in the middle of a block if need be."""


@dataclass(frozen=True)
class _Sent:
    """The place of a study that was sent: ``directory`` may be here as well."""

    directory: Path
    hint: str = "the study was sent by its coordinator"

    def place(self, keys: Keys) -> Place:
        return Place(self.directory, field=dotted(keys))


@dataclass
class _Stay:
    """A study that is on the machine. After ``ended`` no plan begins; after ``gone`` everything is restored."""

    job: HostJob
    resolved: ResolvedStudy
    lease: threading.Timer
    stack: ExitStack = field(default_factory=ExitStack)
    executor: Executor | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)


class Bench:
    """This machine. ``make`` makes the executor of a study that was resolved on it."""

    def __init__(self, make: Callable[[ResolvedStudy], Executor], lease_s: float = LEASE_SECONDS) -> None:
        self._make = make
        self._lease_s = lease_s
        self._at_work = threading.Lock()
        self._lock = threading.Lock()
        self._stay: _Stay | None = None

    def survey(self, text: str) -> Answer:
        """Say whether this machine can measure a study, what the study comes to here, and what the machine is."""
        try:
            job = HostJob.model_validate_json(text)
            if job.ajuste != ajuste_version():
                return answer(refusal=f"it has Ajuste {ajuste_version()} instead of {job.ajuste}")
            if job.agent != sha256_of(native_program(AGENT)):
                return answer(refusal="its agent was built from other sources than the coordinator's")
            resolved = self._resolved(job)
        except ValidationError:
            return answer(refusal=f"its Ajuste {ajuste_version()} cannot read the request")
        except AjusteError as error:
            return answer(refusal=error.message[:2000])
        marks = machine_marks()
        return answer(
            identity=f"{marks['machine']} {marks['kernel']}",
            resolved=resolved.model_dump_json(),
            inventory=take_inventory().model_dump_json(),
        )

    def carry_out(self, text: str, plans: Sequence[Plan]) -> Answer:
        """Run the plans of a block, all that the study has here. An answer without any is a block that was cut short.

        Raises:
            AjusteError: The study does not have such a plan, or the machine cannot carry it out.
        """
        stay: _Stay | None = None
        with self._at_work:
            try:
                job = HostJob.model_validate_json(text)
                resolved = self._resolved(job)
                _require_of_study(plans, resolved)
                stay, done = self._entered(job, resolved), list[Said]()
                for plan in plans:
                    if stay.ended.is_set() or stay.executor is None:
                        return answer()
                    done.append(run_plan(stay.executor, plan))
                return answer(done=tuple(done))
            except ValidationError:
                return answer(refusal=f"its Ajuste {ajuste_version()} cannot read the request")
            except AjusteError:
                if stay is not None and stay.ended.is_set():
                    return answer()
                self.close()
                raise

    def renew(self, text: str) -> Answer:
        """Note that a coordinator is still there."""
        with self._lock:
            if self._stay is not None and self._stay.job.model_dump_json() == text:
                self._stay.lease.cancel()
                self._stay.lease = self._new_lease()
        return answer()

    def close_of(self, text: str) -> Answer:
        """Close, if the machine was made ready for that job."""
        with self._lock:
            matches = self._stay is not None and self._stay.job.model_dump_json() == text
        if matches:
            self.close()
        return answer()

    def close(self) -> None:
        """End what runs, and restore everything before this returns."""
        with self._lock:
            stay, self._stay = self._stay, None
        if stay is None:
            return
        stay.lease.cancel()
        stay.ended.set()
        if stay.executor is None:  # It is being made ready, and its own thread undoes that.
            stay.gone.wait()
            return
        try:
            stay.stack.close()
        finally:
            stay.gone.set()

    def _new_lease(self) -> threading.Timer:
        lease = threading.Timer(self._lease_s, self.close)
        lease.daemon = True
        lease.start()
        return lease

    def _resolved(self, job: HostJob) -> ResolvedStudy:
        if self._stay is not None and self._stay.job == job:
            return self._stay.resolved
        resolved = resolved_here(job)
        require_possible(resolved, catalogue(), accept_risk=job.accept_risk)
        return resolved

    def _entered(self, job: HostJob, resolved: ResolvedStudy) -> _Stay:
        if self._stay is not None and self._stay.job == job:
            return self._stay
        self.close()
        stay = _Stay(job, resolved, self._new_lease())
        with self._lock:
            self._stay = stay
        try:
            executor = stay.stack.enter_context(self._make(resolved))
            with self._lock:
                if not stay.ended.is_set():
                    stay.executor = executor
                    return stay
            stay.stack.close()
        except BaseException:
            stay.lease.cancel()
            with self._lock:
                self._stay = None if self._stay is stay else self._stay
            raise
        finally:
            if stay.executor is None:
                stay.gone.set()
        return stay


def resolved_here(job: HostJob) -> ResolvedStudy:
    """Return the study on this machine: its kernel's places, its programs, its caller.

    Raises:
        RequestError: It is malformed, or not possible or not allowed here.
    """
    try:
        study = Study.model_validate_json(job.study).at(_Sent(Path(job.directory)))
    except (ValidationError, RecursionError):
        raise RequestError(
            f"Ajuste {ajuste_version()} cannot read the study that it received",
            hint="use the same version of Ajuste on all machines",
        ) from None
    options: frozenset[Rule] = frozenset({"--accept-risk"}) if job.accept_risk else frozenset()
    require_allowed(study, Asked("worker", options=options), catalogue(), kernel_kind)
    here = {HOST_KERNEL: KernelVersion.parse(platform.release())}
    return resolve(study, of_this_machine(catalogue()), here, find_program, host_site())


def _require_of_study(plans: Sequence[Plan], resolved: ResolvedStudy) -> None:
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


def on_this_machine(home: Home) -> Callable[[ResolvedStudy], Executor]:
    """Return what makes the executor of a study that was resolved on this machine."""
    return lambda resolved: prepared_for(resolved, home)
