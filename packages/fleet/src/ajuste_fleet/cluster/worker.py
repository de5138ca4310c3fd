"""A worker's part: its tasks, its guests, and its machine measured as it is."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import platform
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import distributed
from distributed.diagnostics.plugin import WorkerPlugin
from pydantic import ValidationError

from ajuste.catalogue.loader import catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import of_this_machine
from ajuste.executor.host.caller import host_site
from ajuste.executor.host.host import prepared_for
from ajuste.executor.host.rights import require_possible
from ajuste.kernel.spec import kernel_kind
from ajuste.machine.cache import CLUSTER, make_room
from ajuste.machine.files import file_sha256, make_directory, replace_file
from ajuste.machine.home import AGENT, Home, ajuste_version, find_program, home, native_program
from ajuste.machine.inventory.inventory import take_inventory
from ajuste.machine.session import machine_marks
from ajuste.model.capability import Asked, Rule
from ajuste.model.error import AjusteError, Place, RequestError, RunError
from ajuste.model.kernel import KernelImage, KernelVersion
from ajuste.model.plan import Perturbation, Plan
from ajuste.model.results import Clock
from ajuste.model.topology import Topology
from ajuste.model.trial import Slot
from ajuste.model.wording import visible_line
from ajuste.study.commands import plan_for
from ajuste.study.named import require_allowed
from ajuste.study.problem import KeyPath as Keys
from ajuste.study.problem import dotted
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste_fleet.cluster.messages import (
    PLANS,
    Answer,
    Ask,
    GuestJob,
    HostJob,
    Transcript,
    answer,
    failure,
    run_plan,
)
from ajuste_guest.executor.guest import GuestExecutor
from ajuste_guest.executor.initramfs import Initramfs
from ajuste_guest.executor.qemu import choose_emulator
from ajuste_guest.kernel.cache import keeping_in, require_space

NAME: Final = "ajuste"
"""Name of the plug-in in a worker, which coordinators add with their first request."""
BENCH: Final = "ajuste-bench"
"""The resource of workers whose machine may be measured: ``dask worker --resources ajuste-bench=1``."""


class Station(WorkerPlugin):
    """The guests and the machine of one worker; closed with it."""

    def setup(self, worker: distributed.Worker) -> None:
        self._address = worker.address
        self._benches = BENCH in worker.state.total_resources
        self._workplace = Workplace(home())
        self._bench = Bench(on_this_machine(home()))

    async def teardown(self, worker: distributed.Worker) -> None:
        await asyncio.to_thread(self._workplace.close)
        await asyncio.to_thread(self._bench.close)

    def do(self, ask: Ask, job: str, body: bytes) -> bytes:
        """Do what was asked, and return an ``Answer``. Nothing is raised: Dask would pickle it."""
        try:
            done = self._do(ask, job, body)
        except AjusteError as error:
            done = failure(error)
        except Exception as error:  # noqa: BLE001 - the coordinator reports it
            done = failure(RunError(f"the worker cannot go on: {type(error).__name__}: {error}"))
        return done.model_copy(update={"worker": self._address}).model_dump_json().encode()

    def _do(self, ask: Ask, job: str, body: bytes) -> Answer:
        if os.geteuid() == 0 and not self._address.startswith("tls://"):
            return answer(refusal="root does not take orders over plain TCP")
        if ask.startswith("bench") and not self._benches:
            return answer(refusal="it was not started with --bench")
        match ask:
            case "survey":
                return self._workplace.survey(job)
            case "receive":
                return self._workplace.receive(body)
            case "open":
                return self._workplace.open(job)
            case "carry-out":
                return self._workplace.carry_out(job, PLANS.validate_json(body))
            case "close":
                return self._workplace.close(job)
            case "bench-survey":
                return self._bench.survey(job)
            case "bench-carry-out":
                return self._bench.carry_out(job, PLANS.validate_json(body))
            case "bench-renew":
                return self._bench.renew(job)
            case "bench-close":
                return self._bench.close_job(job)


def work(ask: Ask, job: str, body: bytes = b"") -> bytes:
    """Do what takes a trial's time: a Dask task."""
    station: Any = distributed.get_worker().plugins.get(NAME)
    # A worker that joined since the last survey has no plug-in: its answer has the coordinator ask.
    return station.do(ask, job, body) if station else answer().model_dump_json().encode()


async def ask_beside(ask: Ask, job: str, body: bytes = b"", dask_worker: Any = None) -> bytes:
    """Do what is quick, beside the tasks of a worker."""
    if NAME not in dask_worker.plugins:
        await dask_worker.plugin_add(Station(), NAME, catch_errors=False)
    return await asyncio.to_thread(dask_worker.plugins[NAME].do, ask, job, body)


def quiet_dask() -> None:
    """Keep Dask's log off the terminal: what matters is an error of the run."""
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).handlers[:] = [logging.NullHandler()]


# A worker's guests: kept ready by their jobs, with the files that coordinators sent.


MOST_GUESTS: Final = 4
"""Maximum number of guests that stay booted: each has its snapshot in this machine's memory."""
_SPARE_BYTES = 64 << 20


class BlobCache:
    """Files by their SHA-256, kept for later studies."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._root = home.cache / "cluster"

    def find(self, digest: str) -> Path | None:
        """Return the file, or None; remove one that was damaged."""
        path = self._root / digest
        try:
            if file_sha256(path) == digest:
                path.touch()
                return path
        except FileNotFoundError:
            return None
        except OSError:
            pass
        self._remove(path)
        return None

    def put(self, content: bytes) -> None:
        """Keep a file.

        Raises:
            RequestError: The disk is full.
        """
        path = self._root / hashlib.sha256(content).hexdigest()
        with keeping_in(self._root, "files of the cluster"):
            make_directory(self._root)
            require_space(self._root, len(content) + _SPARE_BYTES, "a file of the cluster")
            if path.is_dir():
                self._remove(path)
            replace_file(path, content, mode=0o600)
        make_room(CLUSTER, self._home)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)


@dataclass
class _Place:
    lock: threading.Lock = field(default_factory=threading.Lock)
    stack: ExitStack = field(default_factory=ExitStack)
    guest: Executor | None = None
    users: int = 0


class Workplace:
    """The guests of one process, each booted when it is first needed."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._blobs = BlobCache(home)
        self._lock = threading.Lock()
        self._places: OrderedDict[str, _Place] = OrderedDict()

    def survey(self, text: str) -> Answer:
        """Say whether this worker can run a job, and which files it lacks."""
        version = ajuste_version()
        try:
            job = GuestJob.model_validate_json(text)
        except ValidationError:
            return answer(refusal=f"its Ajuste {version} cannot read the request")
        if job.ajuste != version:
            return answer(refusal=f"it has Ajuste {version} instead of {job.ajuste}")
        paced = job.paced_by is not None or job.pauses is not None
        if job.qemu != (local := _qemu_version(job.clock, min(job.cpus, 2), job.topology, self._home, paced=paced)):
            return answer(refusal=f"it has QEMU {local} instead of {job.qemu}")
        return answer(lacks=[digest for digest in (job.kernel, job.initramfs) if self._blobs.find(digest) is None])

    def receive(self, content: bytes) -> Answer:
        self._blobs.put(content)
        return answer()

    def open(self, text: str) -> Answer:
        """Boot a job's guest, and describe it."""
        if (survey := self._survey_new(text)) is not None:
            return survey
        with self._guest(text) as guest:
            environment = {name[:2000]: value[:2000] for name, value in guest.environment.items()}
            return answer(hello=guest.hello, environment=environment)

    def carry_out(self, text: str, plans: Sequence[Plan]) -> Answer:
        """Run plans one after the other, and say what was observed."""
        if (survey := self._survey_new(text)) is not None:
            return survey
        with self._guest(text) as guest:
            return answer(done=tuple(run_plan(guest, plan) for plan in plans))

    def close(self, text: str | None = None) -> Answer:
        """End a job's guest and what runs there, or all guests."""
        with self._lock:
            names = list(self._places) if text is None else [text]
            places = [self._places.pop(name) for name in names if name in self._places]
        for place in places:
            place.stack.close()
        return answer()

    def _survey_new(self, text: str) -> Answer | None:
        if text in self._places:
            return None
        survey = self.survey(text)
        return survey if survey.refusal or survey.lacks else None

    @contextmanager
    def _guest(self, text: str) -> Iterator[Executor]:
        with self._lock:
            place = self._places.setdefault(text, _Place())
            self._places.move_to_end(text)
            place.users += 1
        try:
            with place.lock:
                if place.guest is None:
                    place.guest = place.stack.enter_context(self._executor(GuestJob.model_validate_json(text)))
            yield place.guest
        finally:
            with self._lock:
                place.users -= 1
                if place.guest is None:
                    self._places.pop(text, None)
                idle = [name for name, other in self._places.items() if other.users == 0]
                surplus = [self._places.pop(name) for name in idle[: max(0, len(self._places) - MOST_GUESTS)]]
            for other in surplus:
                other.stack.close()

    def _executor(self, job: GuestJob) -> GuestExecutor:
        kernel, archive = self._file(job.kernel), self._file(job.initramfs)
        image = KernelImage(spec=job.spec, release=job.release, package=job.package, vmlinuz=kernel, sha256=job.kernel)
        return GuestExecutor(
            image,
            clock=job.clock,
            cpus=job.cpus,
            memory_mib=job.memory_mib,
            seed=job.seed,
            instruction_ns=job.instruction_ns,
            files=Initramfs(path=archive, sha256=job.initramfs, size_bytes=archive.stat().st_size),
            home=self._home,
            snapshot=job.snapshot,
            kernel_arguments=job.kernel_arguments,
            nodes=job.nodes,
            turn_us=job.turn_us,
            parallel=job.parallel,
            topology=job.topology,
            pauses=job.pauses,
            paced_by=job.paced_by,
        )

    def _file(self, digest: str) -> Path:
        path = self._blobs.find(digest)
        if path is None:
            raise RunError("a file is missing from this worker's cache")
        return path


@cache
def _qemu_version(clock: Clock, cpus: int, topology: Topology | None, home: Home, *, paced: bool) -> str:
    return choose_emulator(clock, cpus, home, lambda _: None, topology=topology, paced=paced).version


# Trials on a worker's own host: one study at a time, one block at a time.
#
# Its lock is held, and its values are journalled and restored, as for an experiment that was started here.


LEASE_SECONDS: Final = 60.0
"""Time in seconds after which a silent coordinator is lost: everything is restored, even in the middle of a block."""


@dataclass(frozen=True)
class _Sent:
    # The source of a study that a coordinator sent; its `directory` may exist on this machine, too.
    directory: Path
    hint: str = "the study was sent by its coordinator"

    def place(self, keys: Keys) -> Place:
        return Place(self.directory, field=dotted(keys))


@dataclass
class _Stay:
    # A study that holds the machine. After `ended` no plan starts; after `gone` everything is restored.
    job: HostJob
    resolved: ResolvedStudy
    lease: threading.Timer
    stack: ExitStack = field(default_factory=ExitStack)
    executor: Executor | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)


class Bench:
    """The host of a worker as a place to measure. ``make`` returns the executor of a study that was resolved here."""

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
            if job.agent != file_sha256(native_program(AGENT)):
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
                stay, done = self._entered(job, resolved), list[Transcript]()
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

    def close_job(self, text: str) -> Answer:
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
