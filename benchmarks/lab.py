"""The lab page: its first page of 10,000 runs, how far it is behind a run, what ten viewers cost the machine; and how
smoothly a browser explores a run.

``python -m benchmarks lab``. Nothing is booted: a process adds trials to a run as a measurement would.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median

from starlette.testclient import TestClient

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import Home
from ajuste.model.kernel import KernelVersion
from ajuste.model.trial import Slot, Trial
from ajuste.store.store import Run, Store
from ajuste.study.builtin import find_study
from ajuste.study.read import read_study
from ajuste.study.resolve import resolve
from ajuste_lab.application import application
from ajuste_lab.service import LabService
from ajuste_lab.watch import RunWatch
from benchmarks import explore
from benchmarks.comparison import Comparison, seconds
from benchmarks.store import make

ROUNDS = 5
PAGE_SECONDS = 0.3
LAG_SECONDS = 0.5
TRIALS = 20
VIEWERS = 10
BETWEEN_SECONDS = 0.3


def measure() -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory(prefix="ajuste-lab-") as directory:
        yield _first_page(_home(Path(directory) / "many"))
        yield from _watched(_home(Path(directory) / "one"))
        yield from _in_browser(_home(Path(directory) / "browser"))


def _home(directory: Path) -> Home:
    (directory / "data").mkdir(parents=True)
    return Home(directory / "data", directory / "cache", directory / "state")


def _first_page(home: Home) -> Comparison:
    make(home.data / "store.sqlite")
    service = LabService(home)
    with TestClient(application(service, token="t", port=80), base_url="http://127.0.0.1") as client:  # noqa: S106
        client.get("/?token=t")
        index = seconds(lambda: _read_all(client))
        figures = {"first page": [seconds(lambda: client.get("/").raise_for_status()) for _ in range(ROUNDS)]}
    what = f"the list of 10,000 runs, whose index is kept (reading it once took {index:.1f} s)"
    reached = median(figures["first page"]) <= PAGE_SECONDS
    return Comparison(
        name="lab-page", what=what, unit="s", figures=figures, goal=f"at most {PAGE_SECONDS} s", reached=reached
    )


def _read_all(client: TestClient) -> None:
    while "are still being read" in client.get("/").text:
        time.sleep(0.2)


def _watched(home: Home) -> Iterator[Comparison]:
    service = LabService(home)
    with Store(home.store_url) as store:
        run = _run(store)
        lags, alone = asyncio.run(_follow(service, store, run, 1))
        more, together = asyncio.run(_follow(service, store, _run(store), VIEWERS))
    service.close()
    yield Comparison(
        name="lab-lag",
        what="from a trial in the store to all who watch",
        unit="s",
        figures={"one viewer": lags, f"{VIEWERS} viewers": more},
        goal=f"at most {LAG_SECONDS} s behind",
        reached=median([*lags, *more]) <= LAG_SECONDS,
    )
    yield Comparison(
        name="lab-cost",
        what="share of one CPU that watching a run takes",
        unit="%",
        figures={"one viewer": [alone], f"{VIEWERS} viewers": [together]},
        goal=f"{VIEWERS} viewers cost less than twice as much as one",
        reached=together < 2 * alone,
    )


def _in_browser(home: Home) -> Iterator[Comparison]:
    with Store(home.store_url) as store:
        yield from explore.measure(home, store, _run)


def _run(store: Store) -> Run:
    study = read_study(find_study("granularity"), catalogue(), parse_kernel=parse_spec)
    kernels = dict.fromkeys(("debian:5.10", ""), KernelVersion(major=5, minor=10))
    resolved = resolve(study, catalogue(), kernels, lambda name: f"/bin/{name}").model_dump_json()
    return store.new_run(
        study="granularity", fingerprint="f", seed=1, ajuste="0", named="granularity", resolved=resolved, environment={}
    )


async def _follow(service: LabService, store: Store, run: Run, viewers: int) -> tuple[list[float], float]:
    """Return how long after each trial the last viewer knew of it, and the share of a CPU that it took."""
    watch = RunWatch(service, run)
    came: list[list[float]] = [[] for _ in range(viewers)]

    async def view(times: list[float]) -> None:
        events = (event async for event in watch.events() if event.startswith("event: trials"))
        async for _ in events:
            times += [time.monotonic()]

    tasks = [asyncio.create_task(view(times)) for times in came]
    await asyncio.sleep(1)
    stored_at: list[float] = []
    spent, began = time.process_time(), time.monotonic()
    for number in range(TRIALS):
        slot = Slot(block=number, position=0, configuration="sched_min_granularity_ns=750000", seed=number)
        trial = Trial(slot=slot, status="ok", metrics={"involuntary-switches": 100.0 + number})
        await asyncio.to_thread(store.add_trials, run, [trial])
        stored_at.append(time.monotonic())
        await asyncio.sleep(BETWEEN_SECONDS)
    await asyncio.sleep(1)
    share = 100 * (time.process_time() - spent) / (time.monotonic() - began)
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    lags = [
        max(times[place] for times in came) - at
        for place, at in enumerate(stored_at)
        if all(len(o) > place for o in came)
    ]
    return lags, share
