"""The result of a bisection on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from ajuste.model.verdict import Verdict
from ajuste.report.terminal import print_report
from ajuste_kernels.bisection.session import BisectionResult, Step
from ajuste_kernels.commands.bisect import bisection_report
from ajuste_stats.bisection import Outcome


def step(candidate: str, outcome: Outcome, ratio: float | None, note: str = "") -> Step:
    if ratio is None:
        return Step(candidate=candidate, outcome=outcome, note=note)
    verdict = Verdict(
        metric="elapsed", unit="s", direction="lower", scale="ratio", verdict="worsens", estimate=ratio,
        low=ratio - 0.01, high=ratio + 0.01, level=0.99, blocks=5, reason="", configuration=candidate,
    )  # fmt: skip
    return Step(candidate=candidate, outcome=outcome, verdict=verdict, report=f"/reports/{candidate}.html")


def sheet(*culprits: str, steps: tuple[Step, ...]) -> str:
    result = BisectionResult(
        kind="versions", study="granularity", metric="elapsed", good="debian:5.10", bad="debian:7.3", among=4,
        steps=steps, culprits=culprits,
    )  # fmt: skip
    out = io.StringIO()
    print_report(bisection_report(result), Console(file=out, width=80, highlight=False))
    return out.getvalue()


STEPS = (
    step("debian:7.3", "there", 1.4),
    step("debian:6.12", "unusable", None, "debian:6.12 does not \x1b[2Jboot"),
    step("debian:6.1", "absent", 1.01),
)


def test_the_answer_and_every_step_with_its_verdict_are_shown() -> None:
    text = sheet("debian:6.12", steps=STEPS)
    assert " ".join(text.split()).startswith(
        "The difference first appears in debian:6.12 (of 4 versions; not yet in debian:5.10)."
    )
    (row,) = [line for line in text.splitlines() if "debian:6.1  " in line and "%" in line]
    assert row.split() == ["debian:6.1", "2", "+1.0", "%", "0.0", "…", "+2.0", "%", "5", "not", "there"]
    assert "/reports/debian:7.3.html" in text


def test_the_names_of_options_are_not_broken() -> None:
    names = "SCHED_STACK_END_CHECK, SHUFFLE_PAGE_ALLOCATOR and 4 more"
    text = sheet(names, steps=(*STEPS, step(names, "impossible", None, "no such thing")))
    lines = [line.strip() for line in text.splitlines()]
    assert names in lines
    assert "cannot be built" in text
    assert max(len(line) for line in text.splitlines() if "/reports/" not in line) <= 80


def test_all_suspects_are_named_where_there_are_several() -> None:
    text = " ".join(sheet("debian:6.12", "debian:7.3", steps=STEPS).split())
    assert "one of debian:6.12, debian:7.3; the steps between them were undecided" in text


def test_why_a_step_could_not_be_measured_is_said_and_harmless() -> None:
    text = sheet("debian:6.12", steps=STEPS)
    assert "not measured" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_bisection_of_schedulers_ends_with_a_test_of_the_fix() -> None:
    ends = Step(candidate="git:x@main", kernel="scx_mine_1", outcome="there", run="20261128-1", note="6 of 6 failed")
    text = sheet("1a2b3c4d5e6f forget a task", steps=(ends,))
    assert "ajuste reproduce 20261128-1 --fixed -o granularity-test.toml" in " ".join(text.split())
    assert "ajuste reproduce" not in sheet("debian:6.12", steps=STEPS)
