"""Services of a workload as a person uses them: on this machine, and in a guest."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from ajuste.executor.host.caller import services_place
from namespace import needs_root
from shell import Shell

SERVER = """\
import os, socket, sys, time
here = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    connection, _ = here.accept()
    word = connection.recv(99)
    if word == b"die":
        print("as I was told", flush=True)
        os._exit(3)  # sys.exit closes the connection some time before the process ends
    end = time.process_time() + 0.02
    while word and time.process_time() < end:
        pass
    connection.sendall(word)
    connection.close()
"""
CLIENT = """\
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(sys.argv[2].encode())
sys.exit(not connection.recv(99))
"""
HTTPD = "busybox httpd -f -p 127.0.0.1:{port} -h /tmp"
GET = ("busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:{port}/missing")

on_this_machine = pytest.mark.usefixtures("machine_lock")


@pytest.fixture
def programs(ajuste: Shell) -> Shell:
    (ajuste.directory / "server.py").write_text(SERVER)
    (ajuste.directory / "client.py").write_text(CLIENT)
    return ajuste


class Services(NamedTuple):
    """The ``place`` of services, as those see it that ``enter``, and as it is ``seen`` here."""

    place: Path
    seen: Path
    enter: tuple[str, ...]


@pytest.fixture
def services() -> Iterator[Services]:
    """A place for services that no other test's experiment cleans up."""
    place = Path(f"{services_place()}-{os.geteuid()}")
    there_before = place.parent.exists()
    script = f"mkdir -p {place.parent}; mount -t tmpfs none {place.parent}; echo; exec sleep 1000"
    with subprocess.Popen(["unshare", "--mount", "sh", "-euc", script], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield Services(
            place,
            Path(f"/proc/{holder.pid}/root{place}"),
            ("nsenter", "--target", str(holder.pid), "--mount", "--wd=."),
        )
        holder.kill()
    if not there_before:
        with suppress(OSError):
            place.parent.rmdir()


def server(directory: Path, *words: str) -> str:
    return " ".join((sys.executable, str(directory / "server.py"), *(words or ("{port}",))))


def client(directory: Path, word: str, port: str = "{port}") -> tuple[str, ...]:
    return sys.executable, str(directory / "client.py"), port, word


def left(directory: Path) -> list[psutil.Process]:
    """The processes of services that are still there."""
    processes = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = " ".join(process.info["cmdline"] or [])
        is_server = f"{directory}/server.py" in words and " compare " not in words
        if is_server and process.info["status"] != psutil.STATUS_ZOMBIE:
            processes.append(process)
    return processes


def planned_port(ajuste: Shell, words: tuple[str, ...]) -> int:
    commands = json.loads(ajuste(*words)[0])["configurations"][0]["commands"]
    return int(next(command["argv"][-1] for command in commands if command["role"].startswith("service")))


@on_this_machine
class TestHere:
    def test_a_service_serves_each_trial_and_is_gone_afterwards(self, programs: Shell) -> None:
        where = programs.directory
        options = ("--json", "--blocks", "2", "--service", server(where))
        document = json.loads(programs("compare", *options, "--", *client(where, "hello"))[0])
        metrics = {metric["name"] for metric in document["metrics"]}
        assert {"service-cpu", "service-peak-rss"} <= metrics
        (run,) = programs.json("report")
        trials = programs.json("report", run["run"], "--trials")
        # The warm-up, and two blocks. One may be repeated, as where another program has taken the port.
        whole = [trial for trial in trials if trial["status"] == "ok"]
        assert sorted(trial["slot"]["block"] for trial in whole) == [0, 1, 2], [trial["reason"] for trial in trials]
        assert all(trial["metrics"]["service-cpu"] >= 0.02 for trial in whole)
        assert not left(where)
        assert not (Path(f"{services_place()}-{os.geteuid()}") / Path(sys.executable).name).exists()

    def test_one_that_is_not_ready_is_told_with_its_log(self, programs: Shell) -> None:
        command = (f"{server(programs.directory, '21755')}", "--ready", "log:never", "--timeout", "1s")
        _, complained = programs("compare", "--service", *command, "--", "true", expect=1)
        # The limit is that of the whole trial, of which a busy machine has taken some before.
        assert re.search(r"not ready after 0\.[5-9]\d* s; waited until a line of its log matches", complained)
        assert "its log ends: listening" in complained
        assert not left(programs.directory)

    def test_one_that_dies_fails_the_trial(self, programs: Shell) -> None:
        where = programs.directory
        _, complained = programs("compare", "--service", server(where), "--", *client(where, "die"), expect=1)
        assert "ended with exit code 3 before the workload's end; its log ends: listening / as I was told" in complained

    def test_a_port_in_use_is_said_before_the_start(self, programs: Shell) -> None:
        with socket.create_server(("127.0.0.1", 0)) as busy:
            port = str(busy.getsockname()[1])
            ready = ("--ready", f"port:{port}")
            _, complained = programs(
                "compare", "--service", server(programs.directory, port), *ready, "--", "true", expect=1
            )
        assert f"port {port} is already in use by another program; write {{port}} instead of the number" in complained

    def test_a_port_that_another_program_takes_before_the_service_is_no_ready_service(self, programs: Shell) -> None:
        where = programs.directory
        (where / "late.sh").write_text('echo $1 >"$2/port.new"; mv "$2/port.new" "$2/port"; exec sleep 60\n')
        taken: list[socket.socket] = []

        def take() -> None:
            while not (where / "port").exists():
                time.sleep(0.01)
            taken.append(socket.create_server(("127.0.0.1", int((where / "port").read_text()))))

        stranger = threading.Thread(target=take, daemon=True)
        stranger.start()
        service = f"sh {where}/late.sh {{port}} {where}"
        programs("compare", "--service", service, "--blocks", "1", "--", "true", expect=1)
        stranger.join(60)
        taken[0].close()
        (run,) = programs.json("report")
        first, *_ = programs.json("report", run["run"], "--trials")
        assert first["status"] == "failed"
        assert "was taken by another program" in first["reason"]

    def test_a_free_port_is_taken_instead_of_one_in_use(self, programs: Shell) -> None:
        where = programs.directory
        words = ("compare", "--dry-run", "--json", "--service", server(where), "--", *client(where, "x"))
        port = planned_port(programs, words)
        with socket.create_server(("127.0.0.1", port)):
            assert planned_port(programs, words) == port + 1

    def test_interrupted_nothing_is_left_running(self, programs: Shell) -> None:
        where = programs.directory
        process = programs.start("compare", "--service", server(where), "--", "sleep", "60")
        end = time.monotonic() + 60
        while not left(where) and time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=60)
        assert process.returncode == 130, complained
        assert not left(where)

    @needs_root
    def test_what_a_killed_run_leaves_goes_with_restore_and_with_the_next_run(
        self, programs: Shell, services: Services
    ) -> None:
        where = programs.directory
        words = ("compare", "--blocks", "1", "--service", server(where), "--")

        def killed() -> None:
            process = programs.start(*words, "sleep", "60", enter=services.enter)
            end = time.monotonic() + 60
            while not left(where):
                assert time.monotonic() < end
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            process.kill()
            process.communicate()
            while left(where):
                assert time.monotonic() < end, "the service outlives the run"
                time.sleep(0.05)
            assert services.seen.is_dir()

        def ended(*words: str) -> str:
            process = programs.start(*words, enter=services.enter)
            out, complained = process.communicate(timeout=120)
            assert process.returncode == 0, complained
            return out + complained

        removed = f"Removed {services.place}, which services of a killed experiment left.\n"
        killed()
        assert ended("restore") == removed
        assert not services.seen.exists()
        killed()
        (services.seen / "of-an-earlier-run").mkdir()
        assert removed in ended(*words, *client(where, "hello"))
        assert not services.seen.exists()

    def test_data_is_a_copy_for_each_trial(self, programs: Shell) -> None:
        (programs.directory / "data.toml").write_text(DATA)
        programs("run", "data.toml")
        (run,) = programs.json("report")
        outputs = [output(trial) for trial in programs.json("report", run["run"], "--trials")]
        assert outputs
        assert set(outputs) == {"made\nserved"}

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (("--", "echo", "{port}"), "which is the port of a service; this study has no service"),
            (("--service", "no-such-program", "--", "true"), 'program "no-such-program" not found'),
            (("--service", "cat", "--service", "tac", "--ready", "none", "--", "true"), "found 1 --ready for 2"),
            (
                ("--service", "cat", "--ready", "soon", "--", "true"),
                'ajuste: --ready soon: found "soon"; expected text',
            ),
            (("--service", "'", "--", "true"), "unbalanced quotes"),
        ],
    )
    def test_what_is_wrong_is_said_before_anything_runs(
        self, ajuste: Shell, words: tuple[str, ...], expected: str
    ) -> None:
        _, complained = ajuste("compare", *words, expect=2)
        assert expected in complained

    def test_a_saved_study_has_the_services(self, programs: Shell) -> None:
        where = programs.directory
        options = ("--service", server(where), "--ready", "command:true", "--blocks", "1")
        programs("compare", *options, "--dry-run", "--save", "saved.toml", "--", *client(where, "x"))
        assert "[[workload.service]]" in (where / "saved.toml").read_text()
        commands = programs.json("plan", "saved.toml")["configurations"][0]["commands"]
        assert [command["role"] for command in commands][:1] == [f"service {Path(sys.executable).name}"]


DATA = """\
schema = 1
name = "data"
[[factor]]
name = "service.nice"
levels = [0, 1]
[workload]
command = ["cat", "{data}/file"]
[[workload.service]]
name = "writer"
command = ["sh", "-c", "echo served >> $0/file; echo up; exec sleep 60", "{data}"]
data = ["sh", "-c", "echo made > $0/file", "{data}"]
ready = "log:^up"
[target]
kind = "host"
clock = "wall"
[analysis]
metrics = ["elapsed"]
[budget]
min_blocks = 2
max_blocks = 2
"""


def output(trial: dict[str, Any]) -> str:
    events = map(json.loads, trial["events"].splitlines())
    outputs = (event for event in events if event["event"] == "output" and event["role"] == "workload")
    return next(event["text"].strip() for event in outputs)


@pytest.mark.vm
def test_in_a_guest_it_is_exact(ajuste: Shell) -> None:
    if not Path("/bin/busybox").exists():
        pytest.skip("busybox is not installed")
    words: tuple[str, ...] = (
        "compare",
        "--kernel",
        "debian:6.1",
        "--blocks",
        "1",
        "--ignore-failure",
        "--service",
        HTTPD,
    )
    words += ("--set", "service.nice=0,10", "--json")
    first = json.loads(ajuste(*words, "--", *GET)[0])
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        again = json.loads(ajuste(*words, "--fresh", "--", *GET)[0])
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert first["digest"] == again["digest"]
    (run, *_) = ajuste.json("report")
    trials = ajuste.json("report", run["run"], "--trials")
    assert [trial["status"] for trial in trials] == ["ok", "ok"]
    assert all(trial["metrics"]["service-cpu"] > 0 for trial in trials)
