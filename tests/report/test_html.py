"""The report as a file: whole, self-contained, and safe whatever the results say."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ajuste.machine.inventory.inventory import Inventory
from ajuste.machine.inventory.processor import Cpu
from ajuste.model.results import Results
from ajuste.report.html import render_html, write_report
from ajuste.report.results import results_report
from ajuste.report.trials import trials_csv

VOID = {"meta", "link", "img", "br", "wbr", "input", "path", "circle"}


class Page(HTMLParser):
    """The elements, texts and scripts of a page; fails where elements are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts[dict(attrs).get("id") or str(len(self.scripts))] = ""
        if tag not in VOID:
            self.open.append(tag)
        if tag in {"dt", "dd", "td", "th", "p", "li"}:
            self.text += " "

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[list(self.scripts)[-1]] += data
        elif "style" not in self.open:
            self.text += data

    def unpacked(self, name: str) -> str:
        """Data of the page as its script reads them."""
        return gzip.decompress(base64.b64decode(self.scripts[name])).decode()

    @property
    def headings(self) -> list[int]:
        return [int(tag[1]) for tag, _ in self.elements if re.fullmatch(r"h[1-6]", tag)]


@pytest.fixture(scope="module")
def page(granularity: Results) -> Page:
    return Page(render_html(results_report(granularity)))


@pytest.fixture(scope="module")
def hostile_page(hostile: Results) -> Page:
    return Page(render_html(results_report(hostile)))


def test_question_answer_verdicts_and_digest_are_text(page: Page, granularity: Results) -> None:
    text = " ".join(page.text.split())
    for wanted in (granularity.question, granularity.answer, granularity.digest, "equivalent within ±5 %", "differs"):
        assert wanted in text
    assert "This guest has no hardware counters." in text


def test_the_answer_keeps_numbers_with_their_units(granularity: Results) -> None:
    report = replace(results_report(granularity), headline="Use 750 ms, 12 % of 6 tasks: 3 MiB/s at 2 GHz.")
    page = Page(render_html(report))
    assert "Use 750\u00a0ms, 12\u00a0% of 6 tasks: 3\u00a0MiB/s at 2\u00a0GHz." in page.text


def test_the_settings_are_explained_with_the_value_found(page: Page) -> None:
    text = " ".join(page.text.split())
    assert "How long a task may run before the fair scheduler takes the CPU away" in text
    assert "Value found in this kernel 750000" in text
    assert "/proc/sys/kernel/sched_min_granularity_ns" in text


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    places = {f"#{attributes['id']}" for _, attributes in page.elements if attributes.get("id")}
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "data"):
            to = attributes.get(name) or "data:"
            assert to.startswith("data:") or (tag == "a" and to in places), (tag, attributes)
    assert not any(tag in {"iframe", "object", "embed", "base"} for tag, _ in page.elements)


def test_it_is_small_and_has_every_kind_of_trace_that_is_drawn(granularity: Results, grid: Results) -> None:
    pages = [render_html(results_report(results)) for results in (granularity, grid)]
    assert max(len(page.encode()) for page in pages) < 1_500_000
    library = Page(pages[0]).unpacked("plotly")
    carried = set(re.findall(r'moduleType:"trace",name:"(\w+)"', library))
    assert carried == {"scatter", "bar", "contour", "heatmap", "icicle"}
    drawn = {
        trace["type"] for figure in json.loads(Page(pages[1]).unpacked("figures")).values() for trace in figure["data"]
    }
    assert drawn <= carried


def test_a_report_of_a_thousand_trials_is_small(granularity: Results) -> None:
    draw = random.Random(1)
    trials = tuple(
        trial.model_copy(
            update={
                "block": trial.block + 100 * turn,
                "seed": draw.getrandbits(52),
                "metrics": {name: value * draw.uniform(0.5, 2) for name, value in trial.metrics.items()},
            }
        )
        for turn in range(-(-1_000 // len(granularity.trials)))
        for trial in granularity.trials
    )
    text = render_html(results_report(granularity.model_copy(update={"trials": trials})))
    assert len(text.encode()) < 1_500_000
    assert len(re.findall("<tr>", text.partition('id="trials"')[2])) > 1_000


def test_only_our_scripts_may_run(page: Page) -> None:
    [policy] = [a["content"] or "" for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in re.findall(r"script-src[^;]*", policy)[0]
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    data = {"results-json", "trials-csv", "figures", "plotly"}
    running = [text.encode() for name, text in page.scripts.items() if name not in data]
    running.append(page.unpacked("plotly").encode())
    assert {base64.b64encode(hashlib.sha256(script).digest()).decode() for script in running} == allowed


def test_headings_are_in_order_and_tables_have_headers(page: Page) -> None:
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    assert all(a.get("scope") in {"col", "row", "rowgroup"} for tag, a in page.elements if tag == "th")
    canvases = [a for _, a in page.elements if "data-figure" in a]
    assert canvases
    assert all(a.get("role") == "img" and a.get("aria-label") for a in canvases)
    identifiers = [a["id"] for _, a in page.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))


def test_the_data_in_the_page_are_the_results(page: Page, granularity: Results) -> None:
    assert Results.model_validate_json(page.unpacked("results-json")) == granularity
    assert page.unpacked("trials-csv") == trials_csv(granularity)


def test_hostile_text_makes_no_elements(page: Page, hostile_page: Page, hostile: Results) -> None:
    assert not any(tag == "img" for tag, _ in hostile_page.elements)
    assert len(hostile_page.scripts) == len(page.scripts)
    assert hostile.title in hostile_page.text
    assert Results.model_validate_json(hostile_page.unpacked("results-json")) == hostile
    for name in ("results-json", "trials-csv", "figures"):
        assert re.fullmatch("[A-Za-z0-9+/=]+", hostile_page.scripts[name])


def test_hostile_text_is_no_template_and_hides_nothing(hostile_page: Page) -> None:
    assert "{{ 7 * 7 }} ${7*7} %{x}" in hostile_page.text
    assert "\\x1b[31m" in hostile_page.text
    assert "\\u202e" in hostile_page.text
    assert "\u202e" not in hostile_page.text


def test_hostile_text_is_no_markup_in_plots(hostile_page: Page) -> None:
    def texts(value: object) -> list[str]:
        if isinstance(value, str):
            return [value]
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [text for item in items for text in texts(item)]

    tags = {tag for text in texts(json.loads(hostile_page.unpacked("figures"))) for tag in re.findall(r"<[^>]*>", text)}
    assert tags == {"<b>", "</b>", "<br>"}


def test_results_without_verdicts_or_trials_still_make_a_report(granularity: Results) -> None:
    bare = granularity.model_copy(
        update={
            "verdicts": (),
            "trials": (),
            "blocks": 0,
            "explained": (),
            "environment": {},
            "reproduce": (),
            "notes": (),
            "configurations": tuple(
                c.model_copy(update={"metrics": {}, "not_supported": {}}) for c in granularity.configurations
            ),
        }
    )
    assert "No verdict yet" in Page(render_html(results_report(bare))).text


def test_the_inventory_is_a_page_of_its_own_that_is_folded(granularity: Results) -> None:
    hostile = "<img src=x> \x1b[31m \u202e"
    inventory = Inventory(cpu=Cpu(model=hostile, isolated="2-3"), mitigations={"mds": hostile})
    environment = {"this machine": {"kernel": "6.1"}, "inventory": inventory.model_dump(mode="json")}
    text = render_html(results_report(granularity.model_copy(update={"environment": environment})))
    page = Page(text)
    assert re.search(r"<dt>inventory</dt>\s*<dd><details[^>]*><summary>", text)
    assert "Isolated 2-3" in " ".join(page.text.split())
    assert not any(tag == "img" for tag, _ in page.elements)
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text


@pytest.mark.parametrize("document", [{"inventory": 99, "cpu": "?"}, "none", ["x"], {"cpu": {"cpus": "many"}}])
def test_an_inventory_that_is_not_understood_is_shown_as_it_is(granularity: Results, document: object) -> None:
    text = render_html(results_report(granularity.model_copy(update={"environment": {"inventory": document}})))
    assert "<dt>inventory</dt>" in text


def test_trials_without_a_single_figure_still_make_a_report(undecided: Results) -> None:
    failed = tuple(t.model_copy(update={"status": "failed", "metrics": {}}) for t in undecided.trials)
    verdicts = tuple(
        v.model_copy(update={"verdict": "undecided", "estimate": None, "low": None, "high": None})
        for v in undecided.verdicts
    )
    configurations = tuple(c.model_copy(update={"metrics": {}}) for c in undecided.configurations)
    update = {"trials": failed, "verdicts": verdicts, "configurations": configurations, "blocks": 0}
    assert "no clean trial" in render_html(results_report(undecided.model_copy(update=update)))


def test_a_page_of_the_same_contents_stays_and_every_other_is_replaced(granularity: Results, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    for others in ("", "<html>", '<meta name="contents" content="bad0">'):
        path.write_text(others, encoding="utf-8")
        write_report(results_report(granularity), path, of="abc1")
        assert Page(path.read_text(encoding="utf-8")).headings
    path.write_text(path.read_text(encoding="utf-8") + "<!-- kept -->", encoding="utf-8")
    write_report(results_report(granularity), path, of="abc1")
    assert path.read_text(encoding="utf-8").endswith("<!-- kept -->")
    write_report(results_report(granularity), path)
    assert not path.read_text(encoding="utf-8").endswith("<!-- kept -->")


def test_a_fifo_in_the_place_of_the_page_is_replaced_and_not_waited_for(granularity: Results, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    os.mkfifo(path)
    write_report(results_report(granularity), path, of="abc1")
    assert path.is_file()


def test_a_report_is_written_whole_or_not_at_all(
    granularity: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new" / "report.html"
    write_report(results_report(granularity), path)
    before = path.read_text(encoding="utf-8")
    assert Page(before).headings

    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_report(results_report(granularity.model_copy(update={"title": "other"})), path)
    assert path.read_text(encoding="utf-8") == before
    assert list(path.parent.iterdir()) == [path]
