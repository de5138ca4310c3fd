"""Being a worker: this process carries out plans for a scheduler until that one, or a person, ends it."""

from __future__ import annotations

import asyncio
import os
import signal

from ajuste.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste.ownership import make_directory
from ajuste.target.cluster import workplace
from ajuste.target.cluster.bench import close_all as close_bench
from ajuste.target.cluster.connection import BENCH, CONNECT_SECONDS, UNWATCHED, quieten, reason_of
from ajuste.target.target import Say


def serve(scheduler: str, home: Home, say: Say, *, threads: int | None = None, bench: bool = False) -> None:
    """Carry out ``threads`` plans at once (as many as CPUs if not given) until the scheduler ends. As a ``bench`` also
    trials by the clock of this machine, and never two plans at once. Raises RequestError where it cannot be reached,
    RunError when it is gone.
    """
    import dask

    quieten()
    dask.config.set(UNWATCHED)
    count = 1 if bench else threads or len(os.sched_getaffinity(0))
    try:
        interrupted = asyncio.run(_serve(scheduler, home, say, count, {BENCH: 1} if bench else {}))
    finally:
        workplace.close_all()
        close_bench()
    if interrupted:
        raise KeyboardInterrupt
    raise RunError(f"the scheduler {scheduler} has ended, or closed this worker")


async def _serve(scheduler: str, home: Home, say: Say, threads: int, resources: dict[str, float]) -> bool:
    """Whether a person ended it."""
    from distributed import Worker

    make_directory(home.state)
    worker = Worker(
        scheduler,
        nthreads=threads,
        resources=resources,
        memory_limit=0,
        local_directory=str(home.state / "workers"),
        dashboard=False,
    )
    try:
        await asyncio.wait_for(worker, CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise RequestError(
            f"the scheduler {scheduler} cannot be reached: {reason_of(error)}",
            hint="`dask scheduler` starts one and says its address",
        ) from error
    own = "this machine, one block at a time" if resources else f"{threads} thread{'s' if threads > 1 else ''}"
    say(f"working for {scheduler} with {own}")
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    ends = (asyncio.create_task(worker.finished()), asyncio.create_task(interrupted.wait()))
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    # Threads are not waited for: their guests are ended next.
    await worker.close(executor_wait=False)
    return interrupted.is_set()
