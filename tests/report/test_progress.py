"""The display while a study runs."""

from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from ajuste.model.metric import Metric
from ajuste.model.verdict import Verdict
from ajuste.report.progress import Progress, blocks_needed

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def verdict(word: str = "undecided", more: int | None = None, deciding: bool = True, name: str = "b") -> Verdict:
    return Verdict(
        configuration=name,
        metric="elapsed",
        unit="s",
        direction="lower",
        scale="ratio",
        verdict=word,  # type: ignore[arg-type]
        estimate=0.9,
        low=0.8,
        high=1.02,
        level=0.95,
        blocks=3,
        more_blocks=more,
        deciding=deciding,
        reason="",
    )


def shown(progress: Progress, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(progress.renderable())
    return out.getvalue()


@pytest.mark.parametrize(
    ("done", "verdicts", "needed"),
    [
        (0, [], 30),
        (3, [verdict("improves")], 5),
        (8, [verdict("improves")], 8),
        (6, [verdict(more=4), verdict(more=9)], 15),
        (6, [verdict(more=4), verdict(more=None)], 30),
        (6, [verdict(more=500)], 30),
        (6, [verdict(more=2), verdict(more=20, deciding=False)], 8),
        (30, [verdict(more=2)], 30),
    ],
)
def test_the_slowest_deciding_verdict_sets_the_end(done: int, verdicts: list[Verdict], needed: int) -> None:
    assert blocks_needed(done, 5, 30, verdicts) == needed


def test_the_time_left_comes_from_the_mean_time_of_a_block() -> None:
    clock = Clock()
    progress = Progress(min_blocks=5, max_blocks=30, metric=ELAPSED, console=Console(file=io.StringIO()), clock=clock)
    assert progress.seconds_left() is None
    clock.now += 100  # booting does not count
    for block in range(2):
        progress.trial_started("a", block)
        clock.now += 10
        progress.trial_done("a", block, "ok")
        progress.block_done(block, [verdict(more=4)])
    assert progress.seconds_left() == 40
    clock.now += 15
    assert progress.seconds_left() == 25
    clock.now += 100
    assert progress.seconds_left() == 0


def test_the_time_left_is_never_more_than_the_budget() -> None:
    clock = Clock()
    progress = Progress(min_blocks=5, max_blocks=30, max_seconds=60, console=Console(file=io.StringIO()), clock=clock)
    progress.trial_started("a", 0)
    clock.now += 10
    progress.block_done(0, [verdict(more=None)])
    assert progress.seconds_left() == 50


def test_it_says_what_runs_what_is_done_and_what_is_known() -> None:
    progress = Progress(min_blocks=5, max_blocks=30, metric=ELAPSED, console=Console(file=io.StringIO()))
    progress.say("booting debian:5.10")
    assert "booting debian:5.10" in shown(progress)
    progress.trial_started("nice=4", 7)
    progress.trial_done("nice=0", 7, "failed")
    progress.block_done(6, [verdict(name="nice=4")])
    text = shown(progress)
    assert "Running nice=4 (block 7)" in text
    assert "1 block done of at most 30 · 1 trial failed" in text
    assert "nice=4  −10.0 %  −20.0 … +2.0 %  undecided" in text
    progress.trial_done("nice=4", 7, "ok")
    assert "nice=4 (block 7)" not in shown(progress)


def test_blocks_kept_by_an_earlier_run_count_but_do_not_make_the_rest_seem_quicker() -> None:
    clock = Clock()
    progress = Progress(min_blocks=5, max_blocks=30, console=Console(file=io.StringIO()), clock=clock)
    for block in range(4):
        progress.block_done(block, [verdict(more=None)])
    assert progress.seconds_left() is None
    progress.trial_started("a", 4)
    clock.now += 10
    progress.block_done(4, [verdict(more=3)])
    assert "5 blocks done of at most 30" in shown(progress)
    assert progress.seconds_left() == 30


@pytest.mark.parametrize(("terminal", "quiet"), [(False, False), (True, True)])
def test_it_is_silent_off_a_terminal_and_when_asked(terminal: bool, quiet: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal)
    with Progress(min_blocks=1, max_blocks=2, quiet=quiet, console=console) as progress:
        progress.say("booting")
        progress.trial_started("a", 0)
    assert out.getvalue() == ""


def test_on_a_terminal_it_shows_and_removes_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    with Progress(min_blocks=1, max_blocks=2, console=console) as progress:
        progress.say("booting \x1b[2J")
    text = out.getvalue()
    assert "booting \\x1b[2J" in text
    assert "\x1b[2K" in text


def test_threads_do_not_lose_each_others_trials() -> None:
    progress = Progress(min_blocks=1, max_blocks=9, console=Console(file=io.StringIO()))

    def work(name: str) -> None:
        for block in range(200):
            progress.trial_started(name, block)
            progress.renderable()
            progress.trial_done(name, block, "flagged")

    threads = [threading.Thread(target=work, args=(f"c{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = shown(progress)
    assert "800 trials flagged" in text
    assert "Running" not in text
