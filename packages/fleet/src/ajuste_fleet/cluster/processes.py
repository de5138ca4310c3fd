"""Processes of a cluster that people start by hand; Dask's own packages start the same."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Coroutine
from importlib.util import find_spec
from typing import Any, Final

import distributed

from ajuste.model.cluster import Cluster
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import Say
from ajuste_fleet.cluster.keys import require_reachable
from ajuste_fleet.cluster.keys import security as security_of
from ajuste_fleet.cluster.worker import BENCH, quiet_dask


def serve(cluster: Cluster, say: Say, *, threads: int | None = None, bench: bool = False) -> None:
    """Be a worker until interrupted. As a ``bench`` its machine may be measured, one block at a time.

    Raises:
        RequestError: The scheduler cannot be reached.
        RunError: The scheduler was lost.
        KeyboardInterrupt: A person ended it.
    """
    security = require_reachable(cluster)
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
        run_until_interrupted(working(directory))
    raise RunError(f"lost the scheduler {cluster.address}")


def schedule(cluster: Cluster, say: Say) -> None:
    """Be a scheduler until interrupted; its dashboard, if bokeh is installed, is for this machine alone.

    Raises:
        RequestError: The address cannot be listened on.
        KeyboardInterrupt: A person ended it.
    """
    security = security_of(cluster)
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

    run_until_interrupted(scheduling())
    raise KeyboardInterrupt


# Time that Dask's tasks have to end after `serve` and `schedule`.
LEAVE_SECONDS: Final = 2


def run_until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Run ``work`` to its end.

    Raises:
        KeyboardInterrupt: A signal ended it.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        loop.run_until_complete(task)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        # A task of Dask can outlive its cancellation; `asyncio.run` would wait for it without end.
        loop.set_exception_handler(lambda *_: None)
        if left := asyncio.all_tasks(loop):
            for other in left:
                other.cancel()
            loop.run_until_complete(asyncio.wait(left, timeout=LEAVE_SECONDS))
        loop.close()
