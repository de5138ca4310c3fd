"""The target ``cluster``: plans are carried out by whichever worker is free, and again if that one is lost."""

from __future__ import annotations

import itertools
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.event import Hello
from ajuste.model.observation import Observation
from ajuste.model.plan import Plan
from ajuste.target.cluster import workplace
from ajuste.target.cluster.answer import Answer, require
from ajuste.target.cluster.connection import WORKER_SECONDS, Connection, Worker
from ajuste.target.cluster.packing import Packed
from ajuste.target.stream import read_trial
from ajuste.target.target import Batch, Done, Say

AHEAD: Final = 2
"""For each thread of a worker so many batches are on their way, so that none waits for the coordinator."""

_WAIT_SECONDS = 0.5
_LOOK_EVERY_SECONDS = 3.0


class Work(NamedTuple):
    """What workers are asked to do; see ``workplace`` for each."""

    survey: Callable[..., Any] = workplace.survey
    receive: Callable[..., Any] = workplace.receive
    open_machine: Callable[..., Any] = workplace.open_machine
    carry_out: Callable[..., Any] = workplace.carry_out
    close_machine: Callable[..., Any] = workplace.close_machine


class ClusterTarget:
    """Machines of one kind, one on every worker. ``pack`` says what they are, and makes files in a directory for it.

    Entering raises RequestError for a cluster that cannot be reached or has no worker that fits.
    """

    def __init__(
        self,
        connection: Connection,
        pack: Callable[[Path], Packed],
        say: Say = lambda _: None,
        work: Work = Work(),  # noqa: B008
    ) -> None:
        self._connection = connection
        self._pack = pack
        self._say = say
        self._work = work
        self._stack = ExitStack()
        self._parcel = ""
        self._files: dict[str, Path] = {}
        self._refused: dict[str, str] = {}
        self._threads = 0
        self._hello: Hello | None = None
        self._environment: dict[str, str] = {}
        self._flights: list[dict[Any, tuple[int, Batch]]] = []
        self._opening: list[Any] = []  # Kept, so that Dask goes on with those that are not ready yet.
        self._looked = 0.0
        self._lacking_since: float | None = None
        self._left = threading.Event()

    @property
    def hello(self) -> Hello:
        assert self._hello is not None, "the target was not entered"
        return self._hello

    @property
    def environment(self) -> dict[str, str]:
        return dict(self._environment)

    @property
    def parallel(self) -> int:
        return max(1, self._threads)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="ajuste-parcel-"))
            packed = self._pack(Path(directory))
            self._parcel, self._files = packed.parcel.model_dump_json(), packed.files
            self._connection.open()
            stack.callback(self._end)
            self._open(self._await_workers())
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._left.set()
        for flying in self._flights:
            self._connection.cancel(list(flying))
        self._stack.close()

    def run(self, plan: Plan) -> Observation:
        for done in self.run_spread([Batch((plan,))]):
            return done[0].observed[0][1]
        raise RunError("the cluster was left in the middle of a plan")

    def run_spread(self, batches: Iterable[Batch]) -> Iterator[list[Done]]:
        """As ``Spread.run_spread``."""
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        flying: dict[Any, tuple[int, Batch]] = {}
        waiting = enumerate(batches)
        self._flights.append(flying)
        try:
            while True:
                self._look()
                room = max(0, AHEAD * self.parallel - len(flying))
                self._send(list(itertools.islice(waiting, room)), flying, ended)
                if not flying or self._left.is_set():
                    return
                if futures := taken(ended):
                    yield self._received(futures, flying, ended)
        finally:
            self._connection.cancel(list(flying))
            self._flights.remove(flying)

    def _received(
        self, futures: list[Any], flying: dict[Any, tuple[int, Batch]], ended: queue.SimpleQueue[Any]
    ) -> list[Done]:
        """What ``futures`` brought. What a worker could not do is sent again."""
        done, again = [], []
        for future, answer in zip(futures, self._connection.answers(futures), strict=True):
            number, batch = flying.pop(future)
            if self._is_done(answer):
                done.append(_done(number, batch, answer))
            else:
                again.append((number, batch))
        self._send(again, flying, ended)
        return done

    def _is_done(self, answer: Answer | Exception) -> bool:
        """Whether the plans were carried out; if not, what stood in the way is mended. Raises what cannot be."""
        if isinstance(answer, Exception):
            # Dask gives up on a plan during which several workers were lost: that is a failed trial.
            if type(answer).__name__ == "KilledWorker":
                return True
            raise RunError(f"a worker of {self._connection.cluster} failed: {answer}") from answer
        if "done" in answer:
            return True
        require(answer)
        self._admit([worker for worker in self._connection.workers() if worker.address not in self._refused])
        return False

    def _send(
        self, batches: Sequence[tuple[int, Batch]], flying: dict[Any, tuple[int, Batch]], ended: queue.SimpleQueue[Any]
    ) -> None:
        if not batches:
            return
        futures = self._connection.submit(
            self._work.carry_out,
            self._parcel,
            [[plan.model_dump_json() for plan in batch.plans] for _, batch in batches],
            done=ended,
            workers=self._fitting(),
        )
        flying.update(zip(futures, batches, strict=True))

    def _fitting(self) -> list[str] | None:
        """The workers that may be asked; ``None`` where none was refused."""
        if not self._refused:
            return None
        return [worker.address for worker in self._connection.workers() if worker.address not in self._refused]

    def _look(self) -> None:
        """Now and then: whether the cluster is still there, and how many of its workers. Raises RunError if not."""
        self._connection.require_alive()
        if time.monotonic() - self._looked < _LOOK_EVERY_SECONDS:
            return
        workers = [worker for worker in self._connection.workers() if worker.address not in self._refused]
        self._looked = time.monotonic()
        if workers:
            self._threads = sum(worker.threads for worker in workers)
            self._lacking_since = None
            return
        self._say("waiting for a worker")
        self._lacking_since = self._lacking_since or self._looked
        if self._looked - self._lacking_since > WORKER_SECONDS:
            raise RunError(
                f"{self._connection.cluster} has no worker any more",
                hint="what was measured is kept: the same command goes on where it stopped",
            )

    def _await_workers(self) -> list[Worker]:
        """The workers that fit, as soon as there are any."""
        deadline = time.monotonic() + WORKER_SECONDS
        while not (workers := self._connection.workers()):
            self._say("waiting for a worker")
            if time.monotonic() > deadline:
                raise RequestError(
                    f"{self._connection.cluster} has no workers",
                    hint=f"on each machine: ajuste worker --scheduler {self._connection.cluster.address}",
                )
            time.sleep(_WAIT_SECONDS)
        self._say("asking the workers")
        self._admit(workers)
        fitting = [worker for worker in workers if worker.address not in self._refused]
        if not fitting:
            raise RequestError(
                f"no worker of {self._connection.cluster} fits: {self._refusals()}",
                hint="the same version of Ajuste and of QEMU must be on every machine",
            )
        if self._refused:
            self._say(f"left out: {self._refusals()}")
        self._threads = sum(worker.threads for worker in fitting)
        return fitting

    def _admit(self, workers: Sequence[Worker]) -> None:
        """Ask workers whether they fit, and send them what they lack."""
        addresses = [worker.address for worker in workers]
        answers = self._connection.ask(self._work.survey, self._parcel, workers=addresses)
        lacking: dict[str, list[str]] = {}
        for address, answer in answers.items():
            if refusal := answer.get("refusal"):
                self._refused[address] = f"{address} ({answer['where']}): {refusal}"
            for digest in answer.get("lacks", ()):
                lacking.setdefault(digest, []).append(address)
        for digest, lackers in lacking.items():
            self._say(f"sending {self._files[digest].name} to {len(lackers)} workers")
            content = self._files[digest].read_bytes()
            for answer in self._connection.ask(self._work.receive, digest, content, workers=lackers).values():
                require(answer)

    def _refusals(self) -> str:
        return "; ".join(self._refused.values())

    def _open(self, workers: Sequence[Worker]) -> None:
        """Have every worker make its machine ready; go on when the first one has."""
        self._say(f"booting on {len(workers)} workers")
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for worker in workers:
            self._opening += self._connection.submit(
                self._work.open_machine, self._parcel, [worker.address], done=ended, workers=[worker.address]
            )
        while not (first := taken(ended)):
            self._connection.require_alive()
        answer = self._connection.answers(first[:1])[0]
        if isinstance(answer, Exception):
            raise RunError(f"a worker of {self._connection.cluster} failed: {answer}") from answer
        require(answer)
        self._hello = Hello.model_validate_json(answer["hello"])
        self._environment = dict(answer["environment"])

    def _end(self) -> None:
        """Have every worker end its machine, and with it what still runs there."""
        try:
            addresses = [worker.address for worker in self._connection.workers()]
            self._connection.ask(self._work.close_machine, self._parcel, workers=addresses)
        except AjusteError:
            return  # The cluster is gone, and its workers with it or soon.


def taken(ended: queue.SimpleQueue[Any]) -> list[Any]:
    """All that has come by now; waits a little for the first."""
    found = []
    try:
        found.append(ended.get(timeout=_WAIT_SECONDS))
        while True:
            found.append(ended.get_nowait())
    except queue.Empty:
        return found


def _done(number: int, batch: Batch, answer: Answer | Exception) -> Done:
    if isinstance(answer, Exception):
        lost = Observation(problem="every worker that tried it was lost")
        return Done(number, [(_stamp(datetime.now(UTC)), lost) for _ in batch.plans], "")
    return Done(number, observed_in(batch.plans, answer), str(answer["where"]))


def observed_in(plans: Sequence[Plan], answer: Answer, *, restores: bool = False) -> list[tuple[str, Observation]]:
    """When each of ``plans`` began and what came of it, by an answer that has just come. For ``restores`` see
    ``read_trial``.
    """
    now = datetime.now(UTC)
    observed: list[tuple[str, Observation]] = []
    for plan, said in zip(reversed(plans), reversed(answer["done"]), strict=True):
        observation = _observation(plan, said, restores=restores)
        now -= timedelta(seconds=observation.host_seconds)
        observed.append((_stamp(now), observation))
    return observed[::-1]


def _observation(plan: Plan, said: dict[str, Any], *, restores: bool) -> Observation:
    stream = read_trial(said["lines"].encode(), plan, restores=restores)
    return Observation(**{**said, "events": stream.events, "problem": said["problem"] or stream.problem})


def _stamp(now: datetime) -> str:
    return now.isoformat(timespec="milliseconds")
