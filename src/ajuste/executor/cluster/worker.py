"""A Dask worker's part: what it does for coordinators, and the processes that people start by hand."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import tempfile
from collections.abc import Coroutine
from importlib.util import find_spec
from typing import Any, Final

import distributed
from distributed.diagnostics.plugin import WorkerPlugin

from ajuste.executor.cluster.bench import Bench, on_this_machine
from ajuste.executor.cluster.keys import Cluster
from ajuste.executor.cluster.messages import PLANS, Answer, Ask, answer, failure
from ajuste.executor.cluster.workplace import Workplace
from ajuste.machine.home import home
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.wording import Say

NAME: Final = "ajuste"
"""Of the plug-in in a worker, which coordinators add when they first ask something."""
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
        except Exception as error:  # noqa: BLE001 - the coordinator is told
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
                return self._bench.close_of(job)


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


# Processes that people start by hand; `dask worker`, SSHCluster, dask-jobqueue and dask-kubernetes do as well.


def serve(cluster: Cluster, say: Say, *, threads: int | None = None, bench: bool = False) -> None:
    """Be a worker until interrupted. As a ``bench`` its machine may be measured, one block at a time.

    Raises:
        RequestError: The scheduler cannot be reached.
        RunError: The scheduler was lost.
        KeyboardInterrupt: A person ended it.
    """
    security = cluster.require_reachable()
    count = 1 if bench else threads or len(os.sched_getaffinity(0))
    quiet_dask()

    async def working(directory: str) -> None:
        async with distributed.Worker(
            cluster.address,
            nthreads=count,
            security=security,
            resources={BENCH: 1} if bench else {},
            dashboard_address="127.0.0.1:0",
            local_directory=directory,
            memory_limit=0,
        ) as worker:
            each = "this machine, one block at a time" if bench else f"{count} thread{'s' if count > 1 else ''}"
            say(f"working for {cluster.address} with {each}")
            await worker.finished()

    with tempfile.TemporaryDirectory(prefix="ajuste-worker-") as directory:
        _until_interrupted(working(directory))
    raise RunError(f"lost the scheduler {cluster.address}")


def schedule(cluster: Cluster, say: Say) -> None:
    """Be a scheduler until interrupted; its dashboard, if bokeh is installed, is for this machine alone.

    Raises:
        RequestError: The address cannot be listened on.
        KeyboardInterrupt: A person ended it.
    """
    security = cluster.security()
    quiet_dask()

    async def scheduling() -> None:
        try:
            async with distributed.Scheduler(
                host=cluster.host,
                port=cluster.port,
                protocol=cluster.address.partition(":")[0],
                security=security,
                dashboard=find_spec("bokeh") is not None,
                dashboard_address="127.0.0.1:8787",
            ) as scheduler:
                say(f"scheduler at {cluster.address}")
                await scheduler.finished()
        except OSError as error:
            raise RequestError(
                f"cannot listen at {cluster.address}: {error.strerror or error}",
                hint="choose an address of this machine and a free port",
            ) from error

    _until_interrupted(scheduling())
    raise KeyboardInterrupt


def _until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Run ``work``, which signals cancel so that it ends in good order."""

    async def run() -> None:
        task = asyncio.ensure_future(work)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await task

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
