"""The display while a study runs."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste.model.wording import Ongoing
from ajuste.report.console import BEAT_SECONDS, Console
from ajuste.report.progress import BuildProgress, Progress
from played import study_for_5_10
from shell import SMALL
from verdicts import verdict

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def printed(progress: Progress, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(progress.renderable())
    return out.getvalue()


def measure(
    progress: Progress, clock: Clock, block: int, seconds: dict[str, float], verdicts: list[Verdict] | None
) -> None:
    for name, each in seconds.items():
        progress.trial_started(name, block)
        clock.now += each
        progress.trial_done(name, block, "ok", each)
    progress.block_done(block, verdicts)


def test_the_time_left_comes_from_the_mean_times_of_the_configurations_that_go_on() -> None:
    clock, out = Clock(), Console(file=io.StringIO())
    progress = Progress(min_blocks=2, max_blocks=30, metric=ELAPSED, allocation="undecided", console=out, clock=clock)
    assert progress.seconds_left() is None
    clock.now += 100  # booting does not count
    verdicts = [verdict("slow", "improves"), verdict("quick", more_blocks=4)]
    for block in range(2):
        measure(progress, clock, block, {"baseline": 2, "quick": 1, "slow": 60}, verdicts)
    assert progress.seconds_left() == pytest.approx(4 * (2 + 1))
    assert "about 12 s left" in printed(progress)
    clock.now += 5
    assert progress.seconds_left() == pytest.approx(7)
    clock.now += 100
    assert progress.seconds_left() == 0


def test_trials_that_run_at_once_leave_less_to_wait_for() -> None:
    clock = Clock()
    progress = Progress(min_blocks=2, max_blocks=30, console=Console(file=io.StringIO()), clock=clock)
    progress.trial_started("a", 0)
    progress.trial_started("b", 0)
    clock.now += 10
    for name in ("a", "b"):
        progress.trial_done(name, 0, "ok", 10)
    progress.block_done(0, [verdict("b", more_blocks=3)])
    assert progress.seconds_left() == pytest.approx(30)


@pytest.mark.parametrize(("more", "expected"), [(None, "at most 50 s left"), (500, "at most 50 s left")])
def test_what_nobody_knows_or_the_budget_ends_is_said_to_be_at_most(more: int | None, expected: str) -> None:
    clock, out = Clock(), Console(file=io.StringIO())
    progress = Progress(min_blocks=5, max_blocks=30, max_seconds=60, console=out, clock=clock)
    measure(progress, clock, 0, {"a": 10}, [verdict("b", more_blocks=more)])
    assert progress.seconds_left() == 50
    assert expected in printed(progress)


def test_it_says_what_runs_what_is_done_and_what_is_known() -> None:
    progress = Progress(min_blocks=5, max_blocks=30, metric=ELAPSED, console=Console(file=io.StringIO()))
    progress.say("booting debian:5.10")
    assert "booting debian:5.10" in printed(progress)
    progress.trial_started("nice=4", 7)
    progress.trial_done("nice=0", 7, "failed", 1)
    progress.block_done(6, [verdict("nice=4", estimate=0.9, low=0.8, high=1.02)])
    text = printed(progress)
    assert "Running nice=4 (block 8)" in text
    assert "1 block done of at most 30 · 1 trial failed" in text
    assert "nice=4  −10.0 %  −20.0 … +2.0 %  undecided" in text
    progress.trial_done("nice=4", 7, "ok", 1)
    assert "nice=4 (block 8)" not in printed(progress)


def test_a_configuration_has_units_and_a_warm_up_is_called_so(tmp_path: Path) -> None:
    study = study_for_5_10(SMALL.replace("[budget]", "[design]\nwarm_up = 1\n[budget]"), tmp_path)
    progress = Progress(min_blocks=5, max_blocks=30, metric=ELAPSED, console=Console(file=io.StringIO()))
    progress.study_begins(study)
    progress.trial_started("sched_min_granularity_ns=75000000", 0)
    assert "Running sched_min_granularity_ns = 75 ms (warm-up)" in printed(progress)
    progress.trial_started("sched_min_granularity_ns=750000", 1)
    assert "sched_min_granularity_ns = 750 µs (block 1)" in " ".join(printed(progress).split())


def test_the_time_left_goes_on_between_looks() -> None:
    clock = Clock()
    progress = Progress(min_blocks=2, max_blocks=30, console=Console(file=io.StringIO()), clock=clock)
    measure(progress, clock, 0, {"a": 10}, [verdict("b", more_blocks=3)])
    measure(progress, clock, 1, {"a": 10}, None)
    assert "2 blocks done" in printed(progress)
    assert progress.seconds_left() == pytest.approx(20)


def test_in_a_narrow_terminal_lines_break_between_facts_and_no_number_is_cut() -> None:
    clock = Clock()
    progress = Progress(min_blocks=5, max_blocks=30, metric=ELAPSED, console=Console(file=io.StringIO()), clock=clock)
    name = "sched_granularity_ns=750000"
    findings = [verdict(name, estimate=0.9, low=0.8, high=1.02, more_blocks=4)]
    measure(progress, clock, 0, {name: 10}, findings)
    progress.trial_started(name, 1)
    assert [line.rstrip() for line in printed(progress, width=38).splitlines()] == [
        f"Running {name}",
        "(block 2)",
        "1 block done of at most 30",
        "about 40 s left",
        "Elapsed time so far",
        name,
        "  −10.0 %  −20.0 … +2.0 %  undecided",
    ]


def test_what_goes_on_outside_trials_has_its_own_time_and_no_time_of_blocks() -> None:
    clock = Clock()
    progress = Progress(min_blocks=5, max_blocks=30, metric=ELAPSED, console=Console(file=io.StringIO()), clock=clock)
    progress.say("fetching package lists")
    clock.now += 7
    assert printed(progress).split("\n")[:-1] == ["fetching package lists · 7 s"]
    progress.say(Ongoing("fetching package lists: 1.0 of 2.0 MB · about 7 s left"))
    assert "· 7 s" not in printed(progress)
    measure(progress, clock, 0, {"a": 10}, [verdict("b", more_blocks=4)])
    assert "40 s left" in printed(progress)
    progress.say("counting what a costs")
    assert "left" not in printed(progress)


def test_blocks_kept_by_an_earlier_run_count_but_do_not_make_the_rest_seem_quicker() -> None:
    clock = Clock()
    progress = Progress(min_blocks=5, max_blocks=30, console=Console(file=io.StringIO()), clock=clock)
    for block in range(4):
        progress.block_done(block, [verdict("b")])
    assert progress.seconds_left() is None
    measure(progress, clock, 4, {"a": 10}, [verdict("b", more_blocks=3)])
    assert "5 blocks done of at most 30" in printed(progress)
    assert progress.seconds_left() == 30


@pytest.mark.parametrize(("terminal", "quiet"), [(False, False), (True, True)])
def test_it_is_silent_off_a_terminal_and_when_asked(terminal: bool, quiet: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal)
    with Progress(min_blocks=1, max_blocks=2, quiet=quiet, console=console) as progress:
        progress.say("booting")
        progress.trial_started("a", 0)
    assert out.getvalue() == ""


def test_off_a_terminal_it_says_in_a_plain_line_now_and_then_what_runs() -> None:
    out = io.StringIO()
    assert 0 < BEAT_SECONDS <= 30
    progress = Progress(min_blocks=1, max_blocks=2, console=Console(file=out, width=20))
    progress.beat_s = 0.01
    progress.trial_started("nice=0\x1b[2J", 0)
    with progress:
        until(lambda: out.getvalue().count("\n") >= 2)
    first, second = out.getvalue().splitlines()[:2]
    assert first == second == "Running nice=0\\x1b[2J (block 1) · 0 blocks done of at most 2"


def test_so_do_builds() -> None:
    out = io.StringIO()
    progress = BuildProgress(console=Console(file=out))
    progress.beat_s = 0.01
    progress.say("booting debian:5.10")
    with progress:
        until(lambda: "\n" in out.getvalue())
    assert out.getvalue().startswith("booting debian:5.10")


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)


def test_on_a_terminal_it_shows_and_removes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    with Progress(min_blocks=1, max_blocks=2, console=console) as progress:
        progress.say("booting \x1b[2J")
        until(lambda: "booting" in out.getvalue())
    text = out.getvalue()
    assert "booting \\x1b[2J" in text
    assert "\x1b[2K" in text


def test_threads_do_not_lose_each_others_trials() -> None:
    progress = Progress(min_blocks=1, max_blocks=9, console=Console(file=io.StringIO()))

    def work(name: str) -> None:
        for block in range(200):
            progress.trial_started(name, block)
            progress.renderable()
            progress.trial_done(name, block, "flagged", 1)

    threads = [threading.Thread(target=work, args=(f"c{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = printed(progress)
    assert "800 trials flagged" in text
    assert "Running" not in text


@pytest.mark.parametrize(("quiet", "expected"), [(False, "x cannot matter\\x1b\n"), (True, "")])
def test_a_warning_is_a_line_that_stays_unless_nothing_is_to_be_said(quiet: bool, expected: str) -> None:
    out = io.StringIO()
    with Progress(min_blocks=2, max_blocks=3, quiet=quiet, console=Console(file=out, width=30)) as progress:
        progress.warn("x cannot matter\x1b")
    assert out.getvalue() == expected
