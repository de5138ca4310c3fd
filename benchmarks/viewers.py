"""Ten viewers of a run's live page: what they change in the run that they watch. ``python -m benchmarks viewers``.

The lab page serves throughout. By turns a comparison on this machine, and a study in a guest, are measured with nobody
looking and with ten viewers, who keep the page's stream of events open and load the page itself each second. The
viewers' own process is part of the disturbance, as browsers on this machine would be.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, stdev
from typing import Any

import httpx

from ajuste.machine.files import locked
from benchmarks.comparison import Comparison, by_turns
from benchmarks.kills import TESTS_LOCK

VIEWERS = 10
ROUNDS = 7
GUEST_ROUNDS = 3
BLOCKS = 60
PAGE_SECONDS = 1.0
WORKLOAD = ("matrix", "size=200", "repetitions=25")
ALONE, WATCHED = "nobody looks", f"{VIEWERS} viewers"
AJUSTE = str(Path(sys.executable).with_name("ajuste"))


def measure() -> Iterator[Comparison]:
    with tempfile.TemporaryDirectory(prefix="ajuste-viewers-") as directory, locked(TESTS_LOCK):
        environment = {**os.environ, "AJUSTE_STORE": f"sqlite:///{directory}/store.sqlite"}
        with _lab(environment) as address:
            yield from _on_host(environment, address)
            yield _in_guest(environment, address)


def _on_host(environment: Mapping[str, str], address: str) -> Iterator[Comparison]:
    spreads: dict[str, list[float]] = {ALONE: [], WATCHED: []}
    seen: list[int] = []

    def of(way: str) -> float:
        words = ("--fresh", "--blocks", str(BLOCKS), "--", *WORKLOAD)
        results = _compare(environment, "here", words, address if way == WATCHED else "", seen)
        clean = [
            trial["metrics"]["elapsed"]
            for trial in results["trials"]
            if trial["status"] == "ok" and not trial["warm_up"]
        ]
        spreads[way].append(100 * stdev(clean) / (sum(clean) / len(clean)))
        return float(median(clean)) * 1e3

    medians = by_turns({way: lambda way=way: of(way) for way in spreads}, ROUNDS)  # type: ignore[misc]
    yield Comparison(
        name="viewers-spread",
        what=f"standard deviation of {BLOCKS} trials of {' '.join(WORKLOAD)} on this machine; {_heard(seen)}",
        unit="%",
        figures=spreads,
        goal="the median with viewers is within the range without",
        reached=min(seen) > 0 and median(spreads[WATCHED]) <= max(spreads[ALONE]),
    )
    yield Comparison(
        name="viewers-elapsed",
        what="their median trial",
        unit="ms",
        figures=medians,
        goal="the median with viewers is within the range without",
        reached=min(medians[ALONE]) <= median(medians[WATCHED]) <= max(medians[ALONE]),
    )


def _in_guest(environment: Mapping[str, str], address: str) -> Comparison:
    seen: list[int] = []
    digests: dict[str, list[str]] = {ALONE: [], WATCHED: []}
    words = ("--kernel", "debian:5.10", "--nice", "0,5", "--background", "spin", "--blocks", "10")
    command = (*words, "--fresh", "--", "matrix", "size=40", "repetitions=1")
    for _ in range(GUEST_ROUNDS):
        for way, way_digests in digests.items():
            results = _compare(environment, "guest", command, address if way == WATCHED else "", seen)
            way_digests.append(results["digest"])
    first = digests[ALONE][0]
    figures = {way: [float(digest != first) for digest in way_digests] for way, way_digests in digests.items()}
    return Comparison(
        name="viewers-digest",
        what=f"digests of a guest's run that differ from the first, {first[:12]}; {_heard(seen)}",
        unit="of 1",
        figures=figures,
        goal="none differs",
        reached=min(seen) > 0 and not any(map(any, figures.values())),
    )


def _heard(seen: list[int]) -> str:
    return f"each viewer heard of {min(seen)} trials or more"


def _compare(environment: Mapping[str, str], name: str, words: tuple[str, ...], address: str, seen: list[int]) -> Any:
    """Return the results of a comparison; with an address ten viewers watch it, and ``seen`` gets how much each did."""
    command = [AJUSTE, "compare", "--quiet", "--json", "--name", name, *words]
    viewers = None
    if address:
        runs = [run["run"] for run in json.loads(_ajuste(environment, "report", "--json"))]
        order = [sys.executable, "-m", __name__, address, name, json.dumps(runs)]
        viewers = subprocess.Popen(order, stdout=subprocess.PIPE)
    try:
        results = json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
        if viewers is not None:
            seen += json.loads(viewers.communicate(timeout=30)[0])
    finally:
        if viewers is not None:
            viewers.kill()
            viewers.wait()
    return results


def _ajuste(environment: Mapping[str, str], *words: str) -> bytes:
    return subprocess.run([AJUSTE, *words], env=environment, check=True, stdout=subprocess.PIPE).stdout


@contextmanager
def _lab(environment: Mapping[str, str]) -> Iterator[str]:
    command = [AJUSTE, "serve", "--no-browser"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address is not None
            yield address[0]
        finally:
            server.terminate()


# The viewers, in a process of their own.


async def _look(address: str, name: str, known: list[str]) -> list[int]:
    async with httpx.AsyncClient(follow_redirects=True, timeout=60) as client:
        await client.get(address)
        base = address.partition("/?")[0]
        page = ""
        while not page or page.rpartition("/")[2] in known:
            await asyncio.sleep(0.05)
            response = await client.get(f"{base}/runs/{name}")
            page = str(response.url) if response.status_code == 200 else ""
        return list(await asyncio.gather(*(_view(client, page) for _ in range(VIEWERS))))


async def _view(client: httpx.AsyncClient, page: str) -> int:
    """Count the trials of which the events told, until the run has ended."""
    reloading = asyncio.create_task(_reload(client, page))
    trials = 0
    async with client.stream("GET", f"{page}/events") as stream:
        kind = ""
        async for line in stream.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data" and kind in {"begin", "trials"}:
                trials += len(json.loads(value)["trials"])
            if kind == "end":
                break
    reloading.cancel()
    with suppress(asyncio.CancelledError):
        await reloading
    return trials


async def _reload(client: httpx.AsyncClient, page: str) -> None:
    while True:
        (await client.get(page)).raise_for_status()
        await asyncio.sleep(PAGE_SECONDS)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_look(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))))
