"""The page *Explore* in a real browser: linked plots, what is saved of them, and the address of what is seen."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from ajuste.catalogue.loader import catalogue
from ajuste.machine.home import Home
from ajuste.model.event import Exited, Sample, Started
from ajuste.model.kernel import KernelVersion
from ajuste.model.trial import Slot, Trial
from ajuste.store.store import Run, Store
from ajuste.study.read import parse_study
from ajuste.study.resolve import resolve
from headless import until
from small_stores import DECIDED

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
SECOND = 1_000_000_000
EXPIRE, WRITEBACK = "vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs"
STUDY = {
    "name": "two",
    "factor": [{"name": EXPIRE, "levels": [3000, 1000, 500]}, {"name": WRITEBACK, "levels": [500, 200, 100]}],
    "workload": {
        "command": ["true"],
        "sampler": [{"source": "vmstat", "keys": ["nr_written"], "interval_ms": 1000}],
        "timeline": [
            {
                "name": "written-after",
                "title": "Time until all was written",
                "source": "vmstat",
                "key": "nr_written",
                "take": "delay",
                "direction": "lower",
            }
        ],
    },
    "target": {"kernel": "debian:6.1"},
    "analysis": {"metrics": ["written-after"], "describe": ["elapsed"]},
    "design": {"combine": "all"},
    "budget": {"min_blocks": 8, "max_blocks": 8},
}
"""Two numeric settings that span a surface, and a sampler."""
BLOCKS, CONFIGURATIONS = 8, 9


def events(written_s: int) -> str:
    """Return the events of a workload of 2 s, 8 pages of which are written so many seconds after its start."""
    exited = {"wall_ns": 2 * SECOND, "exit_code": 0, "user_ns": 0, "system_ns": 0, "peak_rss_bytes": 0}
    zeros = dict.fromkeys(("voluntary_switches", "involuntary_switches", "minor_faults", "major_faults"), 0)
    recorded: list[Any] = [
        Started(at_ns=SECOND, role="workload", index=0, pid=1),
        Exited.model_validate({"at_ns": 9, "role": "workload", "index": 0, **exited, **zeros}),
    ]
    for second in range(41):
        values = {"nr_written": 100 + 8 * (second >= written_s)}
        recorded.append(Sample(at_ns=SECOND + second * SECOND - (second == 0), source="vmstat", values=values))
    return "".join(event.model_dump_json() + "\n" for event in recorded)


@pytest.fixture(scope="module")
def two(lab_home: Home) -> Run:
    """A run in which data are written once both intervals are over: soonest where both are shortest."""
    study = parse_study(STUDY)
    kernels = dict.fromkeys(("debian:6.1", ""), KernelVersion(major=6, minor=1))
    resolved = resolve(study, catalogue(), kernels, lambda name: f"/bin/{name}")
    text = resolved.model_dump_json()
    with Store(lab_home.store_url) as store:
        run = store.new_run(
            study="two", fingerprint="two", seed=1, ajuste="0", named="two", resolved=text, environment={}
        )
        for block in range(BLOCKS):
            for position, configuration in enumerate(resolved.configurations):
                levels = configuration.configuration.levels
                after_s = (int(levels[EXPIRE]) + 2 * int(levels[WRITEBACK])) // 100
                slot = Slot(block=block, position=position, configuration=configuration.configuration.name, seed=1)
                metrics = {"written-after": after_s + 0.01 * (block + position % 2), "elapsed": 2 + 0.001 * position}
                store.add_trials(run, [Trial(slot=slot, status="ok", metrics=metrics, events=events(after_s))])
        store.stop_run(run, "budget", "it had 8 blocks")
    return run


@pytest.fixture
def explored(opened: Open, two: Run) -> Any:
    page = opened(f"/runs/{two.id}/explore")
    page.wait_for_selector("html[data-explored=yes]")
    return page


def saved(page: Any, view: str, form: str) -> bytes:
    with page.expect_download() as download:
        page.click(f"[data-view={view}] [data-save={form}]")
    return Path(download.value.path()).read_bytes()


def rows(page: Any, view: str) -> list[dict[str, str]]:
    return list(csv.DictReader(saved(page, view, "csv").decode().splitlines()))


def drag(page: Any, view: str, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Over these shares of a plot."""
    canvas = page.locator(f"[data-view={view}] canvas")
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(200)  # it is drawn when it comes near
    box = canvas.bounding_box()
    at = [(box["x"] + box["width"] * a, box["y"] + box["height"] * (1 - b)) for a, b in zip(across, up, strict=True)]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=4)
    page.mouse.up()


def test_what_is_chosen_in_one_plot_is_chosen_in_all_and_in_the_address(opened: Open) -> None:
    page = opened(f"/runs/{DECIDED}/explore")
    page.wait_for_selector("html[data-explored=yes]")
    assert "6 trials are shown" in page.inner_text("#explore-status")
    page.focus("[data-view=order] canvas")
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    status = page.wait_for_selector("#explore-status:text('are chosen')")
    until(lambda: "chosen=order" in page.evaluate("location.hash"))
    summary = status.inner_text()
    page.reload()
    page.wait_for_selector(f"#explore-status:text-is('{summary}')")
    with page.expect_download() as download:
        page.click("#save-csv")
    rows = Path(download.value.path()).read_text().splitlines()
    assert len(rows) == 1 + int(summary.split()[0])


VIEWS = ("order", "ecdf", "ridge", "scatter", "surface", "parallel", "timelines")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_saved_as_svg_png_and_csv(explored: Any, view: str) -> None:
    explored.locator(f"[data-view={view}] canvas").scroll_into_view_if_needed()
    explored.wait_for_timeout(200)
    drawing = saved(explored, view, "svg").decode()
    assert drawing.startswith("<svg xmlns=")
    assert drawing.endswith("</svg>")
    assert drawing.count("<poly") + drawing.count("<path") > 5
    assert "NaN" not in drawing
    assert saved(explored, view, "png").startswith(b"\x89PNG")
    assert len(rows(explored, view)) >= CONFIGURATIONS


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), pytest.param(1400, "dark", marks=pytest.mark.slow)])
def test_all_views_are_clean_for_screen_readers_and_fit(opened: Open, two: Run, width: int, theme: str) -> None:
    page = opened(f"/runs/{two.id}/explore", width=width, theme=theme)
    page.wait_for_selector("html[data-explored=yes]")
    assert page.locator("[data-view]:visible").count() == len(VIEWS)
    violations = Axe().run(page).response["violations"]
    assert [
        (violation["id"], violation["nodes"][0]["html"])
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ] == []
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_a_view_of_what_a_run_does_not_have_is_not_shown(opened: Open) -> None:
    page = opened(f"/runs/{DECIDED}/explore")
    page.wait_for_selector("html[data-explored=yes]")
    views = page.evaluate(
        "[...document.querySelectorAll('[data-view]')].filter((e) => e.offsetWidth).map((e) => e.dataset.view)"
    )
    assert views == ["order", "ecdf", "ridge", "scatter"]


def test_the_set_of_the_best_is_outlined_and_chosen_on_the_surface(explored: Any) -> None:
    best = [row for row in rows(explored, "surface") if row["in the set of the best"] == "yes"]
    assert [(row[EXPIRE], row[WRITEBACK]) for row in best] == [("500", "100")]
    assert float(best[0]["mean of written-after"]) == pytest.approx(7.04, abs=0.02)
    drag(explored, "surface", (0.02, 0.2), (0.05, 0.25))  # the lowest row's first cell, which is the best one
    explored.wait_for_selector(f"#explore-status:text('{BLOCKS} of {BLOCKS * CONFIGURATIONS} trials are chosen')")
    assert {row["configuration"] for row in rows(explored, "order")} == {best[0]["configuration"]}
    assert {row["configuration"] for row in rows(explored, "timelines")} == {best[0]["configuration"]}
    until(lambda: explored.locator("#explore-summary tbody tr").count() == 1)


def test_lines_are_aligned_by_the_event_that_is_chosen_and_the_address_keeps_it(explored: Any) -> None:
    firsts = {}
    for event in ("start", "end", "written-after"):
        explored.select_option("#align", event)
        points = rows(explored, "timelines")
        firsts[event] = {float(point["seconds"]) for point in points if point["value"] == "8"}
    assert min(firsts["start"]) == 7
    assert min(firsts["end"]) == 5
    assert min(firsts["written-after"]) == pytest.approx(0, abs=0.1)
    until(lambda: "align=written-after" in explored.evaluate("location.hash"))
    explored.reload()
    explored.wait_for_selector("html[data-explored=yes]")
    assert explored.input_value("#align") == "written-after"


def test_chosen_trials_are_looked_at_closely_and_that_is_in_the_address(explored: Any) -> None:
    drag(explored, "parallel", (0.85, 0.99), (0.03, 0.4))
    explored.wait_for_selector("#explore-status:text('are chosen')")
    explored.click("#zoom")
    explored.wait_for_selector("#zoom:text-is('Show all')")
    until(lambda: "zoom=yes" in explored.evaluate("location.hash"))
    summary = explored.inner_text("#explore-status")
    drawing = saved(explored, "order", "svg")
    explored.reload()
    explored.wait_for_selector("html[data-explored=yes]")
    assert explored.inner_text("#zoom") == "Show all"
    assert explored.inner_text("#explore-status") == summary
    explored.wait_for_timeout(200)
    assert saved(explored, "order", "svg") == drawing
