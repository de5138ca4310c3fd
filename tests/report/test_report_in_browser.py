"""The report in a real browser, narrow and wide, light and dark."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ajuste.model.continuation import REPRODUCE
from ajuste.model.results import Results
from ajuste.model.timeline import TIMELINES
from ajuste.model.wording import NO_BREAK
from ajuste.report.html import write_report
from ajuste.report.results import results_report
from ajuste.report.trials import trials_csv
from tiers import slow

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
NAMES = ("granularity", "grid", "undecided", "hostile", "timed")


def plain(place: Any) -> str:
    """The text there; a number and its unit are held together by spaces that do not break."""
    return str(place.text_content()).replace(NO_BREAK, " ")


@pytest.fixture(scope="module")
def files(
    tmp_path_factory: pytest.TempPathFactory,
    granularity: Results,
    grid: Results,
    undecided: Results,
    hostile: Results,
    timed: Results,
) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("reports")
    paths = {name: directory / f"{name}.html" for name in NAMES}
    for name, results in zip(NAMES, (granularity, grid, undecided, hostile, timed), strict=True):
        write_report(results_report(results), paths[name])
    return paths


@pytest.fixture
def opened(browser: Any, files: dict[str, Path]) -> Iterator[Open]:
    """Opens a report; at the end nothing may have been said in the console or asked of the network."""
    complaints: list[str] = []
    contexts = []

    def open_report(name: str, width: int = 1400, theme: str = "light", script: bool = True) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, java_script_enabled=script
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))  # type: ignore[func-returns-value]
        page.on(
            "request",
            lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else complaints.append(r.url),
        )
        page.goto(files[name].as_uri())
        if script:
            page.wait_for_selector("html[data-drawn=yes]")
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert complaints == []


@contextmanager
def all_details_open(page: Any) -> Iterator[None]:
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    yield


def marks(page: Any, plot: str) -> int:
    count: int = page.locator(f"#{plot} .scatterlayer .point").count()
    return count


@pytest.mark.parametrize(
    ("name", "width", "theme"),
    [
        ("granularity", 390, "light"),
        pytest.param("granularity", 390, "dark", marks=pytest.mark.slow),
        pytest.param("granularity", 1400, "light", marks=pytest.mark.slow),
        ("granularity", 1400, "dark"),
        *(pytest.param(name, 390, "dark", marks=pytest.mark.slow) for name in NAMES[1:]),
        *(pytest.param(name, 1400, "light", marks=pytest.mark.slow) for name in NAMES[1:]),
    ],
)
def test_it_fits_and_draws_every_trial(
    opened: Open, name: str, width: int, theme: str, request: pytest.FixtureRequest
) -> None:
    results = request.getfixturevalue(name)
    page = opened(name, width, theme)
    assert page.locator(".answer .badge").first.is_visible()
    assert results.answer.replace("\x1b", "\\x1b") in plain(page.locator("#answer"))
    with all_details_open(page):
        page.wait_for_function(
            "() => Array.from(document.querySelectorAll('[data-figure]')).every((d) => d.querySelector('.main-svg'))"
        )
        assert marks(page, "metric-0-trials") == len(results.trials)
        assert page.locator("[id^=metric-0-forest] .js-line").count() >= len(results.configurations) - 1
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        for canvas in page.locator("[data-figure]").all():
            box, frame = canvas.bounding_box(), canvas.locator(".main-svg").first.bounding_box()
            assert frame["width"] <= box["width"] + 1
            assert box["x"] + box["width"] <= width


def test_a_long_verdict_stays_in_its_table(browser: Any, granularity: Results, tmp_path: Path) -> None:
    few = tuple(
        verdict.model_copy(update={"verdict": "undecided", "few_trials": True}) for verdict in granularity.verdicts
    )
    file = tmp_path / "few.html"
    write_report(results_report(granularity.model_copy(update={"verdicts": few})), file)
    for width in (1400, 800):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(file.as_uri())
        table, badge = page.locator("table.stacked").first, page.locator("table.stacked .badge").first
        assert "too few" in plain(badge)
        box, parent = table.bounding_box(), table.locator("xpath=..").bounding_box()
        assert box["width"] <= parent["width"] + 1
        page.close()


def test_what_the_figures_say_and_what_was_said_is_not_said_below_a_row(
    browser: Any, granularity: Results, tmp_path: Path
) -> None:
    verdicts = tuple(
        verdict.model_copy(update={"verdict": word, "reason": "alike in 8 seeds" if word == "undecided" else "higher"})
        for verdict, word in zip(granularity.verdicts, ("differs", "undecided", "undecided"), strict=False)
    )
    file = tmp_path / "remarks.html"
    write_report(results_report(granularity.model_copy(update={"verdicts": verdicts})), file)
    page = browser.new_page()
    page.goto(file.as_uri())
    assert page.locator("#verdicts .remark").all_text_contents() == ["alike in 8 seeds"]
    page.close()


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("timed", 390),
        pytest.param("timed", 1400, marks=pytest.mark.slow),
        pytest.param("hostile", 390, marks=pytest.mark.slow),
    ],
)
def test_timelines_stand_one_below_the_other(
    opened: Open, name: str, width: int, request: pytest.FixtureRequest
) -> None:
    results = request.getfixturevalue(name)
    page = opened(name, width)
    with all_details_open(page):
        page.wait_for_selector("#timelines .js-line")
    plot = page.locator("#timelines")
    assert plot.locator(".js-line").count() == sum(len(figure.lines) for figure in TIMELINES.of(results))
    assert plot.locator(".point").count() == len(results.configurations)
    titles = [title.bounding_box() for title in plot.locator(".annotation-text").all()]
    assert len(titles) == len(TIMELINES.of(results))
    assert all(above["y"] + above["height"] < below["y"] for above, below in pairwise(titles))
    if name == "timed":
        assert all(title["x"] >= 0 and title["x"] + title["width"] <= width for title in titles)


def test_it_takes_the_theme_of_the_system_and_remembers_another(opened: Open) -> None:
    page = opened("granularity", theme="dark")

    def ground() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    def axis_text() -> str:
        return str(page.evaluate("getComputedStyle(document.querySelector('#metric-0-trials .xtick text')).fill"))

    dark = ground(), axis_text()
    page.click("#theme")
    page.wait_for_function(
        f"() => getComputedStyle(document.querySelector('#metric-0-trials .xtick text')).fill != '{dark[1]}'"
    )
    light = ground(), axis_text()
    assert light[0] != dark[0]
    page.reload()
    page.wait_for_selector("html[data-drawn=yes]")
    assert (ground(), axis_text()) == light


def test_plots_follow_the_width(opened: Open) -> None:
    page = opened("granularity", 1400)

    def widths() -> list[float]:
        return [canvas.bounding_box()["width"] for canvas in page.locator("[data-figure] .main-svg:first-child").all()]

    assert max(widths()) > 390
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_function(
        "() => Array.from(document.querySelectorAll('[data-figure] .main-svg')).every((s) => s.clientWidth < 390)"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("name", ["hostile", *slow("undecided")])
def test_the_data_can_be_downloaded(opened: Open, name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    results = request.getfixturevalue(name)
    page = opened(name)
    for source, suffix in (("trials-csv", ".csv"), ("results-json", ".json")):
        with page.expect_download() as download:
            page.click(f"[data-source={source}]")
        assert download.value.suggested_filename.endswith(suffix)
        download.value.save_as(tmp_path / source)
    text = (tmp_path / "trials-csv").read_bytes().decode("utf-8")
    assert text == trials_csv(results)
    assert len(list(csv.DictReader(io.StringIO(text, newline="")))) == len(results.trials)
    assert Results.model_validate_json((tmp_path / "results-json").read_bytes()) == results


@pytest.mark.parametrize("theme", ["light", *slow("dark")])
def test_a_picture_can_be_saved_with_its_title_and_legend(opened: Open, theme: str, tmp_path: Path) -> None:
    page = opened("grid", width=390, theme=theme)
    with all_details_open(page):
        page.wait_for_selector("[data-figure] .main-svg", state="attached")
    for form, head in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with page.expect_download() as download:
            page.locator(f"[data-form={form}]").first.click()
        assert download.value.suggested_filename == f"hackbench-time-over-both.{form}"
        download.value.save_as(tmp_path / form)
        assert (tmp_path / form).read_bytes().startswith(head)
    drawing = (tmp_path / "svg").read_text(encoding="utf-8")
    assert all(words in drawing for words in ("Hackbench time over", "best: 16 ms, 8 ms", "sched_min_granularity_ns"))
    assert "var(--" not in drawing


def test_the_commands_can_be_copied(opened: Open, granularity: Results) -> None:
    page = opened("granularity")
    page.click("[data-copy=again]")
    page.wait_for_function("() => document.querySelector('[data-copy=again]').textContent === 'Copied'")
    assert page.locator("#again").inner_text().splitlines() == list(REPRODUCE.of(granularity))


def test_hovering_says_what_a_trial_was(opened: Open) -> None:
    page = opened("undecided")
    point = page.locator("#metric-0-trials .scatterlayer .point").first
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#metric-0-trials .hoverlayer .hovertext")
    assert "seed" in page.locator("#metric-0-trials .hoverlayer .hovertext").first.text_content()


def test_text_and_tables_need_no_script(opened: Open, granularity: Results) -> None:
    page = opened("granularity", 390, script=False)
    assert plain(page.locator("#answer")) == granularity.answer
    assert page.locator("#verdicts tbody tr:not(.group):not(.remark)").count() == 8
    assert page.locator("#verdicts .badge").first.is_visible()
    assert not page.locator("[data-figure]").first.is_visible()
    assert not page.locator("[data-source=trials-csv]").is_visible()


def test_a_telephone_folds_long_sections_and_links_open_them(opened: Open) -> None:
    page = opened("grid", 390)
    assert page.evaluate("document.documentElement.scrollHeight") < 6 * 900
    folded = "section:has(> [data-long]:not([open]))"
    name = page.locator(folded).first.get_attribute("id")
    page.evaluate(f"location.hash = '{name}'")
    page.wait_for_selector(f"#{name} > details[open]")
    assert page.locator(folded).count() > 0
    page.set_viewport_size({"width": 1400, "height": 900})
    page.wait_for_function("document.querySelector('[data-long]:not([open])') === null")


def test_a_browser_that_cannot_unpack_says_so(opened: Open, granularity: Results) -> None:
    page = opened("granularity")
    page.add_init_script("delete window.DecompressionStream")
    page.reload()
    page.wait_for_selector("html[data-drawn=yes]")
    assert page.locator("[data-figure]").first.text_content() == "Plots require a browser from 2023 or later."
    assert page.locator("[data-source=trials-csv]").is_disabled()
    assert plain(page.locator("#answer")) == granularity.answer


def test_it_prints_light_and_without_buttons(opened: Open) -> None:
    page = opened("granularity", theme="dark")
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--card').trim()") == "#ffffff"
    assert not page.locator("#theme").is_visible()
    assert all(page.locator("details").evaluate_all("all => all.map((d) => d.open)"))
