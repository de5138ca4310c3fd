from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.error import RequestError
from ajuste.outputs.base import ParseError
from ajuste.outputs.programs import bundled, hackbench, parser, parsers

HACKBENCH = """\
Running in threaded mode with 10 groups using 40 file descriptors each (== 400 tasks)
Each sender will pass 100 messages of 100 bytes
Time: 0.123
"""

LINPACK = """\
LINPACK double precision, 200 x 200
    Reps Time(s) DGEFA   DGESL  OVERHEAD    KFLOPS
----------------------------------------------------
     256   0.71  88.73%   4.23%   7.04%   543200.125
    2048   5.59  89.09%   2.86%   8.05%   546888.889
     512   1.40  89.29%   2.86%   7.86%   545280.000
Residual 1.23456789e-13 normalised 6.543210
"""


JITTER = (
    "jitter sleeps=1000 interval_us=1000 min_ns=1890 p50_ns=2710 p90_ns=4120 p99_ns=9330 p999_ns=41200 max_ns=57313\n"
)


FRAMES = (
    "frames profile=video due=300 drawn=290 in_time=270 elapsed_ns=5000000000 min_ns=6670000 p50_ns=7000000 "
    "p90_ns=9000000 p99_ns=17500000 p999_ns=40000000 max_ns=40000000\n"
)


def test_frames_have_a_rate_a_share_that_was_missed_and_times_in_milliseconds() -> None:
    assert bundled.frames(FRAMES) == {
        "frames.rate": 58.0,
        "frames.missed": 10.0,
        "frames.p50": 7.0,
        "frames.p99": 17.5,
        "frames.p999": 40.0,
        "frames.max": 40.0,
    }


PAGES = "pages policy=interleave nodes=2 pages=8 local=6 remote=2 unknown=0 fill_ns=1500000 read_ns=250000 sum=3\n"
PATHS = (
    "paths protocol=mptcp paths=2 elapsed_ns=2000000000 received_bytes=2500000 stall_ns=12000000 path_bytes=300,100\n"
    "subflows token=0x1c2a fallback=no acked_bytes=290,90\n"
)


def test_pages_are_shares_and_times() -> None:
    parsed = bundled.pages(PAGES)
    assert parsed == {"pages.nodes": 2, "pages.local": 75.0, "pages.fill": 1.5, "pages.read": 0.25}
    unknown = PAGES.replace("nodes=2", "nodes=0").replace("local=6 remote=2 unknown=0", "local=0 remote=0 unknown=8")
    assert "pages.local" not in bundled.pages(unknown), "a kernel without nodes does not say where its pages are"


def test_paths_are_a_rate_a_silence_and_a_share() -> None:
    assert bundled.paths(PATHS) == {"paths.goodput": 10.0, "paths.stall": 12.0, "paths.second": 25.0}
    single = PATHS.splitlines()[0].replace("paths=2", "paths=1").replace("300,100", "300")
    assert bundled.paths(single)["paths.second"] == 0


@pytest.mark.parametrize(
    ("parse", "output"),
    [
        (bundled.pages, PAGES.replace("local=6", "local=5")),
        (bundled.pages, PAGES * 2),
        (bundled.pages, ""),
        (bundled.paths, PATHS.replace("300,100", "300")),
        (bundled.paths, PATHS.replace("elapsed_ns=2000000000", "elapsed_ns=0")),
        (bundled.paths, PATHS.replace("paths protocol", "pathss protocol")),
    ],
)
def test_figures_of_pages_and_paths_that_contradict_each_other_are_refused(
    parse: Callable[[str], dict[str, float]], output: str
) -> None:
    with pytest.raises(ParseError):
        parse(output)


def test_hackbench_prints_its_time() -> None:
    assert hackbench.parse(HACKBENCH) == {"hackbench.time": 0.123}


def test_linpacks_longest_row_counts_and_its_normalised_residual() -> None:
    assert bundled.parse_linpack(LINPACK) == {"linpack.kflops": 546888.889, "linpack.residual": 6.54321}


def test_linpack_may_have_counted_interrupts() -> None:
    assert bundled.parse_linpack(LINPACK + "Interrupts 52 on CPU 1\n")["linpack.interrupts"] == 52


def test_a_finished_matrix_product_is_accepted_and_has_no_figure() -> None:
    assert bundled.matrix("matrix size=200 repetitions=40 checksum=-1.5e3\n") == {}


def test_delays_of_sleeps_are_in_microseconds() -> None:
    assert bundled.jitter(JITTER) == {
        "jitter.min": 1.89,
        "jitter.p50": 2.71,
        "jitter.p90": 4.12,
        "jitter.p99": 9.33,
        "jitter.p999": 41.2,
        "jitter.max": 57.313,
    }


@pytest.mark.parametrize(
    ("parse", "output"),
    [
        (bundled.jitter, ""),
        (bundled.jitter, JITTER * 2),
        (bundled.jitter, JITTER.replace("p99_ns=9330", "p99_ns=-1")),
        (bundled.frames, ""),
        (bundled.frames, FRAMES * 2),
        (bundled.frames, FRAMES.replace("drawn=290", "drawn=301")),
        (bundled.frames, FRAMES.replace("due=300", "due=0").replace("=290", "=0").replace("=270", "=0")),
        (bundled.frames, FRAMES.replace("elapsed_ns=5000000000", "elapsed_ns=0")),
        (hackbench.parse, ""),
        (hackbench.parse, "Time: soon\n"),
        (hackbench.parse, "Time: nan\n"),
        (hackbench.parse, "Time: 1\nTime: 2\n"),
        (hackbench.parse, "Creating fdpair (error: Too many open files)\n"),
        (bundled.parse_linpack, ""),
        (bundled.parse_linpack, LINPACK.replace("Residual", "residue")),
        (bundled.parse_linpack, LINPACK + LINPACK),
        (bundled.parse_linpack, "\n".join(line for line in LINPACK.split("\n") if "." not in line or "Res" in line)),
        (bundled.parse_linpack, LINPACK.replace("546888.889", "5.4.6")),
        (bundled.matrix, ""),
        (bundled.matrix, "matrix size=2 repetitions=1 checksum=inf\n"),
    ],
)
def test_what_is_no_such_output_is_refused(parse: Callable[[str], dict[str, float]], output: str) -> None:
    with pytest.raises(ParseError):
        parse(output)


@given(
    st.text(),
    st.sampled_from([FRAMES, HACKBENCH, JITTER, LINPACK, ""]),
    st.integers(0, 500),
    st.sampled_from(sorted(parsers())),
)
def test_any_text_is_figures_or_a_parse_error(junk: str, output: str, at: int, name: str) -> None:
    try:
        figures = parser(name)(output[:at] + junk + output[at:])
    except ParseError:
        return
    assert figures
    assert all(math.isfinite(value) for value in figures.values())


@pytest.mark.skipif(shutil.which("hackbench") is None, reason="hackbench is not installed")
def test_the_real_hackbench_is_understood() -> None:
    done = subprocess.run(
        ["hackbench", "-g", "1", "-l", "10", "-T"], capture_output=True, text=True, check=True, timeout=60
    )
    assert 0 < hackbench.parse(done.stdout)["hackbench.time"] < 60


def test_an_unknown_parser_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RequestError, match=r"expected one of .*hackbench, .*jitter, .*linpack, matrix"):
        parser("perf")
