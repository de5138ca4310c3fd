"""The bundled workloads against numpy, against their own documentation, and against wrong requests."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest


def printed(program: str, *arguments: str) -> str:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize(("size", "repetitions"), [(1, 1), (2, 3), (37, 2), (200, 5)])
def test_the_checksum_of_the_matrix_product_is_right(workloads: str, size: int, repetitions: int) -> None:
    i, j = np.indices((size, size))
    product = ((7 * i + 3 * j) % 11 - 5) @ ((5 * i + 2 * j) % 13 - 6)
    checksum = int((product * ((i + 2 * j) % 7 + 1)).sum())
    line = printed(workloads, "matrix", "--size", str(size), "--repetitions", str(repetitions))
    assert line == f"matrix size={size} repetitions={repetitions} checksum={checksum}\n"


ROW = re.compile(r"^ *(\d+) +(\d+\.\d\d) +(\d+\.\d\d)% +(\d+\.\d\d)% +(\d+\.\d\d)%  +(\d+\.\d{3})$")


def test_linpack_prints_the_classic_table(workloads: str) -> None:
    lines = printed(workloads, "linpack", "--first", "8", "--longest", "64").splitlines()
    assert lines[0] == "LINPACK double precision, 200 x 200"
    rows = [match for match in map(ROW.match, lines) if match]
    assert [int(row[1]) for row in rows] == [8, 16, 32, 64]
    for row in rows:
        assert sum(float(share) for share in row.groups()[2:5]) == pytest.approx(100, abs=0.02)
    repetitions, seconds, *_, kflops = (float(cell) for cell in rows[-1].groups())
    net_seconds = seconds * (1 - float(rows[-1][5]) / 100)
    operations = repetitions * (2 * 200**3 / 3 + 2 * 200**2)
    assert kflops == pytest.approx(operations / net_seconds / 1000, rel=0.2), "the time is rounded to 10 ms"


def test_linpack_in_c_has_the_very_same_solution(workloads: str) -> None:
    rust, c = (
        printed(workloads, "linpack", "--repetitions", "1", "--code", code).splitlines() for code in ("rust", "c")
    )
    assert rust[-1] == c[-1]
    assert rust[-1].startswith("Residual ")


def test_linpack_counts_the_interrupts_of_its_cpu(workloads: str) -> None:
    *_, last = printed(workloads, "linpack", "--repetitions", "1", "--interrupts").splitlines()
    match = re.fullmatch(r"Interrupts (\d+) on CPU (\d+)", last)
    assert match
    assert int(match[2]) in os.sched_getaffinity(0)


@pytest.mark.skipif(Path("/proc/ajuste_linpack").exists(), reason="the module is loaded")
def test_linpack_in_the_kernel_says_what_it_needs(workloads: str) -> None:
    answer = subprocess.run([workloads, "linpack", "--code", "kernel"], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "the module ajuste_linpack is needed, which is loaded in guests only" in answer.stderr


def test_the_residual_of_linpack_is_that_of_double_precision(workloads: str) -> None:
    """The same matrix solved by numpy has a residual of the same order."""
    last = printed(workloads, "linpack", "--repetitions", "1").splitlines()[-1]
    match = re.fullmatch(r"Residual (\d\.\d{8}e-\d\d) normalised (\d+\.\d{6})", last)
    assert match
    states = np.empty(200 * 200)
    state = 1325
    for place in range(states.size):
        state = 3125 * state % 65536
        states[place] = (state - 32768.0) / 16384.0
    matrix = states.reshape(200, 200).T
    right = matrix.sum(axis=1)
    solution = np.linalg.solve(matrix, right)
    residual = np.abs(matrix @ solution - right).max()
    scale = 200 * matrix.max() * np.abs(solution).max() * np.finfo(float).eps
    assert float(match[1]) / float(match[2]) == pytest.approx(scale, rel=1e-6)
    assert residual / 100 < float(match[1]) < residual * 100


def test_spinning_ends_after_the_cpu_time_asked_for(workloads: str, agent: str) -> None:
    plan = f'{{"id":"s","workload":{{"argv":["{workloads}","spin","--milliseconds","200"]}}}}'
    events = subprocess.run([agent, "run"], input=plan, capture_output=True, text=True, check=True).stdout
    # How it divides into user and system time is the tick's guess; the sum is what the scheduler counted.
    cpu_ns = sum(int(re.findall(rf'"{part}_ns":(\d+)', events)[0]) for part in ("user", "system"))
    assert 195_000_000 <= cpu_ns <= 300_000_000


def test_sleeps_end_late_and_never_early(workloads: str) -> None:
    began = time.monotonic_ns()
    line = printed(workloads, "jitter", "--sleeps", "50", "--interval-us", "2000")
    passed_ns = time.monotonic_ns() - began
    match = re.fullmatch(
        r"jitter sleeps=50 interval_us=2000 min_ns=(\d+) p50_ns=(\d+) p90_ns=(\d+) p99_ns=(\d+) p999_ns=(\d+) "
        r"max_ns=(\d+)\n",
        line,
    )
    assert match
    delays = [int(figure) for figure in match.groups()]
    assert delays == sorted(delays)
    # Neither the longest delay nor all sleeps together can take longer than the program did.
    assert passed_ns > 50 * 2_000_000
    assert delays[-1] < passed_ns


@pytest.mark.parametrize(("profile", "frames"), [("audio", 20), ("video", 60), ("drag", 60)])
def test_as_many_frames_are_due_as_the_profile_says(workloads: str, profile: str, frames: int) -> None:
    line = printed(workloads, "frames", "--profile", profile, "--milliseconds", "1000")
    match = re.fullmatch(rf"frames profile={profile} due=(\d+) drawn=(\d+) in_time=(\d+) elapsed_ns=(\d+) (.*)\n", line)
    assert match, line
    due, drawn, in_time, elapsed_ns = map(int, match.groups()[:4])
    # A last frame that is late may be ready after others were due.
    assert frames <= due <= frames * elapsed_ns / 1e9 + 1
    assert in_time <= drawn <= due
    times = [int(field.partition("=")[2]) for field in match[5].split()]
    assert times == sorted(times)
    assert times[-1] <= elapsed_ns


def test_a_game_draws_all_the_time_and_misses_nothing(workloads: str) -> None:
    line = printed(workloads, "frames", "--profile", "game", "--milliseconds", "200")
    due, drawn, in_time, elapsed_ns, least_ns = map(
        int, re.findall(r"(?:due|drawn|in_time|elapsed_ns|min_ns)=(\d+)", line)
    )
    assert due == drawn == in_time
    assert least_ns >= 5_000_000, "each takes 5 ms of CPU time"
    assert int(drawn) * least_ns <= elapsed_ns


def crowd_of(parent: int) -> list[psutil.Process]:
    (leader,) = psutil.Process(parent).children()
    return leader.children()


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_crowd_is_a_session_of_its_own_and_ends_with_its_owner(workloads: str) -> None:
    crowd = subprocess.Popen([workloads, "crowd", "--processes", "3"])
    try:
        wait_for(lambda: len(psutil.Process(crowd.pid).children(recursive=True)) == 4)
        processes = crowd_of(crowd.pid)
        assert len({os.getsid(process.pid) for process in processes}) == 1
        assert os.getsid(processes[0].pid) != os.getsid(0)
    finally:
        crowd.kill()
        crowd.wait()
    wait_for(
        lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)
    )


def test_others_take_the_place_of_those_whose_time_is_over(workloads: str) -> None:
    crowd = subprocess.Popen([workloads, "crowd", "--processes", "2", "--lifetime-ms", "10"])
    seen: set[int] = set()

    def many_were_seen() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess, ValueError):
            now = crowd_of(crowd.pid)
            assert len(now) <= 2
            seen.update(process.pid for process in now)
        return len(seen) > 6

    try:
        wait_for(many_were_seen)
    finally:
        crowd.kill()
        crowd.wait()


def written(process: psutil.Process) -> int:
    return int(process.io_counters().write_chars)


def pages_taken(process: psutil.Process) -> int:
    """Minor faults so far (proc_pid_stat(5))."""
    return int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[7])


@pytest.mark.parametrize(("work", "done", "enough"), [("write", written, 20 << 20), ("memory", pages_taken, 10_000)])
def test_a_crowd_does_the_work_it_is_asked_for(
    workloads: str, tmp_path: Path, work: str, done: Callable[[psutil.Process], int], enough: int
) -> None:
    crowd = subprocess.Popen([workloads, "crowd", "--processes", "1", "--work", work], cwd=tmp_path)
    try:
        wait_for(lambda: len(psutil.Process(crowd.pid).children(recursive=True)) == 2)
        (worker,) = crowd_of(crowd.pid)
        wait_for(lambda: done(worker) > enough)
        assert list(tmp_path.iterdir()) == []
    finally:
        crowd.kill()
        crowd.wait()


def test_a_crowd_that_cannot_write_ends(workloads: str) -> None:
    done = subprocess.run([workloads, "crowd", "--work", "write"], cwd="/proc", capture_output=True, timeout=60)
    assert done.returncode == 1


def test_a_hog_says_what_it_got_and_how_often_it_was_interrupted(workloads: str) -> None:
    figures = dict(word.split("=") for word in printed(workloads, "hog", "--milliseconds", "50").split()[1:])
    assert figures["milliseconds"] == "50"
    assert 0 < float(figures["cpu_ms"]) < 60_000
    assert int(figures["involuntary"]) >= 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected a workload"),
        (["dance"], 'unknown workload "dance"; known are matrix, spin, hog, linpack, jitter, frames, crowd'),
        (["matrix"], "matrix needs --size"),
        (["matrix", "--size", "0"], '--size must be a whole number from 1 to 8192, not "0"'),
        (["matrix", "--size", "8", "--repetitions", "-1"], "--repetitions must be"),
        (["spin", "--milliseconds", "1.5"], "--milliseconds must be"),
        (["spin", "now"], "now"),
        (["linpack", "--first", "9", "--longest", "8"], "--longest 8 is less than --first 9"),
        (["linpack", "--first", "9", "--repetitions", "8"], "--repetitions is one row"),
        (["linpack", "--order", "9"], "--order"),
        (["linpack", "--code", "cobol"], '--code is rust, c or kernel, not "cobol"'),
        (["hog", "--milliseconds", "0"], "--milliseconds must be a whole number from 1 to 86400000"),
        (["jitter", "--sleeps", "0"], "--sleeps must be a whole number from 1 to 10000000"),
        (["jitter", "--interval-us", "9"], "--interval-us must be"),
        (["frames", "--profile", "opera"], '--profile must be audio, video, drag, game, not "opera"'),
        (["frames", "--milliseconds", "99"], "--milliseconds must be"),
        (["crowd", "--processes", "0"], "--processes must be"),
        (["crowd", "--work", "sleep"], '--work must be compute, write or memory, not "sleep"'),
        (["crowd", "--work", "write", "--lifetime-ms", "9"], "--lifetime-ms is for processes that compute"),
    ],
)
def test_a_wrong_request_names_the_option(workloads: str, arguments: list[str], words: str) -> None:
    done = subprocess.run([workloads, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_page_is_somewhere(workloads: str) -> None:
    """Count the pages of each place; on a machine without several nodes all are on the one there is."""
    counts = dict(word.split("=") for word in printed(workloads, "pages", "--mib", "2").split()[1:])
    assert int(counts["pages"]) == 2 << 20 >> 12
    assert int(counts["local"]) + int(counts["remote"]) + int(counts["unknown"]) == int(counts["pages"])


def test_the_tick_is_that_of_the_coarse_clock(workloads: str) -> None:
    facts = dict(word.split("=", 1) for word in printed(workloads, "facts").split() if "=" in word)
    coarse = 6  # CLOCK_MONOTONIC_COARSE of linux/time.h
    assert int(facts["tick_ns"]) == round(time.clock_getres(coarse) * 1e9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pages", "--policy", "near"], "--policy is local, remote"),
        (["pages", "--mib", "0"], "--mib must be a whole number"),
        (["paths", "--protocol", "udp"], "--protocol is tcp or mptcp"),
        (["paths", "--rate-kbit", "1"], "--rate-kbit must be"),
        (["facts", "more"], "unexpected argument"),
    ],
)
def test_wrong_requests_of_memory_and_links_are_refused(workloads: str, arguments: list[str], words: str) -> None:
    done = subprocess.run([workloads, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in done.stderr
