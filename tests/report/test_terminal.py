"""The results in a terminal and in a log."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from ajuste.model.results import Results, Tally
from ajuste.report.document import Column, Notes, Report, Row, Section, Table
from ajuste.report.results import results_report
from ajuste.report.terminal import ONE_SCREEN, print_report


def printed(
    results: Results, width: int = 80, *, terminal: bool = False, verbose: bool = True, report: Path | None = None
) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system="standard" if terminal else None)
    print_report(results_report(results), console, verbose=verbose, path=report)
    return out.getvalue()


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [40, 60, 80, 132])
@pytest.mark.parametrize("name", ["granularity", "grid", "undecided", "hostile"])
def test_nothing_is_wider_than_the_terminal_or_cut_off(name: str, width: int, request: pytest.FixtureRequest) -> None:
    results = request.getfixturevalue(name)
    text = printed(results, width)
    to_be_copied = ("apply", "again")
    assert max(cell_len(line) for line in text.splitlines() if not line.startswith(to_be_copied)) <= width
    squeezed = re.sub(r"\s", "", text)
    for whole in (results.digest, results.answer.replace("\x1b", "\\x1b"), *(f.name for f in results.factors)):
        assert re.sub(r"\s", "", whole) in squeezed


def test_a_log_gets_plain_text(granularity: Results) -> None:
    text = printed(granularity)
    assert "\x1b" not in text
    assert not re.search(r"[\u2500-\u257f]", text)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_terminal_gets_colours_for_the_verdicts(granularity: Results) -> None:
    assert re.search(r"\x1b\[1;34mdiffers", printed(granularity, terminal=True))


def test_the_first_lines_are_the_answer_and_one_line_for_each_metric(granularity: Results) -> None:
    brief = printed(granularity, 400, verbose=False)
    assert len(brief.splitlines()) < 20
    assert len(printed(granularity, 400).splitlines()) > 3 * len(brief.splitlines())
    headline, _, _, _, switches, elapsed, *_ = brief.splitlines()
    assert headline == results_report(granularity).headline
    assert switches.startswith("Involuntary context switches: 134.6 at 750 µs; 67.9 at 7.5 ms (−66.8, differs); ")
    assert elapsed.startswith("Elapsed time: 2.515 s at 750 µs; ")
    assert granularity.answer not in brief


def test_details_are_shown_where_they_are_wanted(granularity: Results) -> None:
    brief, verbose = (one_line(printed(granularity, verbose=wanted)) for wanted in (False, True))
    for wanted in (granularity.answer, granularity.question, "What the settings do", "How it was measured"):
        assert wanted in verbose
        assert wanted not in brief


def test_values_are_the_means_of_the_clean_trials(undecided: Results) -> None:
    clean = [t for t in undecided.trials if t.status == "ok" and not t.warm_up]
    text = one_line(printed(undecided, 132))
    assert "Elapsed time (ms)" in text
    for configuration in undecided.configurations:
        values = np.array([t.metrics["elapsed"] for t in clean if t.configuration == configuration.name])
        assert f"{1000 * values.mean():.0f} ± {100 * values.std(ddof=1) / values.mean():.2g} %" in text


def test_a_counter_that_the_machine_lacks_is_never_zero(granularity: Results) -> None:
    text = printed(granularity, 132)
    assert not re.search(r"^\s*cycles\b", text, re.MULTILINE), "no row, and so no figure"
    assert "This guest has no hardware counters. Use --metric instructions to count them" in one_line(text)
    on_hardware = one_line(printed(granularity.model_copy(update={"clock": "wall"}), 132))
    assert re.search(r"Not supported: cycles\b.*No such file or directory", on_hardware)


def test_every_deciding_verdict_is_said_with_estimate_and_interval(grid: Results) -> None:
    text = one_line(printed(grid, 200))
    deciding = [verdict for verdict in grid.verdicts if verdict.deciding]
    assert len(deciding) == 29
    for verdict in deciding:
        ratios = [ratio for ratio in (verdict.estimate, verdict.low) if ratio is not None]
        percents = [f"{100 * (ratio - 1):+.1f}".replace("-", "−") for ratio in ratios]
        assert f"{percents[0]} % {percents[1]} … " in text
    assert text.count(" improves") >= sum(verdict.verdict == "improves" for verdict in deciding)


def test_the_factor_is_named_once_and_its_levels_stand_in_rows(grid: Results) -> None:
    text = printed(grid, 132, verbose=False)
    table = text.partition("\nVerdicts\n")[2].partition("\n\nOver ")[0]
    assert table.count("sched_min_granularity_ns") == 1
    assert table.count("sched_wakeup_granularity_ns") == 1
    assert re.search(r"^\s+16 ms, 8 ms\s", table, re.MULTILINE)


def test_trials_that_were_left_out_are_counted_with_their_reasons(undecided: Results) -> None:
    text = one_line(printed(undecided))
    assert "· 18 trials and 3 warm-ups ·" in text
    assert "3 of 18 trials left out, 2 of them failed: " in text
    assert "another process used 31 % of the CPU" in text


def test_disturbed_trials_are_counted_once_with_what_disturbed_them(undecided: Results) -> None:
    counted = Tally(
        trials=175,
        clean=164,
        warm_up=0,
        flagged=11,
        failed=0,
        reasons={"the hypervisor took 0.52 CPUs away, usually 0.01": 6, "the hypervisor took 0.09 CPUs away": 5},
    )
    text = one_line(printed(undecided.model_copy(update={"tally": counted, "trials": ()}), verbose=False))
    assert "Note: 11 of 175 trials repeated: stolen CPU time." in text
    paused = [f"Ajuste was stopped for up to {seconds} s during the trial" for seconds in (1.72, 1.62)]
    counted = counted.model_copy(update={"reasons": dict.fromkeys(paused, 1)})
    text = one_line(printed(undecided.model_copy(update={"tally": counted, "trials": ()}), verbose=False))
    assert "trials repeated: Ajuste was stopped." in text


def test_a_terminal_shows_two_notes_and_counts_the_others(undecided: Results) -> None:
    noted = undecided.model_copy(
        update={
            "notes": ("First.", "Second.", "Third."),
            "tally": Tally(trials=0, clean=0, warm_up=0, flagged=0, failed=0),
        }
    )
    brief, whole = (printed(noted, verbose=verbose) for verbose in (False, True))
    assert brief.count("Note: ") == 2
    assert re.search(r"With --verbose: .*more notes", brief)
    assert all(f"Note: {text}" in whole for text in noted.notes)


@pytest.mark.parametrize("name", ["granularity", "grid", "undecided", "crowded"])
def test_a_long_answer_fits_one_screen_and_names_what_it_leaves_out(name: str, request: pytest.FixtureRequest) -> None:
    report = results_report(request.getfixturevalue(name))
    out, whole = io.StringIO(), io.StringIO()
    print_report(report, Console(file=out, width=100), path=Path("report.html"), most_lines=ONE_SCREEN)
    print_report(report, Console(file=whole, width=100))
    text = out.getvalue()
    assert len(text.splitlines()) <= ONE_SCREEN
    assert report.headline in one_line(text)
    if len(whole.getvalue().splitlines()) > ONE_SCREEN:
        assert "With --verbose: " in text
        assert re.search(r"\d+ more rows of verdicts|Ranking", text.split("With --verbose: ")[1])
    else:
        assert text == f"{whole.getvalue()}report report.html\n"


def test_digest_and_clock_are_details(granularity: Results) -> None:
    brief, whole = (one_line(printed(granularity, verbose=verbose)) for verbose in (False, True))
    for detail in ("Digest ", "not how fast any hardware is"):
        assert detail in whole
        assert detail not in brief


def test_a_level_that_the_kernel_changed_is_said(granularity: Results) -> None:
    last = granularity.configurations[-1]
    changed = last.model_copy(update={"read_back": {name: "1000000000" for name in last.levels}})
    results = granularity.model_copy(update={"configurations": (*granularity.configurations[:-1], changed)})
    assert "750000000 was written, 1000000000 was read back" in one_line(printed(results))


def test_an_emulated_cpu_is_said_and_said_once(granularity: Results, undecided: Results) -> None:
    assert "not how fast any hardware is" in one_line(printed(granularity))
    assert "not the speed of any hardware" in one_line(printed(undecided))
    note = "Measured under a virtual clock on an emulated CPU."
    noted = one_line(printed(granularity.model_copy(update={"notes": (note,)})))
    assert note in noted
    assert "not how fast any hardware is" not in noted


def test_escape_sequences_of_others_do_nothing(hostile: Results) -> None:
    text = printed(hostile)
    assert "\x1b" not in text
    assert "\\x1b[31m" in text


def test_an_ascii_terminal_gets_ascii(granularity: Results) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    print_report(results_report(granularity), Console(file=file, width=80), verbose=True)
    file.flush()
    assert "+- " in raw.getvalue().decode("ascii")


def test_results_without_any_trial_say_so(granularity: Results) -> None:
    empty = granularity.model_copy(
        update={
            "verdicts": (),
            "trials": (),
            "blocks": 0,
            "configurations": tuple(
                c.model_copy(update={"metrics": {}, "not_supported": {}}) for c in granularity.configurations
            ),
        }
    )
    assert "No verdict yet" in printed(empty)


def test_the_path_of_the_report_can_be_copied(granularity: Results) -> None:
    path = Path("/home/someone") / ("long-" * 30) / "report.html"
    assert f"report {path}\n" in printed(granularity, 60, report=path)


def test_rows_stay_rows_on_80_columns(grid: Results) -> None:
    text = printed(grid, 80, verbose=False)
    rows = [line for line in text.splitlines() if re.match(r"\s+\d+ ms, \d+ ms\s", line)]
    assert len(rows) == len(grid.configurations)


def test_no_line_breaks_between_a_number_and_its_unit() -> None:
    text = "It cuts elapsed time from 8.1 s to 7.1 ms (−12 %), with 119 MiB and ± 3 % of 2 min."
    table = Table.of((Column("of"), Column("with a long title")), (Row((text, "2 s")),))
    for width in range(25, 45):
        out = io.StringIO()
        report = Report("t", headline=text, sections=(Section("Notes", (Notes((text,)), table)),))
        print_report(report, Console(file=out, width=width), verbose=True)
        lines = [line.strip() for line in out.getvalue().splitlines()]
        assert not [line for line in lines if line.startswith(("s ", "ms", "%", "MiB", "min", "3 %"))], width
        assert "119 MiB" in out.getvalue()
