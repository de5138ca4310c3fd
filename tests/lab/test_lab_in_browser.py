"""The lab page in a real browser, served by the command itself: every page, a run that goes on, hostile text, forms."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from ajuste.lab.access import LARGEST_BUNDLE
from ajuste.machine.home import Home
from ajuste.model.trial import Slot, Trial
from ajuste.run.sharing import to_bundle
from ajuste.store.bundle import write_bundle
from ajuste.store.engine import lock_name, only_one
from ajuste.store.store import Store
from headless import chromium
from own_home import own_home
from shell import SMALL
from small_stores import DECIDED, GOING_ON, run_of, small_store

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


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    directory = own_home(tmp_path_factory.mktemp("lab") / "home")
    small_store(directory / "data" / "store.sqlite")
    return Home(directory / "data", directory / "cache", directory / "state")


@pytest.fixture(scope="module")
def served(home: Home) -> Iterator[str]:
    """The address that ``ajuste serve`` prints, with its token; Ctrl-C ends it."""
    command = [str(Path(sys.executable).with_name("ajuste")), "serve", "--no-browser", "--json"]
    environment = {**os.environ, "AJUSTE_HOME": str(home.data.parent)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["address"]
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 130
        assert server.stdout.read() == b""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Any, served: str) -> Iterator[Open]:
    """Opens a page; at the end nothing may have been said in the console or asked of another machine."""
    complaints: list[str] = []
    contexts = []
    own = served.partition("/?")[0]

    def open_page(path: str, width: int = 1400, theme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))  # type: ignore[func-returns-value]
        page.on("request", lambda r: None if r.url.startswith((own, "data:", "blob:")) else complaints.append(r.url))
        page.goto(served)
        page.goto(own + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [text for text in complaints if "a status of 40" not in text] == []


def until(happens: Callable[[], bool]) -> None:
    """The page's policy forbids what Playwright waits with for a condition."""
    end = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_every_page_is_clean_for_screen_readers_and_fits_narrow_and_wide(opened: Open) -> None:
    page = opened("/", width=390, theme="dark")
    own = page.url.rstrip("/")
    for place, path in enumerate(PAGES):
        width = (390, 1400)[place % 2]
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(own + path)
        page.wait_for_selector("main h1")
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), path


def test_what_is_chosen_in_one_plot_is_chosen_in_all_and_in_the_address(opened: Open) -> None:
    page = opened(f"/runs/{DECIDED}/explore")
    page.wait_for_selector("html[data-explored=yes]")
    assert "6 trials are shown" in page.inner_text("#explore-status")
    page.focus("[data-view=order] canvas")
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    status = page.wait_for_selector("#explore-status:text('are chosen')")
    until(lambda: "chosen=order" in page.evaluate("location.hash"))
    said = status.inner_text()
    page.reload()
    page.wait_for_selector(f"#explore-status:text-is('{said}')")
    with page.expect_download() as download:
        page.click("#save-csv")
    rows = Path(download.value.path()).read_text().splitlines()
    assert len(rows) == 1 + int(said.split()[0])


def test_trials_appear_as_another_process_measures_them(opened: Open, home: Home) -> None:
    with Store(home.store_url) as store:
        run = store.find_run(GOING_ON)
        with only_one(home.state / lock_name(run.fingerprint, run.seed), "the test"):
            page = opened(f"/runs/{GOING_ON}")
            page.wait_for_selector("html[data-trials]")
            before = int(page.evaluate("document.documentElement.dataset.trials"))
            assert page.is_disabled("text=Pause")  # it is no child of the lab page
            slot = Slot(block=4, position=0, configuration="sched_min_granularity_ns=750000", seed=9)
            store.add_trials(run, [Trial(slot=slot, status="ok", metrics={"involuntary-switches": 91.0})])
            page.wait_for_selector(f"html[data-trials='{before + 1}']")
            assert "trials" in page.inner_text("#live-status")
            page.wait_for_selector("#live-effects .badge")


def test_hostile_text_is_shown_and_not_executed(opened: Open, home: Home, tmp_path: Path) -> None:
    text = SMALL.replace('name = "small"\n', f"name = \"small\"\ntitle = '{HOSTILE}'\n")
    with Store(home.store_url) as store:
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
    for said in ("1 trial: imported", "1 trial: it was here already"):
        page.set_input_files("#import", file)
        page.wait_for_selector(f"#import-said .notice:has-text('{said}')")
        assert page.locator(f"#runs a[href='/runs/{file.stem}']").count() == 1
    page.click("#import-said a")
    page.wait_for_url(f"**/runs/{file.stem}")
    assert "small" in page.inner_text("main").lower()


def test_a_script_in_an_imported_bundle_does_not_run(opened: Open, tmp_path: Path) -> None:
    file = bundle_of(SMALL.replace('name = "small"\n', f"name = \"small\"\ntitle = '{HOSTILE}'\n"), tmp_path)
    page = opened("/")
    page.set_input_files("#import", file_of(f"{HOSTILE}.ajuste", file.read_bytes()))
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
            file_of("forged.ajuste", zstd.compress(text + seal + b"\n")),
            "forged.ajuste is damaged or forged",
        ),
        (file_of(f"{HOSTILE}.ajuste", b"PK\x03\x04"), "is not a bundle of Ajuste"),
        (large, "large.ajuste is too large for the lab page; expected at most 64 MiB"),
    )
    page = opened("/")
    before = page.inner_text("#runs")
    for file, said in wrong:
        page.set_input_files("#import", file)
        page.wait_for_selector(f"#import-said [role=alert]:has-text('{said}')")
        assert page.inner_text("#import-said").count("Nothing was imported") == 1
        assert page.title() != "owned"
    page.reload()
    assert page.inner_text("#runs") == before


def file_of(name: str, content: bytes) -> dict[str, Any]:
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
