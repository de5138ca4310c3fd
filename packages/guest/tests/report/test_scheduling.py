"""Scheduling of both trials, in the report and in the terminal."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console
from tests.report.plotted import checked

from ajuste.model.explanation import EXPLANATIONS, Recorded
from ajuste.model.results import Results
from ajuste.model.scheduling import Behaviour, Preemption, Recording, Share, Spread, Switches
from ajuste.report.document import Paragraph, Picture
from ajuste.report.format import result_labels
from ajuste.report.html import render_html
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report
from ajuste_guest.analysis.explanation import explanation
from ajuste_guest.report.scheduling import explanation_report, scheduling_sections

EVIL = "</b>\x1b[31m<i>"
"""A name that a program gave itself; the kernel keeps 15 bytes."""


def spread(histogram: dict[int, int]) -> Spread:
    lengths = [least for least, count in histogram.items() for _ in range(count)]
    return Spread(
        count=len(lengths),
        total_ns=sum(lengths),
        p50_ns=lengths[len(lengths) // 2],
        p95_ns=lengths[-1],
        p99_ns=lengths[-1],
        max_ns=lengths[-1],
        histogram=tuple(histogram.items()),
    )


def recorded(name: str, preempted: int) -> Recorded:
    lengths = spread({1024: 30, 1280: 10, 8192: preempted})
    workload = Behaviour(
        tasks=2,
        switches=Switches(by_wakeup=preempted, by_turn=3, slept=40, blocked=0, stopped=0, exited=2),
        wakeups=40,
        migrations=0,
        run_ns=600,
        wait_ns=10,
        latency=lengths,
        runs=lengths,
    )
    recording = Recording(
        span_ns=1000,
        covered_ns=1000,
        events=100,
        lost=0,
        buffer_bytes=1 << 16,
        cpus=1,
        idle_ns=100,
        workload=workload,
        background=workload,
        queue=((1, 400), (3, 600)),
        shares=(Share(command=EVIL, part="workload", run_ns=600, switches=9),),
        preemptions=(Preemption(preempted=EVIL, by="spin", part="background", count=preempted),),
    )
    return Recorded(configuration=name, block=0, seed=7, kernel="5.10", wall_ns=1000, recording=recording)


@pytest.fixture(scope="module")
def explained(granularity: Results) -> Results:
    baseline, changed, *_ = (configuration.name for configuration in granularity.configurations)
    recorded_explanation = explanation(recorded(changed, 4), recorded(baseline, 400))
    return granularity.model_copy(update={"explanations": (recorded_explanation,)})


class Texts(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_says_why_and_draws_it(explained: Results) -> None:
    page = render_html(results_report(explained))
    section = page[page.index('id="scheduling-0"') : page.index("</section>", page.index('id="scheduling-0"'))]
    texts = Texts(section)
    assert "leaves the CPU 9.1 times less often (49 instead of 445 switches" in " ".join(texts.text.split())
    assert {f"scheduling-0-{name}" for name in ("causes", "latency", "runs", "queue")} == set(
        re.findall(r'data-figure="([\w-]+)"', section)
    )
    assert r"</b>\x1b[31m<i>, of the workload" in texts.text
    assert not {"b", "i"} & texts.tags


def test_a_histogram_is_an_outline_with_gaps(explained: Results) -> None:
    (section,) = scheduling_sections(explained, result_labels(explained))
    pictures = [block for block in section.blocks if isinstance(block, Picture)]
    latency = next(picture for picture in pictures if picture.plot.name.endswith("latency"))
    trace = checked(latency.plot).to_plotly_json()["data"][1]
    corners = dict.fromkeys(zip(trace["x"], (round(44 * share / 100) for share in trace["y"]), strict=True))
    low = [(1024, 0), (1024, 30), (1280, 30), (1280, 10), (1536, 10), (1536, 0)]
    assert list(corners) == [*low, (8192, 0), (8192, 4), (10240, 4), (10240, 0)]
    assert min(trace["y"]) > 0, "the axis is logarithmic"


def test_the_terminal_shows_the_figures_side_by_side(explained: Results) -> None:
    out = io.StringIO()
    print_report(
        explanation_report(explained, EXPLANATIONS.of(explained)[0], verbose=True), Console(file=out, width=100)
    )
    output = out.getvalue()
    assert "\x1b" not in output
    assert re.search(r"– preempted by a wake-up +400 +4\n", output)
    assert re.search(r"by spin, of the background load +400 times +4 times", output)


def test_without_details_it_is_a_screenful_of_what_changed(explained: Results) -> None:
    out = io.StringIO()
    print_report(explanation_report(explained, EXPLANATIONS.of(explained)[0]), Console(file=out, width=80))
    output = out.getvalue()
    assert len(output.splitlines()) <= 24
    assert re.search(r"– preempted by a wake-up +400 +4\n", output)
    assert "--verbose" in output
    assert "Preemptions by task" not in output


def test_sentences_name_settings_with_units(granularity: Results) -> None:
    baseline, changed, *_ = (configuration.name for configuration in granularity.configurations)
    recorded_explanation = explanation(recorded(changed, 4), recorded(baseline, 400), {changed: 1000, baseline: 1000})
    (section,) = scheduling_sections(
        granularity.model_copy(update={"explanations": (recorded_explanation,)}), result_labels(granularity)
    )
    paragraphs = [block.text for block in section.blocks if isinstance(block, Paragraph)]
    assert explanation_report(granularity, recorded_explanation).headline == paragraphs[0]
    assert paragraphs[0].startswith("Under sched_min_granularity_ns = 7.5 ms, ")
    (timed,) = [text for text in paragraphs if text.startswith("Time of the workload while recorded")]
    assert "(sched_min_granularity_ns = 750 µs) and " in timed
    assert timed.endswith("(sched_min_granularity_ns = 7.5 ms).")


def test_what_could_not_be_recorded_is_said_and_nothing_is_drawn(granularity: Results) -> None:
    baseline, changed, *_ = (configuration.name for configuration in granularity.configurations)
    refused = Recorded(configuration=changed, block=0, seed=7, problem="Permission denied")
    results = granularity.model_copy(update={"explanations": (explanation(refused, recorded(baseline, 4)),)})
    (section,) = scheduling_sections(results, result_labels(results))
    assert all(isinstance(block, Paragraph) for block in section.blocks)
    assert "Permission denied" in Texts(render_html(results_report(results))).text
