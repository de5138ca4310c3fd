"""A worker's side: it keeps the machines of parcels ready, and carries out plans on them.

A parcel comes as text, so that two versions of Ajuste can tell each other that they differ.
"""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ajuste.executor.cluster.answer import Answer, Piece, carried_out, failure, from_here
from ajuste.executor.cluster.wire import GuestJob
from ajuste.executor.executor import Executor
from ajuste.executor.guest.emulator import choose_emulator
from ajuste.executor.guest.guest import GuestExecutor
from ajuste.executor.guest.initramfs import Initramfs
from ajuste.kernel.cache import keeping_in, require_space
from ajuste.machine.cache import CLUSTER, make_room
from ajuste.machine.files import make_directory, sha256_of
from ajuste.machine.home import Home
from ajuste.machine.installation import ajuste_version
from ajuste.model.error import AjusteError, RunError
from ajuste.model.kernel import KernelImage
from ajuste.model.plan import Plan
from ajuste.model.results import Clock
from ajuste.model.topology import Topology
from ajuste.model.wording import visible_line

# Files by their content: what was sent once is there for every later study.


LARGEST_BYTES: Final = 2 << 30
"""Of one file."""

MOST_HALF_SENT: Final = 8
"""So many files may have come in part; the one that nothing was added to for longest goes first."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_SPARE_BYTES = 64 << 20


class BlobCache:
    """A directory of a worker. A file is there whole or not at all."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._root = home.cache / "cluster"
        self._lock = threading.Lock()
        self._suffix = f".{secrets.token_hex(8)}"
        """Of half-sent files: workers in two containers that share the directory can have equal PIDs."""

    def find(self, digest: str) -> Path | None:
        """The file with that SHA-256. One that was damaged is removed, as if it had never come."""
        path = self._path(digest)
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

    def put(self, piece: Piece) -> None:
        """Keep a part of a file; the last one makes it whole. Raises RunError if that is not what its digest says or a
        part is missing, RequestError for a full disk.
        """
        path = self._path(piece.digest)
        if piece.size_bytes > LARGEST_BYTES or piece.offset + len(piece.content) > piece.size_bytes:
            raise RunError(
                f"a file of {piece.size_bytes} bytes was sent to a worker, which accepts at most {LARGEST_BYTES}"
            )
        temporary = path.with_name(f".{piece.digest}{self._suffix}")
        with self._lock, keeping_in(self._root, "files of the cluster"):
            if piece.offset == 0:
                self._begin(temporary, piece.size_bytes)
            if not temporary.exists() or temporary.stat().st_size != piece.offset:
                raise RunError("a file that was sent to a worker arrived in the wrong order")
            with temporary.open("ab") as file:
                file.write(piece.content)
            if piece.offset + len(piece.content) < piece.size_bytes:
                return
            if sha256_of(temporary) != piece.digest:
                temporary.unlink()
                raise RunError("a file that was sent to a worker arrived damaged: its SHA-256 differs")
            if path.is_dir():
                self._remove(path)
            temporary.replace(path)
        make_room(CLUSTER, self._home)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)

    def _begin(self, temporary: Path, size_bytes: int) -> None:
        make_directory(self._root)
        half_sent = [one for one in self._root.glob(f".*{self._suffix}") if one != temporary]
        if len(half_sent) >= MOST_HALF_SENT:
            min(half_sent, key=lambda file: file.stat().st_mtime).unlink(missing_ok=True)
        require_space(self._root, size_bytes + _SPARE_BYTES, "a file of the cluster")
        temporary.write_bytes(b"")

    def _path(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise RunError(f"{visible_line(digest[:80])!r} is not a SHA-256")
        return self._root / digest


MOST_MACHINES: Final = 4
"""So many are kept ready. Each has its snapshot in this machine's memory, at most as large as the guest's."""


@dataclass
class _Place:
    lock: threading.Lock = field(default_factory=threading.Lock)
    stack: ExitStack = field(default_factory=ExitStack)
    target: Executor | None = None
    users: int = 0


class Workplace:
    """The machines of one process, each made ready when it is first needed."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._depot = BlobCache(self._home)
        self._lock = threading.Lock()
        self._places: OrderedDict[str, _Place] = OrderedDict()

    def survey(self, text: str) -> Answer:
        """Whether this worker can do something for a parcel, and what it lacks."""
        try:
            refusal, parcel = self._judge(text)
        except AjusteError as error:
            return from_here(refusal=str(error)[:2000])
        if parcel is None:
            return from_here(refusal=refusal)
        return from_here(lacks=[digest for digest in parcel.contents if self._depot.find(digest) is None])

    def receive(self, piece: Piece) -> Answer:
        """Keep a part of a file that was sent."""
        try:
            self._depot.put(piece)
        except AjusteError as error:
            return failure(error)
        return from_here()

    def open(self, text: str) -> Answer:
        """Make a parcel's machine ready, and say what it is."""
        answer, target = self._with(text, lambda target: target)
        if target is None:
            return answer
        environment = {name[:2000]: value[:2000] for name, value in target.environment.items()}
        return from_here(hello=target.hello, environment=environment)

    def carry_out(self, text: str, plans: Sequence[Plan]) -> Answer:
        """Carry out plans, one after the other, and say what was observed."""
        answer, done = self._with(text, lambda target: [carried_out(target, plan) for plan in plans])
        return answer if done is None else from_here(done=done)

    def close(self, text: str) -> Answer:
        """End a parcel's machine, and whatever runs there."""
        with self._lock:
            place = self._places.pop(_name(text), None)
        if place is not None:
            place.stack.close()
        return from_here()

    def close_all(self) -> None:
        with self._lock:
            places, self._places = self._places, OrderedDict()
        for place in places.values():
            place.stack.close()

    def _with(self, text: str, use: Any) -> tuple[Answer, Any]:
        survey = self.survey(text) if not self._is_open(text) else from_here()
        if survey.refusal or survey.lacks:
            return survey, None
        try:
            place = self._entered(GuestJob.model_validate_json(text))
            try:
                return survey, use(place.target)
            finally:
                self._leave(place)
        except AjusteError as error:
            return failure(error), None

    def _is_open(self, text: str) -> bool:
        with self._lock:
            return any(place.target is not None and name == _name(text) for name, place in self._places.items())

    def _entered(self, parcel: GuestJob) -> _Place:
        with self._lock:
            place = self._places.setdefault(parcel.name, _Place())
            self._places.move_to_end(parcel.name)
            place.users += 1
        with place.lock:
            if place.target is None:
                try:
                    place.target = place.stack.enter_context(self._target(parcel))
                except BaseException:
                    self._leave(place)
                    raise
        return place

    def _leave(self, place: _Place) -> None:
        """Done with a place for now; those that nobody uses are closed where there are too many."""
        with self._lock:
            place.users -= 1
            idle = [name for name, one in self._places.items() if one.users == 0]
            surplus = [self._places.pop(name) for name in idle[: max(0, len(self._places) - MOST_MACHINES)]]
        for one in surplus:
            one.stack.close()

    def _judge(self, text: str) -> tuple[str, GuestJob | None]:
        """Why this worker refuses a parcel, or the parcel."""
        try:
            parcel = GuestJob.model_validate_json(text)
        except ValidationError:
            return f"its Ajuste {ajuste_version()} cannot read the request", None
        if parcel.ajuste != ajuste_version():
            return f"it has Ajuste {ajuste_version()} instead of {parcel.ajuste}", None
        if parcel.qemu != (own := _version_of(parcel.clock, parcel.cpus > 1, parcel.topology, self._home)):
            return f"it has QEMU {own} instead of {parcel.qemu}", None
        return "", parcel

    def _target(self, parcel: GuestJob) -> GuestExecutor:
        image = KernelImage(
            spec=parcel.spec,
            release=parcel.release,
            package=parcel.package,
            vmlinuz=self._file(parcel.kernel),
            sha256=parcel.kernel,
        )
        archive = self._file(parcel.initramfs)
        return GuestExecutor(
            image,
            clock=parcel.clock,
            cpus=parcel.cpus,
            memory_mib=parcel.memory_mib,
            seed=parcel.seed,
            instruction_ns=parcel.instruction_ns,
            files=Initramfs(path=archive, sha256=parcel.initramfs, size_bytes=archive.stat().st_size),
            home=self._home,
            snapshot=parcel.snapshot,
            kernel_arguments=parcel.kernel_arguments,
            nodes=parcel.nodes,
            turn_us=parcel.turn_us,
            parallel=parcel.parallel,
            topology=parcel.topology,
        )

    def _file(self, digest: str) -> Path:
        path = self._depot.find(digest)
        if path is None:
            raise RunError("a file is missing from this worker's cache")
        return path


def _name(text: str) -> str:
    """Empty for what is no parcel."""
    try:
        return GuestJob.model_validate_json(text).name
    except ValidationError:
        return ""


@cache
def _version_of(clock: Clock, several_cpus: bool, topology: Topology | None, home: Home) -> str:
    return choose_emulator(clock, 2 if several_cpus else 1, home, lambda _: None, topology=topology).version
