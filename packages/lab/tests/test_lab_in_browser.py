"""The lab page in a real browser, served by the command itself: every page, a run that goes on, hostile text, forms."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from ajuste.machine.home import Home
from ajuste.model.trial import Slot, Trial
from ajuste.store.location import exclusive, lock_name
from ajuste.store.store import Store
from ajuste_lab.access import LARGEST_BUNDLE
from ajuste_lab.rendering import PLACES, added_pages
from ajuste_share.bundle import write_bundle
from ajuste_share.sharing import to_bundle
from headless import until
from shell import SMALL, small
from small_stores import DECIDED, GOING_ON, run_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
HOSTILE = '<script>document.title = "owned"</script><img src=x onerror=alert(1)>'
PAGES = (
    *("/", "/?find=small&verdict=differs", "/new", "/new?study=granularity", "/tunables", "/tunables/vm.swappiness"),
    *("/machine", f"/runs/{DECIDED}", f"/runs/{DECIDED}/explore", f"/compare?run={DECIDED}&run={GOING_ON}", "/nothing"),
)


def test_every_page_is_clean_for_screen_readers_and_fits_narrow_and_wide(opened: Open) -> None:
    page = opened("/", width=390, theme="dark")
    origin = page.url.rstrip("/")
    for place, path in enumerate(PAGES):
        width = (390, 1400)[place % 2]
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(origin + path)
        page.wait_for_selector("main h1")
        violations = Axe().run(page).response["violations"]
        assert [
            (violation["id"], violation["nodes"][0]["html"])
            for violation in violations
            if violation["impact"] in ("serious", "critical")
        ] == []
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), path


def test_trials_appear_as_another_process_measures_them(opened: Open, lab_home: Home) -> None:
    with Store(lab_home.store_url) as store:
        run = store.find_run(GOING_ON)
        with exclusive(lab_home.state / lock_name(run.fingerprint, run.seed), "the test"):
            page = opened(f"/runs/{GOING_ON}")
            page.wait_for_selector("html[data-trials]")
            before = int(page.evaluate("document.documentElement.dataset.trials"))
            assert page.is_disabled("text=Pause")  # it is no child of the lab page
            slot = Slot(block=4, position=0, configuration="sched_min_granularity_ns=750000", seed=9)
            store.add_trials(run, [Trial(slot=slot, status="ok", metrics={"involuntary-switches": 91.0})])
            page.wait_for_selector(f"html[data-trials='{before + 1}']")
            assert "trials" in page.inner_text("#live-status")
            page.wait_for_selector("#live-effects .badge")
            page.goto("about:blank")
            page.wait_for_timeout(1000)  # now nobody looks
            page.go_back()
            page.wait_for_selector("#live-effects .badge")


def test_every_page_of_the_menu_is_in_sight_on_a_phone(opened: Open) -> None:
    page = opened("/", width=390)
    ends = page.evaluate("[...document.querySelectorAll('.places a')].map((a) => a.getBoundingClientRect().right)")
    assert len(ends) == len(PLACES) + sum(len(module.PLACES) for module in added_pages())
    assert max(ends) <= 390


def test_runs_side_by_side_have_columns_of_one_width_below_their_answers(opened: Open) -> None:
    page = opened(f"/compare?run={DECIDED}&run={GOING_ON}")
    widths = page.evaluate("[...document.querySelectorAll('#effects thead th')].map((th) => th.offsetWidth)")
    assert len(widths) == 3
    assert max(widths) - min(widths) <= 2
    answer, buttons = page.locator(".answer").bounding_box(), page.locator("nav.actions").bounding_box()
    assert answer["y"] + answer["height"] <= buttons["y"]


def test_an_interval_without_limits_is_drawn_open(opened: Open, lab_home: Home, tmp_path: Path) -> None:
    with Store(lab_home.store_url) as store:
        run = run_of(small(3, 9), store, tmp_path)
        for block in range(2):
            trials = [
                Trial(
                    slot=Slot(block=block, position=place, configuration=f"sched_min_granularity_ns={ns}", seed=9),
                    status="ok",
                    metrics={"involuntary-switches": 90.0 + block + place},
                )
                for place, ns in enumerate((750000, 75000000))
            ]
            store.add_trials(run, trials)
        with exclusive(lab_home.state / lock_name(run.fingerprint, run.seed), "the test"):
            page = opened(f"/runs/{run.id}")
            page.wait_for_selector("#live-effects .badge")
            assert page.locator("#live-effects .open-end").count() == 2
        store.stop_run(run, "interrupted", "it was enough")
        page.goto(page.url)
        assert "no limit yet on this side" in page.inner_text("main")
        store.delete([run])


def test_hostile_text_is_shown_and_not_executed(opened: Open, lab_home: Home, tmp_path: Path) -> None:
    text = SMALL.replace('name = "small"\n', f"name = \"small\"\ntitle = '{HOSTILE}'\n")
    with Store(lab_home.store_url) as store:
        run = run_of(text, store, tmp_path)
    page = opened(f"/runs/{run.id}")
    for path in (f"/runs/{run.id}", "/", f"/runs/{run.id}/explore"):
        page.goto(page.url.partition("/runs")[0].rstrip("/") + path)
        assert HOSTILE in page.inner_text("main")
        assert page.title() != "owned"


def bundle_of(text: str, directory: Path) -> Path:
    """A bundle of one run, made as a stranger makes it: with a store of their own."""
    with Store(f"sqlite:///{directory / 'strange.sqlite'}") as store:
        run = run_of(text, store, directory)
        slot = Slot(block=0, position=0, configuration="sched_min_granularity_ns=750000", seed=9)
        store.add_trials(run, [Trial(slot=slot, status="ok", metrics={"involuntary-switches": 91.0})])
        store.stop_run(run, "budget", "it had 1 block")
        file = directory / f"{run.id}.ajuste"
        write_bundle(file, to_bundle([run.id], store), 1)
    return file


def test_a_bundle_is_imported_by_choosing_its_file(opened: Open, tmp_path: Path) -> None:
    file = bundle_of(SMALL, tmp_path)
    page = opened("/")
    assert file.stem not in page.content()
    for notice in ("1 trial: imported", "1 trial: it was here already"):
        page.set_input_files("#import", file)
        page.wait_for_selector(f"#import-said .notice:has-text('{notice}')")
        assert page.locator(f"#runs a[href='/runs/{file.stem}']").count() == 1
    page.click("#import-said a")
    page.wait_for_url(f"**/runs/{file.stem}")
    assert "small" in page.inner_text("main").lower()


def test_a_script_in_an_imported_bundle_does_not_run(opened: Open, tmp_path: Path) -> None:
    file = bundle_of(SMALL.replace('name = "small"\n', f"name = \"small\"\ntitle = '{HOSTILE}'\n"), tmp_path)
    page = opened("/")
    page.set_input_files("#import", store_file(f"{HOSTILE}.ajuste", file.read_bytes()))
    page.wait_for_selector("#import-said a")
    for path in ("/", f"/runs/{file.stem}", f"/runs/{file.stem}/explore"):
        page.goto(page.url.partition("/runs")[0].rstrip("/") + path)
        assert HOSTILE in page.inner_text("main")
        assert page.title() != "owned"


def test_a_bundle_that_is_forged_or_none_or_too_large_is_refused_on_the_page(opened: Open, tmp_path: Path) -> None:
    first, *rest = zstd.decompress(bundle_of(SMALL, tmp_path).read_bytes()).splitlines(keepends=True)[:-1]
    text = b"".join([first, *rest]).replace(b":91.0", b":19.0")
    seal = json.dumps({"sha256": hashlib.sha256(text).hexdigest()}, separators=(",", ":")).encode()
    large = tmp_path / "large.ajuste"
    with large.open("wb") as opened_file:
        opened_file.truncate(LARGEST_BUNDLE + 1)
    wrong: tuple[tuple[Any, str], ...] = (
        (
            store_file("forged.ajuste", zstd.compress(text + seal + b"\n")),
            "forged.ajuste is damaged or forged",
        ),
        (store_file(f"{HOSTILE}.ajuste", b"PK\x03\x04"), "is not a bundle of Ajuste"),
        (large, "large.ajuste is too large for the lab page; expected at most 64 MiB"),
    )
    page = opened("/")
    before = page.inner_text("#runs")
    for file, alert in wrong:
        page.set_input_files("#import", file)
        page.wait_for_selector(f"#import-said [role=alert]:has-text('{alert}')")
        assert page.inner_text("#import-said").count("Nothing was imported") == 1
        assert page.title() != "owned"
    page.reload()
    assert page.inner_text("#runs") == before


def store_file(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "mimeType": "", "buffer": content}


@pytest.mark.vm
def test_a_form_becomes_a_finished_run(opened: Open) -> None:
    page = opened("/new")
    page.fill("[name=setting_0]", "nice")
    page.fill("[name=levels_0]", "0, 10")
    page.fill("[name=workload]", "matrix size=60 repetitions=1")
    page.fill("[name=background]", "spin")
    page.fill("[name=kernel]", "debian:5.10")
    page.fill("[name=metrics]", "elapsed")
    page.fill("[name=blocks]", "3..9")
    page.click("text=Show the plan")
    page.click("button:has-text('Run on')")
    page.wait_for_url("**/runs/*", timeout=200_000)
    page.wait_for_selector("#verdicts .badge.worsens", timeout=200_000)
    assert "10" in page.inner_text("h1")


LONG = small(40, 40).replace("repetitions = 2", "repetitions = 1")
"""A study of which many trials are measured before it can end."""


def trials_of(page: Any, least: int) -> int:
    """Return the number of trials that the page of a run in progress shows, once there are at least ``least``."""
    page.wait_for_selector("html[data-trials]", timeout=200_000)
    until(lambda: int(page.evaluate("document.documentElement.dataset.trials || 0")) >= least, seconds=200)
    return int(page.evaluate("document.documentElement.dataset.trials"))


@pytest.mark.vm
@pytest.mark.slow
def test_a_run_is_paused_resumed_stopped_and_extended_by_its_buttons(opened: Open) -> None:
    page = opened("/new?study=granularity")
    page.fill("textarea[name=text]", LONG)
    page.click("text=Show the plan")
    page.click("button:has-text('Run on')")
    page.wait_for_url("**/runs/*", timeout=200_000)
    run = page.url
    before = trials_of(page, 3)
    page.click("button:text-is('Pause')")
    page.wait_for_selector("button:text-is('Resume')", timeout=60_000)
    assert page.url == run
    at_pause = measured(page)
    assert at_pause >= before
    page.click("button:text-is('Resume')")
    page.wait_for_url(run, timeout=200_000)
    assert trials_of(page, at_pause + 1) > at_pause
    page.click("button:text-is('Stop')")
    page.wait_for_selector("button:has-text('Extend')", timeout=60_000)
    stopped = measured(page)
    assert stopped > at_pause
    page.click("button:has-text('Extend')")
    page.wait_for_selector("html[data-trials]", timeout=200_000)
    assert trials_of(page, stopped + 1) > stopped
    assert page.get_attribute("#live-progress", "max") == "80"
    page.click("button:text-is('Stop')")
    page.wait_for_selector("button:has-text('Extend')", timeout=60_000)


def measured(page: Any) -> int:
    """Return the number of trials on the page *Explore* of the run that is shown."""
    place = page.url
    page.goto(place + "/explore")
    count = int(page.inner_text("h1").split()[1])
    page.goto(place)
    return count


@pytest.mark.usefixtures("machine_lock")
@pytest.mark.slow
def test_the_quietness_of_this_machine_is_checked_by_a_button(opened: Open) -> None:
    page = opened("/machine")
    assert "not measured yet" in page.inner_text("main")
    for _ in range(30):  # While another program takes the machine, the page says so.
        page.click("button:has-text('Check quietness')")
        page.wait_for_selector("[data-reload]")
        page.wait_for_selector("button:has-text('Check quietness')", timeout=60_000)
        if not page.locator("[role=alert]:has-text('another experiment')").count():
            break
        time.sleep(3)
    assert page.locator("[role=alert]").count() == 0
    assert "Checked just now" in page.inner_text("main")
    assert "One check so far" in page.inner_text("main")
