from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste.outputs.base import ParseError
from ajuste.outputs.pattern import Pattern, check_pattern, search

OUT = "rate: 1.5\nnoise\nrate: 2.5 MB/s\n"


def test_the_last_line_that_matches_counts_and_streams_are_apart() -> None:
    patterns = [
        Pattern(metric="rate", pattern=r"rate: ([0-9.]+)"),
        Pattern(metric="errors", pattern=r"^(\d+) errors$", stream="stderr"),
    ]
    assert search(patterns, {"stdout": OUT, "stderr": "3 errors\n"}) == {"rate": 2.5, "errors": 3.0}


def test_an_empty_match_does_not_count() -> None:
    pattern = [Pattern(metric="m", pattern="(.*)")]
    assert search(pattern, {"stdout": "11\n12\n\n"}) == {"m": 12.0}
    with pytest.raises(ParseError, match="no line of stdout matches"):
        search(pattern, {"stdout": "\n"})


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"nothing (\d)", "no line of stdout matches"),
        (r"rate: (.*)", '"2.5 MB/s" is not a number for "rate"'),
        (r"noise(x)?", "no line of stdout matches"),
    ],
)
def test_no_match_and_no_number_are_said(pattern: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        search([Pattern(metric="rate", pattern=pattern)], {"stdout": OUT})


@pytest.mark.parametrize(
    ("pattern", "unit", "expected"),
    [
        (r"latency ([^ ]+)", "ms", None),
        (r"latency ([^ ]+)", "us", 900.0),
        (r"latency (.*)", "ms", 0.9),
        (r"latency ([^ ]+)", "1", 900.0),
        (r"rate ([0-9]+)", "MB/s", 5.0),
        (r"rate ([0-9]+)", "kB/s", None),
    ],
)
def test_a_number_in_another_unit_than_the_metrics_is_refused(pattern: str, unit: str, expected: float | None) -> None:
    """900 us and 1.1 ms would be 900 and 1.1."""
    patterns = [Pattern(metric="m", pattern=pattern, unit=unit)]
    text = {"stdout": "latency 900 us\nrate 5 MB/s\n"}
    if expected is not None:
        assert search(patterns, text) == {"m": expected}
        return
    with pytest.raises(ParseError, match=f"and the metric in {unit}"):
        search(patterns, text)


def test_a_pattern_that_backtracks_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ajuste.outputs.pattern.SECONDS", 1)
    with pytest.raises(ParseError, match="backtracks too much"):
        search([Pattern(metric="rate", pattern=r"^((a+)+)b$")], {"stdout": "a" * 4000})


def test_text_of_any_kind_passes_through() -> None:
    text = 'é\u2028"\\ \x00 ${x} = 7\n'
    assert search([Pattern(metric="m", pattern=r'"\\ \x00 \${x} = (\d)')], {"stdout": text}) == {"m": 7.0}


@pytest.mark.parametrize("pattern", ["(", "a{999999999999}(b)", "no group", "(?:x)"])
def test_patterns_that_cannot_work_are_refused(pattern: str) -> None:
    with pytest.raises(RequestError):
        check_pattern(pattern)


# The process that searches.


RATE = [Pattern(metric="rate", pattern=r"rate: ([0-9.]+)")]
HOSTILE = [Pattern(metric="rate", pattern=r"^((a+)+)b$")]
KILLED = """
import os, signal
from ajuste.outputs.pattern import Pattern, search
search([Pattern(metric="m", pattern="(7)")], {"stdout": "7"})
print(open("/proc/self/task/%d/children" % os.getpid()).read(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def searchers() -> set[int]:
    """The processes of this one that search."""
    children = [
        int(word)
        for children_file in Path("/proc/self/task").glob("*/children")
        for word in children_file.read_text().split()
    ]
    return {pid for pid in children if b"search_lines.py" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def processor_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_one_process_serves_all_searches() -> None:
    seen = set()
    for number in range(20):
        assert search(RATE, {"stdout": f"rate: {number}"}) == {"rate": number}
        seen |= searchers()
    assert len(seen) == 1


def test_after_a_pattern_without_end_or_a_lost_process_another_one_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    search(RATE, {"stdout": OUT})
    before = searchers()
    monkeypatch.setattr("ajuste.outputs.pattern.SECONDS", 1)
    with pytest.raises(ParseError, match="backtracks too much"):
        search(HOSTILE, {"stdout": "a" * 4000})
    assert searchers() == set()
    assert search(RATE, {"stdout": OUT}) == {"rate": 2.5}
    (after,) = searchers()
    assert after not in before
    os.kill(after, signal.SIGKILL)
    while Path(f"/proc/{after}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.001)
    assert search(RATE, {"stdout": OUT}) == {"rate": 2.5}
    assert searchers().isdisjoint({after})


def test_each_search_has_the_whole_limit_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ajuste.outputs.pattern.SECONDS", 0.5)
    search(RATE, {"stdout": OUT})
    (searcher,) = searchers()
    while processor_seconds(searcher) < 0.7:
        with pytest.raises(ParseError, match="no line of stdout matches"):
            search(HOSTILE, {"stdout": "a" * 17})  # some milliseconds
    assert searchers() == {searcher}


def test_what_a_pattern_breaks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ajuste.outputs.pattern.LONGEST_LINE", "no number")
    with pytest.raises(ParseError, match=r"(?s)the search for patterns failed: .*TypeError"):
        search(RATE, {"stdout": OUT})


def test_threads_get_their_own_answers() -> None:
    def read_rate(number: int) -> dict[str, float]:
        return search(RATE, {"stdout": f"rate: {number}\n" + "noise\n" * (number % 7)})

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read_rate, range(200))) == [{"rate": float(number)} for number in range(200)]
    assert len(searchers()) == 1


def test_a_fork_has_a_searcher_of_its_own() -> None:
    search(RATE, {"stdout": OUT})
    before = searchers()
    child = os.fork()
    if not child:
        right = search(RATE, {"stdout": "rate: 7"}) == {"rate": 7.0} and searchers().isdisjoint(before)
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert search(RATE, {"stdout": OUT}) == {"rate": 2.5}
    assert searchers() == before


def test_it_ends_with_its_parent() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (searcher,) = done.stdout.split()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{searcher}/cmdline").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{searcher}/cmdline").exists()
