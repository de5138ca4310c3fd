"""The coordinator's client of a Dask scheduler: it lists workers, sends requests and collects answers."""

from __future__ import annotations

import itertools
import queue
import secrets
import time
import warnings
from collections.abc import Collection, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from pydantic import ValidationError

from ajuste.model.base import first_problem
from ajuste.model.cluster import Cluster
from ajuste.model.error import RequestError, RunError
from ajuste.model.plan import Plan
from ajuste.model.wording import Say, visible_line
from ajuste_fleet.cluster.keys import CONNECT_SECONDS, require_reachable, unreachable
from ajuste_fleet.cluster.messages import PLANS, Answer, Ask, answer

if TYPE_CHECKING:
    from distributed import Client, Future

Ended: TypeAlias = "queue.SimpleQueue[Future[Any]]"

WORKER_SECONDS: Final = 60.0
"""Time in seconds without any worker after which the run ends."""
LOOK_SECONDS: Final = 3.0
"""Interval in seconds at which a coordinator looks for new and lost workers."""
_WAIT_SECONDS = 0.5
# Maximum number of workers that receive a file at the same time.
_AT_ONCE = 16


class Connection:
    """A connection to a scheduler, opened by ``open`` and closed when the context is left."""

    def __init__(self, cluster: Cluster, say: Say) -> None:
        self.cluster = cluster
        self._say = say
        self._client: Client | None = None
        self._numbers = itertools.count()
        self._token = secrets.token_hex(4)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            with suppress(Exception):  # The scheduler may be gone.
                self._client.close(timeout=CONNECT_SECONDS)
            self._client = None

    def open(self) -> None:
        """Connect, if that is not done yet.

        Raises:
            RequestError: The scheduler cannot be reached, has another key, or another version of Dask.
        """
        if self._client is not None:
            return
        self._say(f"connecting to {self.cluster.address}")
        security = require_reachable(self.cluster)
        import distributed

        from ajuste_fleet.cluster.worker import quiet_dask

        quiet_dask()
        try:
            with warnings.catch_warnings(action="ignore"):
                client: Client = distributed.Client(
                    self.cluster.address,
                    security=security,
                    timeout=CONNECT_SECONDS,
                    name="ajuste",
                    set_as_default=False,
                    direct_to_workers=False,
                    deserializers=["msgpack", "dask", "error"],  # Results are bytes: never unpickle one.
                )
        except (OSError, ValueError, TypeError, ImportError) as error:
            raise unreachable(self.cluster, visible_line(str(error)[:500])) from None
        self._client = client
        versions: Any = client.get_versions()
        there, here = versions["scheduler"]["packages"]["distributed"], version("distributed")
        if there != here:
            self.__exit__()
            raise RequestError(
                f"{self.cluster} has Dask {there} instead of {here}",
                hint="install the same version of distributed on every machine",
            )

    def require_alive(self) -> None:
        """Raise RunError if the scheduler is gone."""
        if self._client is None or self._client.status != "running":
            raise self._lost()

    def workers(self) -> dict[str, int]:
        """Return the threads of each worker, by its address.

        Raises:
            RunError: The scheduler is gone.
        """
        self.require_alive()
        try:
            return dict(self._running.nthreads())
        except OSError:
            raise self._lost() from None

    def ask(self, ask: Ask, job: str, body: bytes = b"", *, workers: Collection[str]) -> dict[str, Answer]:
        """Return what each of ``workers`` answers, beside its tasks. One that is lost meanwhile does not answer."""
        self.require_alive()
        from ajuste_fleet.cluster.worker import ask_beside

        answers: dict[str, Answer] = {}
        addresses = list(workers)
        for first in range(0, len(addresses), _AT_ONCE if body else max(1, len(addresses))):
            group = addresses[first : first + _AT_ONCE] if body else addresses
            try:
                replies = self._running.run(ask_beside, ask, job, body, workers=group, on_error="return")
            except OSError:
                raise self._lost() from None
            for address, reply in replies.items():
                if isinstance(reply, bytes):
                    answers[address] = _read(reply)
                elif not isinstance(reply, OSError):
                    problem = visible_line(f"{type(reply).__name__}: {reply}"[:1000])
                    answers[address] = answer(refusal=f"it cannot run Ajuste: {problem}")
        return answers

    def submit(
        self, ask: Ask, job: str, plans: Sequence[Sequence[Plan]], ended: Ended, workers: Collection[str] | None
    ) -> list[Future[Any]]:
        """Submit each of ``plans`` to one of ``workers`` (default: any); futures go to ``ended`` when they end."""
        self.require_alive()
        from ajuste_fleet.cluster.worker import work

        count = len(plans)
        futures: list[Future[Any]] = self._running.map(
            work,
            [ask] * count,
            [job] * count,
            [PLANS.dump_json(tuple(each)) for each in plans],
            key=[f"{ask}-{self._token}-{next(self._numbers)}" for _ in plans],
            workers=list(workers) if workers is not None else None,
            pure=False,
        )
        for future in futures:
            future.add_done_callback(ended.put)
        return futures

    def taken(self, ended: Ended) -> list[tuple[Future[Any], Answer | None]]:
        """Return all that has ended by now with its answer, or None where it took several workers with it.

        Waits a little for the first. What a worker could not read, or the scheduler dropped, has an empty answer.

        Raises:
            RunError: The scheduler is gone, or an answer cannot be read.
        """
        futures: list[Future[Any]] = []
        with suppress(queue.Empty):
            futures.append(ended.get(timeout=_WAIT_SECONDS))
            while True:
                futures.append(ended.get_nowait())
        self.require_alive()
        finished = [future for future in futures if future.status == "finished"]
        try:
            replies = {future.key: body for future, body in zip(finished, self._running.gather(finished), strict=True)}
        except Exception as error:  # noqa: BLE001 - whatever a worker returned instead of bytes
            self.require_alive()
            reason = visible_line(str(error).partition("\n")[0][:500])
            raise RunError(f"cannot read the answer of a worker of {self.cluster}: {reason}") from None
        return [
            (future, _read(replies[future.key]) if future.key in replies else self._why_not(future))
            for future in futures
        ]

    def cancel(self, futures: Collection[Future[Any]]) -> None:
        """Forget about ``futures``: what has not begun is not begun."""
        if futures and self._client is not None and self._client.status == "running":
            with suppress(OSError, TimeoutError):
                self._client.cancel(list(futures), reason="ajuste")

    def _why_not(self, future: Future[Any]) -> Answer | None:
        from distributed.scheduler import KilledWorker

        is_lost = future.status == "error" and isinstance(future.exception(), KilledWorker)
        return None if is_lost else answer()

    @property
    def _running(self) -> Client:
        assert self._client is not None, "it was not opened"
        return self._client

    def _lost(self) -> RunError:
        return RunError(
            f"{self.cluster} was lost during the run",
            hint="run the same command to resume; finished trials are kept",
        )


class Absence:
    """A timer of how long a cluster has had no worker."""

    def __init__(self) -> None:
        self._since: float | None = None

    def is_too_long(self, *, absent: bool) -> bool:
        self._since = (self._since or time.monotonic()) if absent else None
        return self._since is not None and time.monotonic() - self._since > WORKER_SECONDS


def _read(body: Any) -> Answer:
    try:
        return Answer.model_validate_json(body)
    except (ValidationError, RecursionError, TypeError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else type(error).__name__
        raise RunError(f"the answer of a worker is malformed: {visible_line(reason[:300])}") from None
