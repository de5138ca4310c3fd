"""A worker's guests: kept ready by their jobs, with the files that coordinators sent."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ajuste.executor.cluster.messages import Answer, GuestJob, answer, run_plan
from ajuste.executor.executor import Executor
from ajuste.executor.guest.emulator import choose_emulator
from ajuste.executor.guest.guest import GuestExecutor
from ajuste.executor.guest.initramfs import Initramfs
from ajuste.kernel.cache import keeping_in, require_space
from ajuste.machine.cache import CLUSTER, make_room
from ajuste.machine.files import make_directory, replace_file, sha256_of
from ajuste.machine.home import Home
from ajuste.machine.installation import ajuste_version
from ajuste.model.error import RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Plan
from ajuste.model.results import Clock
from ajuste.model.topology import Topology

MOST_GUESTS: Final = 4
"""Guests kept ready: each has its snapshot in this machine's memory."""
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
            if sha256_of(path) == digest:
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
        if job.qemu != (local := _qemu_version(job.clock, min(job.cpus, 2), job.topology, self._home)):
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
        )

    def _file(self, digest: str) -> Path:
        path = self._blobs.find(digest)
        if path is None:
            raise RunError("a file is missing from this worker's cache")
        return path


@cache
def _qemu_version(clock: Clock, cpus: int, topology: Topology | None, home: Home) -> str:
    return choose_emulator(clock, cpus, home, lambda _: None, topology=topology).version
