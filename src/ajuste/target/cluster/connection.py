"""The way to the workers: Dask's scheduler, here or elsewhere. Nothing else of Ajuste speaks to Dask."""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import socket
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

from ajuste.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.ownership import make_directory
from ajuste.target.cluster import preload
from ajuste.target.cluster.nursery import FORKED, begin_nursery, keep_to_ours
from ajuste.target.target import Say

CONNECT_SECONDS: Final = 10.0
"""So long a scheduler may take to answer."""

BENCH: Final = "bench"
"""Dask's resource of a worker that is offered for measuring by its machine's clock: it has one."""

UNWATCHED: Final = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.cycle": "10s",
}
"""Dask's configuration. Its profiler and its look at the event loop would wake a hundred and fifty times a second
beside what is measured.
"""

WORKER_SECONDS: Final = 60.0
"""So long a cluster may be without any worker before the run ends."""


@dataclass(frozen=True)
class Cluster:
    """Where trials are carried out: by the workers of the scheduler at ``address``, or by ``workers`` of this machine.

    ``tls://`` addresses take keys and certificates from Dask's own configuration.
    """

    address: str = ""
    workers: int = 0

    def __str__(self) -> str:
        return f"the cluster {self.address}" if self.address else f"{self.workers} workers on this machine"


@dataclass(frozen=True)
class Worker:
    """``address`` is Dask's for it. What ``benches`` is a whole machine, offered for measuring by its own clock."""

    address: str
    threads: int
    benches: bool = False


class Connection:
    """Opened by whoever needs it first; leaving closes it, and ends workers that were started for it."""

    def __init__(self, cluster: Cluster, home: Home, say: Say) -> None:
        self._cluster = cluster
        self._home = home
        self._say = say
        self._stack = ExitStack()
        self._client: Any = None
        self._names = itertools.count()
        self._prefix = f"ajuste-{uuid.uuid4().hex[:12]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._client = None
        self._stack.close()

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    def open(self) -> None:
        """Connect, if that is not done yet. Raises RequestError for a cluster that does not answer."""
        if self._client is None:
            quieten()
            self._client = self._connect() if self._cluster.address else self._start()

    def workers(self) -> list[Worker]:
        """Those that there are now. Raises RunError where the scheduler does not answer any more."""
        self.require_alive()
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        return [
            Worker(address, one["nthreads"], one.get("resources", {}).get(BENCH, 0) >= 1)
            for address, one in known.items()
        ]

    def ask(self, function: Callable[..., Any], *arguments: Any, workers: Sequence[str]) -> dict[str, Any]:
        """What each of ``workers`` answers, beside whatever it does. One that is lost meanwhile does not answer. Raises
        RunError where one has no Ajuste, or another one.
        """
        found = self._client.run(function, *arguments, workers=list(workers), on_error="return") if workers else {}
        for address, answer in found.items():
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise RunError(f"the worker {address} of {self._cluster} failed: {answer}") from answer
        return {address: answer for address, answer in found.items() if not isinstance(answer, Exception)}

    def submit(
        self,
        function: Callable[..., Any],
        first: str,
        each: Iterable[Any],
        *,
        done: queue.SimpleQueue[Any],
        workers: Sequence[str] | None = None,
        resources: Mapping[str, int] | None = None,
    ) -> list[Any]:
        """Have ``function(first, one)`` called for each one of ``each``, on whichever of ``workers`` is free and has
        the ``resources``. The futures that come back are put into ``done`` when they have ended, however they did.
        """
        ones = list(each)
        futures: list[Any] = self._client.map(
            function,
            [first] * len(ones),
            ones,
            key=[f"{self._prefix}-{next(self._names)}" for _ in ones],
            workers=workers,
            resources=resources,
            pure=False,
        )
        for future in futures:
            future.add_done_callback(done.put)
        return futures

    def answers(self, futures: Sequence[Any]) -> list[Any]:
        """What each of ``futures`` came to; an exception for one that failed. Raises RunError for a lost cluster."""
        if any(future.status in ("cancelled", "lost") for future in futures):
            raise self._lost()
        good = [future for future in futures if future.status == "finished"]
        try:
            answers = iter(self._client.gather(good))
        except Exception as error:
            raise self._lost() from error
        return [next(answers) if future.status == "finished" else future.exception() for future in futures]

    def cancel(self, futures: Sequence[Any]) -> None:
        with contextlib.suppress(Exception):
            self._client.cancel(list(futures), force=True)

    def require_alive(self) -> None:
        """Raises RunError if the scheduler is gone."""
        if self._client is None or self._client.status != "running":
            raise self._lost()

    def _lost(self) -> RunError:
        return RunError(
            f"{self._cluster} was lost in the middle of the run",
            hint="what was measured is kept: the same command goes on where it stopped",
        )

    def _connect(self) -> Any:
        from distributed import Client
        from distributed.security import Security

        address = self._cluster.address
        if address.startswith("tls:") and Security().get_connection_args("client")["ssl_context"] is None:
            raise RequestError(
                f"the cluster {address} wants certificates, and Dask's configuration names none",
                hint="DASK_DISTRIBUTED__COMM__TLS__CA_FILE and others: docs/cluster.md has them all",
            )
        self._say(f"connecting to {address}")
        try:
            _require_listener(address)  # Dask would try again and again where nobody listens.
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise RequestError(
                f"the cluster {address} cannot be reached: {reason_of(error)}",
                hint="expected the address of a Dask scheduler, such as tcp://host:8786; `dask scheduler` starts one",
            ) from error
        return self._stack.enter_context(client)

    def _start(self) -> Any:
        import dask
        from distributed import Client, LocalCluster

        self._say(f"starting {self._cluster}")
        make_directory(self._home.state)
        begin_nursery()
        keep_to_ours()
        self._stack.enter_context(dask.config.set({**UNWATCHED, **FORKED}))
        cluster = self._stack.enter_context(
            LocalCluster(
                n_workers=self._cluster.workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,
                local_directory=str(self._home.state / "workers"),
                silence_logs=logging.CRITICAL,
                preload=[preload.__name__],
            )
        )
        return self._stack.enter_context(Client(cluster, set_as_default=False))


def _require_listener(address: str) -> None:
    """Raises OSError if nobody listens there, ValueError for what is no address."""
    parts = urlsplit(address)
    if parts.hostname and parts.port:
        socket.create_connection((parts.hostname, parts.port), CONNECT_SECONDS).close()


def quieten() -> None:
    """What goes wrong is said by us, once, and not by Dask's loggers."""
    import distributed

    for name in (distributed.__name__, *logging.root.manager.loggerDict):
        if name.partition(".")[0] == distributed.__name__:
            logging.getLogger(name).setLevel(logging.CRITICAL)


def reason_of(error: BaseException) -> str:
    """Why nothing answered, in the system's words."""
    import asyncio  # It takes long to load, and whoever comes here has no cluster.

    while (deeper := error.__cause__ or error.__context__) is not None and not isinstance(
        deeper, asyncio.CancelledError
    ):
        error = deeper
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or f"no answer within {CONNECT_SECONDS:g} s"
