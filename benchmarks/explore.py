"""The lab page in headless Chromium: a run of 100,000 trials explored, and a run that is watched while it goes on.

``python -m benchmarks lab``. What a person does is done with the browser's own mouse, and every redraw is counted.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.headless import chromium

from ajuste.machine.home import Home
from ajuste.model.trial import Slot, Trial
from ajuste.store.location import exclusive, lock_name
from ajuste.store.store import Run, Store
from ajuste.study.resolved import ResolvedStudy
from benchmarks.comparison import Comparison

TRIALS = 100_000
FRAMES_PER_SECOND = 30
ZOOM_SECONDS = 0.3
LAG_SECONDS = 0.5
MOVES = 60
ZOOMS = 10
WATCHED = 20
BETWEEN_SECONDS = 0.3
VIEWS = ("order", "ecdf", "scatter")
_COUNT = """() => {
  window.redraws = 0;
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  let counted = false;
  CanvasRenderingContext2D.prototype.clearRect = function (...words) {
    if (!counted && this.canvas.isConnected) {
      window.redraws++;
      counted = true;
      requestAnimationFrame(() => { counted = false; });
    }
    return clear.apply(this, words);
  };
}"""
"""A redraw is a frame in which at least one plot of the page was drawn again."""
_ZOOM = """() => new Promise((done) => {
  const began = performance.now();
  document.getElementById("zoom").click();
  requestAnimationFrame(() => requestAnimationFrame(() => done((performance.now() - began) / 1000)));
})"""
_WATCH = """() => {
  window.came = {};
  new MutationObserver(() => {
    window.came[document.documentElement.dataset.trials] ??= (performance.timeOrigin + performance.now()) / 1000;
  }).observe(document.documentElement, { attributeFilter: ["data-trials"] });
}"""


def measure(home: Home, store: Store, new_run: Any) -> Iterator[Comparison]:
    """``new_run`` makes a run of ``store``, which is that of ``home``."""
    large, watched = new_run(store), new_run(store)
    _fill(store, large)
    with _served(home) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(address)
        yield from _explored(page, address, large)
        yield _seen(page, address, home, store, watched)


def _fill(store: Store, run: Run) -> None:
    """Trials as many as there are to be explored, of all configurations alike."""
    names = [resolved.configuration.name for resolved in ResolvedStudy.model_validate_json(run.resolved).configurations]
    drawn = random.Random(1)
    blocks = TRIALS // len(names)
    for first in range(0, blocks, 1000):
        trials = []
        for block in range(first, min(blocks, first + 1000)):
            for place, name in enumerate(names):
                metrics = {"involuntary-switches": drawn.gauss(100 * place + 100, 40), "elapsed": drawn.gauss(1, 0.1)}
                slot = Slot(block=block, position=place, configuration=name, seed=1)
                trials.append(Trial(slot=slot, status="ok", metrics=metrics))
        store.add_trials(run, trials)
    store.stop_run(run, "budget", f"it had {blocks} blocks")


@contextmanager
def _served(home: Home) -> Iterator[str]:
    command = [str(Path(sys.executable).with_name("ajuste")), "serve", "--no-browser", "--json"]
    environment = {**os.environ, "AJUSTE_HOME": str(home.data.parent)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["address"]
        finally:
            server.send_signal(signal.SIGINT)


def _explored(page: Any, address: str, run: Run) -> Iterator[Comparison]:
    page.goto(f"{address.partition('/?')[0]}/runs/{run.id}/explore")
    page.wait_for_selector("html[data-explored=yes]", timeout=120_000)
    page.evaluate(_COUNT)
    figures = {f"brushing {view}": _brushed(page, view) for view in VIEWS}
    yield Comparison(
        name="lab-explore",
        what=f"redraws of linked plots of {TRIALS:,} trials while points are chosen",
        unit="/s",
        figures=figures,
        goal=f"at least {FRAMES_PER_SECOND} a second",
        reached=min(median(rates) for rates in figures.values()) >= FRAMES_PER_SECOND,
    )
    times = [page.evaluate(_ZOOM) for _ in range(ZOOMS)]
    yield Comparison(
        name="lab-zoom",
        what=f"from a click until plots of {TRIALS:,} trials are drawn on other axes",
        unit="s",
        figures={"zoom": times},
        goal=f"at most {ZOOM_SECONDS} s",
        reached=median(times) <= ZOOM_SECONDS,
    )


def _brushed(page: Any, view: str) -> list[float]:
    """Redraws a second, each of three times that a rectangle grows from a corner to the whole plot."""
    canvas = page.locator(f"[data-view={view}] canvas")
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    box = canvas.bounding_box()
    rates = []
    for _ in range(3):
        page.mouse.move(box["x"] + 70, box["y"] + 30)
        page.mouse.down()
        before, began = page.evaluate("window.redraws"), time.monotonic()
        page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] - 45, steps=MOVES)
        rates.append((page.evaluate("window.redraws") - before) / (time.monotonic() - began))
        page.mouse.up()
    return rates


def _seen(page: Any, address: str, home: Home, store: Store, run: Run) -> Comparison:
    name = ResolvedStudy.model_validate_json(run.resolved).baseline
    stored_at: list[float] = []
    with exclusive(home.state / lock_name(run.fingerprint, run.seed), "the benchmark"):
        page.goto(f"{address.partition('/?')[0]}/runs/{run.id}")
        page.wait_for_selector("html[data-trials]")
        page.evaluate(_WATCH)
        for block in range(WATCHED):
            slot = Slot(block=block, position=0, configuration=name, seed=block)
            store.add_trials(run, [Trial(slot=slot, status="ok", metrics={"involuntary-switches": 100.0 + block})])
            stored_at.append(time.time())
            time.sleep(BETWEEN_SECONDS)
        page.wait_for_selector(f"html[data-trials='{WATCHED}']")
        came = page.evaluate("window.came")
    seen = {int(count): at for count, at in came.items()}
    lags = [min(at for count, at in seen.items() if count > place) - began for place, began in enumerate(stored_at)]
    return Comparison(
        name="lab-seen",
        what="from a trial in the store to its point in the browser",
        unit="s",
        figures={"one browser": lags},
        goal=f"at most {LAG_SECONDS} s behind",
        reached=max(lags) <= LAG_SECONDS,
    )
