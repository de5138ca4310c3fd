"""``ajuste live`` as a person uses it, in a network of its own: a service that feels a setting, guards, a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ajuste.machine.home import AGENT, WATCH, WORKLOADS, native_program
from namespace import needs_root, with_service
from tiers import slow

SERVICE = """\
import http.server, pathlib, sys
setting, here = pathlib.Path("/proc/sys/net/ipv4/tcp_retries2"), pathlib.Path(sys.argv[1])
total = count = 0.0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global total, count
        if (step := here / "step").exists():
            step.rename(here / "ahead")
        planted = setting.read_text().strip() == "8"
        if planted and (here / "no http").exists():
            self.wfile.write(b"SSH-2.0-OpenSSH_9.2\\r\\n")
            return
        events = 0 if planted and (here / "mute").exists() else 100
        count += events
        total += events * (0.008 if planted else 0.010) * (1 + (count % 700) / 7000)
        bad = planted and (here / "bad").exists()
        body = f"# TYPE took summary\\ntook_sum {total}\\ntook_count {count}\\n"
        body += f"# TYPE worst gauge\\nworst {9 if bad else 1}\\n"
        cut = 30 if planted and (here / "cut").exists() else 0
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body.encode()[:len(body) - cut])
    def log_message(self, *_): pass
service = http.server.ThreadingHTTPServer(("127.0.0.1", 21793), Handler)
(here / "answers").touch()
service.serve_forever()
"""
BEGIN = """\
mkdir -p /run/lock
{python} service.py . &
until [ -e answers ]; do sleep 0.05; done
ajuste() {{ {ajuste} "$@"; }}
value() {{ cat /proc/sys/net/ipv4/tcp_retries2; }}
live() {{
    ajuste live --set net.ipv4.tcp_retries2=15,8 --slice 2s --washout 0 --for 10m --min-effect 5% \\
    --seed 2 --confidence 80% \\
    --metric "took,s,lower=prometheus:http://127.0.0.1:21793/#took" \\
    --watch "worst,s=prometheus:http://127.0.0.1:21793/#worst" --guard "worst < 5s" "$@"
}}
"""

"""The first slice of seed 2 is that of the planted setting. With less confidence a verdict takes fewer blocks."""

CLOCK = """\
import pathlib, time
real, ahead = time.time, pathlib.Path("ahead")
time.time = lambda: real() + float(ahead.read_text())
"""
"""A time of the day that is set by the service when it is read, so within a slice, once there is a file ``step`` (as
sitecustomize.py, which every Python loads).
"""

pytestmark = [needs_root, pytest.mark.machine]


def run(script: str, directory: Path, *, limit_s: float = 200) -> str:
    return with_service(BEGIN, script, directory, {"service.py": SERVICE}, limit_s=limit_s)


def test_a_planted_setting_is_found_through_a_kill_and_everything_is_restored(tmp_path: Path) -> None:
    output = run(
        """\
        live --confidence 95% >first.txt 2>&1 & killed=$!
        while [ "$(value)" != 8 ]; do sleep 0.05; done
        kill -9 $(pgrep -P $killed || echo $killed) $killed || true
        for try in $(seq 100); do [ "$(value)" = 15 ] && break; sleep 0.1; done
        value
        live --confidence 95% --json >result.json 2>progress.txt
        value
        """,
        tmp_path,
    )
    assert output.split() == ["15", "15"]
    document = json.loads((tmp_path / "result.json").read_text())
    assert [(verdict["configuration"], verdict["verdict"]) for verdict in document["verdicts"]] == [
        ("net.ipv4.tcp_retries2=8", "improves")
    ]
    assert document["stopped"] == "decided"
    slices = document["live"]["slices"]
    assert [part["number"] for part in slices] == list(range(len(slices)))
    assert document["live"]["lines"][0]["at_s"]


def test_a_broken_guard_restores_and_the_configuration_is_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "bad").touch()
    run("live --json >result.json 2>said.txt; value >after.txt", tmp_path)
    document = json.loads((tmp_path / "result.json").read_text())
    assert (tmp_path / "after.txt").read_text().strip() == "15"
    assert "broke the guard worst < 5s (worst is 9 s)" in document["answer"]
    tried = [part for part in document["live"]["slices"] if part["configuration"] == "net.ipv4.tcp_retries2=8"]
    assert len(tried) == 1


@pytest.mark.parametrize("how", ["no http", *slow("mute", "cut")])
def test_a_service_that_cannot_be_checked_under_a_value_is_spared_it(tmp_path: Path, how: str) -> None:
    (tmp_path / how).touch()
    run('live --slice 4s --guard "took < 1s" --json >result.json 2>said.txt; value >after.txt', tmp_path)
    document = json.loads((tmp_path / "result.json").read_text())
    assert (tmp_path / "after.txt").read_text().strip() == "15"
    assert "Traceback" not in (tmp_path / "said.txt").read_text()
    assert "cannot be checked" in document["answer"]
    tried = [part for part in document["live"]["slices"] if part["configuration"] == "net.ipv4.tcp_retries2=8"]
    assert len(tried) <= 2  # before there is a slice of the baseline, a silent service has longer


def test_a_mirrored_block_goes_there_and_back(tmp_path: Path) -> None:
    run("live --json --order mirrored --for 24s >result.json 2>/dev/null || true", tmp_path)
    document = json.loads((tmp_path / "result.json").read_text())
    assert "then once in its reverse" in document["design"]
    blocks = [[part["configuration"] for part in document["live"]["slices"] if part["block"] == n] for n in (0, 1)]
    for block in blocks:
        assert block == block[::-1]
        assert len(set(block)) == 2
        assert len(block) == 4


@pytest.mark.parametrize(
    ("place", "calm", "busy", "option", "words"),
    [
        (
            "/proc/pressure/cpu",
            "some avg10=10.0 avg60=1.00 avg300=1.00 total=1",
            "some avg10=87.0 avg60=1.00 avg300=1.00 total=1",
            "--max-pressure 60%",
            "tasks wait for cpu 87 % of the time, more than 60 %",
        ),
        pytest.param(
            "/proc/loadavg",
            "0.50 0.40 0.30 1/99 999",
            "9.50 0.40 0.30 1/99 999",
            "--max-load 4",
            "the load average is 9.5, more than 4",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_too_much_load_restores_and_pauses_until_it_is_over(
    tmp_path: Path, place: str, calm: str, busy: str, option: str, words: str
) -> None:
    output = run(
        f"""\
        echo {calm!r} >calm; echo {busy!r} >busy; cp calm load
        mount --bind load {place}
        say() {{ dd if="$1" of=load conv=notrunc status=none; }}  # at no moment is the file empty
        live {option} --json >result.json 2>progress.txt & live=$!
        for try in $(seq 300); do [ "$(value)" = 8 ] && break; sleep 0.1; done
        say busy
        for try in $(seq 100); do [ "$(value)" = 15 ] && break; sleep 0.1; done
        sleep 1.2
        value
        ajuste live status
        sleep 3
        value
        say calm
        wait $live
        value
        """,
        tmp_path,
    )
    during, status, *_, later, after = output.splitlines()
    assert (during, later, after) == ("15", "15", "15")
    assert f"nothing is changed now, waiting: {words}" in status
    document = json.loads((tmp_path / "result.json").read_text())
    assert [verdict["verdict"] for verdict in document["verdicts"]] == ["improves"]
    assert any(words in part["flag"] for part in document["live"]["slices"])


def test_a_limit_that_could_never_be_noticed_is_refused(tmp_path: Path) -> None:
    output = run(
        """\
        mount -t tmpfs none /proc/pressure
        live --max-pressure 60% 2>&1 || echo "exit code $?"
        value
        """,
        tmp_path,
    )
    assert "--max-pressure requires pressure stall information" in output
    assert output.split()[-4:] == ["exit", "code", "2", "15"]


@pytest.mark.slow
def test_interrupted_it_says_that_the_old_value_is_in_force(tmp_path: Path) -> None:
    output = run(
        """\
        live 2>said.txt & live=$!
        for try in $(seq 300); do grep -q "^slice 1," said.txt && break; sleep 0.1; done
        kill -TERM $(pgrep -P $live || echo $live)
        wait $live || echo "exit code $?"
        value
        """,
        tmp_path,
    )
    assert output.splitlines()[-2:] == ["exit code 130", "15"]
    assert "the old values are in force; run the same command again to resume" in (tmp_path / "said.txt").read_text()


@pytest.mark.slow
def test_a_clock_that_is_set_costs_a_slice_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    output = run(
        """\
        echo 0 >ahead; export PYTHONPATH=.
        live >first.txt 2>&1 & killed=$!
        for try in $(seq 300); do grep -q "^slice 1," first.txt && break; sleep 0.1; done
        echo 3600 >later; mv later step
        for try in $(seq 300); do grep -q "^slice 4," first.txt && break; sleep 0.1; done
        ajuste live status
        kill -9 $(pgrep -P $killed || echo $killed) $killed || true
        for try in $(seq 100); do [ "$(value)" = 15 ] && break; sleep 0.1; done
        echo 1e9 >later; mv later ahead
        live --json >result.json 2>progress.txt
        value
        """,
        tmp_path,
    )
    status, *_, after = output.splitlines()
    assert " slices, block " in status, "a running experiment is one whatever the clock says"
    assert after == "15"
    document = json.loads((tmp_path / "result.json").read_text())
    assert (document["stopped"], [verdict["verdict"] for verdict in document["verdicts"]]) == ("decided", ["improves"])
    flags = [part["flag"] for part in document["live"]["slices"] if "the clock was set" in part["flag"]]
    assert len(flags) == 1
    assert "the clock was set forward by 1 h" in flags[0]
    times = [part["begin_s"] for part in document["live"]["slices"]]
    assert times == sorted(times)
    assert times[-1] < 200


def test_nobody_who_checks_the_guards_ends_the_slice(tmp_path: Path) -> None:
    output = run(
        """\
        live --slice 60s >first.txt 2>&1 & live=$!
        for try in $(seq 500); do [ "$(value)" = 8 ] && break; sleep 0.1; done
        hung=$(pgrep -P $live || echo $live)
        kill -STOP $hung
        for try in $(seq 200); do [ "$(value)" = 15 ] && break; sleep 0.1; done
        value
        cut -d " " -f 3 /proc/$hung/stat
        kill -9 $hung
        """,
        tmp_path,
    )
    assert output.split() == ["15", "T"], "its slice lasts much longer"


@pytest.mark.slow
@pytest.mark.parametrize(
    "stopped",
    ["ajuste-watch", "ajuste-agent", "ajuste-guardian", "ajuste-agent ajuste-guardian", "ajuste-agent python"],
)
def test_who_is_stopped_while_a_guard_is_broken_is_killed_and_the_value_is_back(tmp_path: Path, stopped: str) -> None:
    output = run(
        f"""\
        live --slice 60s >said.txt 2>&1 & live=$!
        until [ "$(value)" = 8 ] && pgrep -x ajuste-watch >/dev/null; do sleep 0.05; done
        python=$(pgrep -P $live || echo $live)
        for one in {stopped}; do
            [ $one = python ] && kill -STOP $python || pkill -STOP -x $one
        done
        touch bad
        for try in $(seq 250); do [ "$(value)" = 15 ] && break; sleep 0.1; done
        value
        kill -9 $python || true
        for try in $(seq 100); do pgrep "^ajuste-" >/dev/null || break; sleep 0.1; done
        value
        pgrep -l "^ajuste-" || true
        """,
        tmp_path,
    )
    assert output.split() == ["15", "15"]


def test_under_sudo_slices_last_and_commands_that_measure_are_the_callers(tmp_path: Path) -> None:
    output = run(
        """\
        export SUDO_UID=65534 SUDO_GID=65534
        ajuste live --set net.ipv4.tcp_retries2=15,8 --slice 2s --washout 0 --for 5s \
            --metric "who,lower=command:id -u" --json >result.json 2>/dev/null
        value
        """,
        tmp_path,
    )
    assert output.split() == ["15"]
    document = json.loads((tmp_path / "result.json").read_text())
    assert [part["flag"] for part in document["live"]["slices"]] == ["", ""]
    assert {configuration["metrics"]["who"]["mean"] for configuration in document["configurations"]} == {65534}


@pytest.mark.parametrize(
    ("watch", "words", "slices"),
    [
        ("echo planted >&2; exit 1", "nothing was changed", 0),
        ('[ "$2" != 1 ] || exit 0; echo planted >&2; exit 1', "3 slices in a row failed", 3),
    ],
)
def test_a_watch_that_fails_ends_the_experiment_with_the_cause(
    tmp_path: Path, watch: str, words: str, slices: int
) -> None:
    native = tmp_path / "native"
    native.mkdir()
    for name in (AGENT, WORKLOADS):
        (native / name).symlink_to(native_program(name))
    (native / WATCH).write_text(f"#!/bin/sh\n{watch}\n")
    (native / WATCH).chmod(0o755)
    output = run(
        f"""\
        export AJUSTE_NATIVE={native}
        live >said.txt 2>&1 || echo "$?"
        value
        """,
        tmp_path,
    )
    assert output.split() == ["1", "15"]
    lines = (tmp_path / "said.txt").read_text()
    assert words in lines
    assert "planted" in lines
    assert (f"slice {slices}," in lines, f"slice {slices + 1}," in lines) == (slices > 0, False)
