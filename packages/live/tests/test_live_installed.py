"""``ajuste live --install`` under a real systemd: in a container whose init is that of this system, with a network of
its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest

from ajuste_live.unit import unit_name

ROOT = Path(__file__).resolve().parents[3]
UNIT = unit_name("live")
SERVICE = """\
import http.server, pathlib
setting = pathlib.Path("/proc/sys/net/ipv4/tcp_retries2")
total = count = 0.0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global total, count
        count += 100
        total += (0.8 if setting.read_text().strip() == "8" else 1.0) * (1 + (count % 700) / 7000)
        self.send_response(200); self.end_headers()
        self.wfile.write(f"# TYPE took summary\\ntook_sum {total}\\ntook_count {count}\\n".encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 21795), Handler).serve_forever()
"""
DEMO = """\
[Service]
ExecStart=/bin/sh -c "until test -e /state/open; do sleep 0.1; done; exec {python} /state/service.py"
"""
INSTALL = (
    *("live", "--set", "net.ipv4.tcp_retries2=15,8", "--slice", "2s", "--washout", "0", "--for", "10m"),
    *("--min-effect", "5%", "--metric", "took,s,lower=prometheus:http://127.0.0.1:21795/#took", "--install"),
)
NSPAWN = ("systemd-nspawn", "--register=no", "--keep-unit", "--private-network", "--directory=/", "--volatile=yes")

pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(os.geteuid() != 0, reason="a container needs root"),
    pytest.mark.skipif(shutil.which("systemd-nspawn") is None, reason="a container needs systemd-nspawn"),
]


class Container:
    """A container with systemd: its units and /state stay over a reboot. A context manager."""

    def __init__(self, directory: Path) -> None:
        self.units, self.state = directory / "units", directory / "state"
        wanted = self.units / "multi-user.target.wants"
        for place in (wanted, self.state):
            place.mkdir(parents=True)
        (self.state / "service.py").write_text(SERVICE)
        (self.state / "open").touch()
        (self.units / "demo.service").write_text(DEMO.format(python=sys.executable))
        (wanted / "demo.service").symlink_to("../demo.service")
        # A machine that has an identity does not enable whatever is installed, as one does at its first boot.
        self.identity = directory / "machine-id"
        self.identity.write_text(f"{uuid.uuid4().hex}\n")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._boot()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _boot(self) -> None:
        binds = [f"--bind={self.units}:/etc/systemd/system", f"--bind={self.state}:/state"]
        binds += [f"--bind-ro={self.identity}:/etc/machine-id"]
        binds += [f"--bind-ro={place}" for place in (ROOT, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())]
        console = (self.state / "console").open("ab")
        self._process = subprocess.Popen(
            [*NSPAWN, f"--machine=ajuste-test-{os.getpid()}", *binds, "--boot"],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
        )
        self.wait_for(lambda: self.output("systemctl", "is-system-running").strip() in ("running", "degraded"), 60)

    def _stop(self) -> None:
        """Kill everything, as a power cut does."""
        assert self._process is not None
        if (init := self._init()) is not None:
            os.kill(init, 9)
        self._process.wait(30)

    def reboot(self) -> None:
        """Restart in good order; the container's manager starts it anew."""
        before = self.output("cat", "/proc/sys/kernel/random/boot_id")
        self.output("systemctl", "reboot")
        assert self._process is not None
        process = self._process
        self.wait_for(
            lambda: (
                process.poll() is not None or self.output("cat", "/proc/sys/kernel/random/boot_id") not in ("", before)
            ),
            60,
        )
        if process.poll() is not None:
            self._boot()

    def cut_power(self) -> None:
        """... and boot."""
        self._stop()
        self._boot()

    def _init(self) -> int | None:
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        pids = children.read_text().split() if children.exists() else []
        return int(pids[0]) if pids else None

    def output(self, *command: str) -> str:
        """Return what a command in the container prints; nothing while it is down."""
        init = self._init()
        if init is None:
            return ""
        argv = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "AJUSTE_HOME=/state/home", *command]
        done = subprocess.run(
            ["nsenter", "--target", str(init), "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd", *argv],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout

    def ajuste(self, *words: str) -> str:
        return self.output(str(Path(sys.executable).with_name("ajuste")), *words)

    @property
    def setting(self) -> str:
        return self.output("cat", "/proc/sys/net/ipv4/tcp_retries2").strip()

    @property
    def log(self) -> str:
        return self.output("journalctl", "--no-pager", "--output=cat", f"--unit={UNIT}")

    @staticmethod
    def wait_for(true: Callable[[], bool], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not true():
            assert time.monotonic() < deadline, "it did not become so"
            time.sleep(0.1)

    def is_gone(self) -> bool:
        """Return whether nothing of the unit is left."""
        return not [*self.units.rglob(UNIT)] and "active" not in self.output("systemctl", "is-active", UNIT).split()


@pytest.mark.slow
def test_it_goes_on_after_a_kill_and_as_it_was_told_after_a_power_cut(tmp_path: Path) -> None:
    with Container(tmp_path) as machine:
        assert f"started {UNIT}" in machine.ajuste(*INSTALL, "--resume-after-reboot")
        machine.wait_for(lambda: machine.setting == "8", 60)
        machine.output("systemctl", "kill", "--signal=KILL", "--kill-whom=main", UNIT)
        machine.wait_for(lambda: machine.setting == "15", 10)
        machine.wait_for(lambda: "Main process exited, code=killed" in machine.log, 60)
        machine.wait_for(lambda: machine.setting == "8", 60)
        assert "Nothing to restore." in machine.log
        machine.output("systemctl", "kill", "--signal=KILL", "--kill-whom=all", UNIT)
        machine.wait_for(lambda: "net.ipv4.tcp_retries2 is 15 (it was 8)" in machine.log, 60)
        machine.wait_for(lambda: machine.setting == "8", 60)
        (machine.state / "open").unlink()
        machine.cut_power()
        machine.wait_for(lambda: "waiting: http://127.0.0.1:21795/ does not answer" in machine.log, 60)
        (machine.state / "open").touch()
        machine.wait_for(lambda: "goes on after" in machine.log, 60)
        machine.wait_for(machine.is_gone, 120)
        assert machine.setting == "15"
        results = json.loads(machine.ajuste("live", "result", "--json"))
    assert (results["stopped"], [verdict["verdict"] for verdict in results["verdicts"]]) == ("decided", ["improves"])
    assert "The machine was restarted during the run." in results["notes"]


@pytest.mark.slow
def test_after_a_reboot_it_says_so_and_does_not_go_on_unless_told(tmp_path: Path) -> None:
    with Container(tmp_path) as machine:
        machine.ajuste(*INSTALL)
        machine.wait_for(lambda: "slice 1," in machine.log, 60)
        machine.reboot()
        machine.wait_for(machine.is_gone, 60)
        assert machine.setting == "15"
        results = json.loads(machine.ajuste("live", "result", "--json"))
    assert (results["stopped"], results["stopped_because"]) == (
        "time",
        "the machine was restarted, and --resume-after-reboot was not given",
    )


@pytest.mark.slow
def test_one_that_waits_to_go_on_can_be_stopped(tmp_path: Path) -> None:
    with Container(tmp_path) as machine:
        machine.ajuste(*INSTALL)
        machine.wait_for(lambda: machine.setting == "8", 60)
        machine.output("systemctl", "kill", "--signal=KILL", "--kill-whom=main", UNIT)
        machine.wait_for(lambda: "Main process exited, code=killed" in machine.log, 60)
        assert f"{UNIT}, which was waiting to go on, is removed" in machine.ajuste("live", "stop")
        assert machine.is_gone()
        assert machine.setting == "15"
