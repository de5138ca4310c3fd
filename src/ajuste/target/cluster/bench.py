"""The worker's side of trials by a machine's own clock: one study at a time, one block at a time.

The machine's lock is held, its values are journalled and put back, as for an experiment that was started here.
"""

from __future__ import annotations

import asyncio
import platform
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ajuste.catalogue.loader import catalogue
from ajuste.checksum import sha256_of
from ajuste.home import Home, home
from ajuste.inventory.summary import summary_of
from ajuste.inventory.take import take_inventory
from ajuste.model.error import AjusteError, Place, RunError
from ajuste.model.kernel import KernelVersion
from ajuste.native import AGENT, native_program
from ajuste.programs import find_program
from ajuste.study.location import Path as Keys
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste.study.source import dotted
from ajuste.target.caller import host_site
from ajuste.target.cluster.answer import Answer, carried_out, failure, from_here
from ajuste.target.cluster.parcel import HostParcel
from ajuste.target.host import HostTarget
from ajuste.target.listing import of_this_machine
from ajuste.target.machine_marks import machine_marks
from ajuste.target.possible import require_possible
from ajuste.target.prepared import prepared_for
from ajuste.target.target import Target
from ajuste.version import ajuste_version

LEASE_SECONDS: Final = 60.0
"""So long after its last block a machine is kept ready for the next one. Whoever has not come by then is gone, or comes
back to a machine that is made ready anew.
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

    parcel: HostParcel
    stack: ExitStack = field(default_factory=ExitStack)
    target: Target | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    """No plan is begun any more."""
    gone: threading.Event = field(default_factory=threading.Event)
    """Everything is put back."""


class Bench:
    """This machine. ``make`` makes the target of a study that was resolved on it."""

    def __init__(self, make: Callable[[ResolvedStudy], Target], lease_s: float = LEASE_SECONDS) -> None:
        self._make = make
        self._lease_s = lease_s
        self._at_work = threading.Lock()
        self._lock = threading.Lock()
        self._stay: _Stay | None = None
        self._blocks = 0

    def survey(self, text: str) -> Answer:
        """Whether this machine can measure a study, what the study comes to here, and what the machine is."""
        try:
            parcel = HostParcel.model_validate_json(text)
        except ValidationError:
            return from_here(refusal=f"its Ajuste {ajuste_version()} does not understand this one")
        if parcel.ajuste != ajuste_version():
            return from_here(refusal=f"it has Ajuste {ajuste_version()} instead of {parcel.ajuste}")
        try:
            if parcel.agent != sha256_of(native_program(AGENT)):
                return from_here(refusal="its agent is not the coordinator's: they were built from different sources")
            resolved = resolved_here(parcel)
            require_possible(resolved, catalogue(), accept_risk=parcel.accept_risk)
        except AjusteError as error:
            return from_here(refusal=error.message)
        inventory = take_inventory()
        marks = machine_marks()
        return from_here(
            identity=f"{marks['machine']} {marks['kernel']}",
            resolved=resolved.model_dump_json(),
            machine={**summary_of(inventory), "inventory": inventory.model_dump(mode="json")},
        )

    def carry_out(self, text: str, plans: Sequence[str]) -> Answer:
        """Carry out the plans of a block, one after the other, and say what was observed. All of them, or an error."""
        with self._at_work:
            try:
                stay = self._with_us(HostParcel.model_validate_json(text))
                return from_here(done=[carried_out(self._target(stay), plan) for plan in plans])
            except AjusteError as error:
                self.close()
                return failure(error)
            finally:
                self._renew()

    def close(self) -> None:
        """End the stay: whatever runs is ended, and everything put back when this returns."""
        with self._lock:
            stay, self._stay = self._stay, None
        if stay is None:
            return
        stay.ended.set()
        if stay.target is None:  # It is being made ready: whoever does that undoes it.
            stay.gone.wait()
            return
        _end(stay)

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

    def _with_us(self, parcel: HostParcel) -> _Stay:
        self._blocks += 1
        stay = self._stay
        if stay is not None and stay.parcel == parcel:
            return stay
        self.close()
        stay = _Stay(parcel)
        with self._lock:
            self._stay = stay
        try:
            target = stay.stack.enter_context(self._make(resolved_here(parcel)))
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

    def _target(self, stay: _Stay) -> Target:
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


def resolved_here(parcel: HostParcel) -> ResolvedStudy:
    """The study on this machine: its kernel's places, its programs, its caller. Raises RequestError."""
    study = Study.model_validate_json(parcel.study).at(_Sent(Path(parcel.directory)))
    here = {HOST_KERNEL: KernelVersion.parse(platform.release())}
    return resolve(study, of_this_machine(catalogue()), here, find_program, host_site())


def _on_this_machine(own: Home) -> Callable[[ResolvedStudy], Target]:
    return lambda resolved: prepared_for(resolved, HostTarget(own))


@cache
def _bench() -> Bench:
    """The one of this process."""
    return Bench(_on_this_machine(home()))


async def survey(parcel: str) -> Answer:
    return await asyncio.to_thread(_bench().survey, parcel)


def carry_out(parcel: str, plans: Sequence[str]) -> Answer:
    return _bench().carry_out(parcel, plans)


async def close() -> None:
    await asyncio.to_thread(_bench().close)


def close_all() -> None:
    """End what this process measures."""
    _bench().close()
