"""Live experiments one after another, each with a fault at a random moment, in a network of its own (see ``chaos``)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Final

SETTING: Final = Path("/proc/sys/net/ipv4/tcp_retries2")
OLD, NEW = "15", "8"
TOOK_S: Final = 0.01
"""Duration of every request, whatever is set."""
_PORT: Final = 21795
_SLICE_S: Final = 4
_LIMIT_S: Final = 120.0
_BEGINNINGS: Final = 8

ENDPOINT: Final = ("silent", "cut", "slow", "no http", "lying")
"""Faults of the endpoint while the new value is set: it cannot be checked then."""
PROCESSES: Final = (
    *("freeze watch", "freeze agent", "freeze guardian", "freeze agent and guardian", "freeze ajuste"),
    *("kill watch", "kill agent", "kill guardian", "kill ajuste"),
)
"""Faults of Ajuste's own processes at the moment of a breach."""
KINDS: Final = ("breach", *ENDPOINT, *PROCESSES)


class _Service(BaseHTTPRequestHandler):
    """Shows how long requests take, and a figure that breaks the guard."""

    fault = ""
    events = 0

    def do_GET(self) -> None:
        kind = _Service.fault if _value() == NEW else ""
        if kind == "no http":
            self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
            return
        if kind == "slow":
            time.sleep(3)
        _Service.events += 0 if kind == "silent" else 100
        worst = {"": "0.5", "lying": "NaN"}.get(kind, "0.5" if kind in ENDPOINT else "9.0")
        text = f"# TYPE took summary\ntook_sum {_Service.events * TOOK_S:.4f}\ntook_count {_Service.events}\n"
        body = f"{text}# TYPE worst gauge\nworst {worst}\n".encode()
        with suppress(OSError):
            self._answer(body[: random.randrange(len(body))] if kind == "cut" else body, len(body))

    def _answer(self, body: bytes, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main(words: list[str]) -> None:
    home, kinds = Path(words[0]), words[1].split(",")
    server = ThreadingHTTPServer(("127.0.0.1", _PORT), _Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for number, kind in enumerate(kinds):
        print(
            json.dumps(_experiment(kind, f"chaos-{number}", home, random.Random(f"{home.name} {number}"))), flush=True
        )


def _experiment(kind: str, name: str, home: Path, chance: random.Random) -> dict[str, object]:
    """Measure the time from the fault to the old value (ms), and count slices with a wrong figure without a flag."""
    _Service.fault = ""
    page = f"prometheus:http://127.0.0.1:{_PORT}/"
    words = ["live", "--set", f"net.ipv4.tcp_retries2={OLD},{NEW}", "--slice", f"{_SLICE_S}s", "--washout", "0"]
    words += ["--metric", f"took,s,lower={page}#took", "--watch", f"worst,s={page}#worst", "--for", "10m"]
    words += ["--guard", "worst < 5s", "--guard", "took < 1s", "--name", name, "--quiet", "--fresh"]
    program = Path(sys.executable).with_name("ajuste")
    output = (home / "said.txt").open("a")
    ajuste = _start([program, *words], output)
    try:
        time.sleep(0.2 + 1.8 * chance.random())
        while _value() != NEW or not _pids("ajuste-watch"):
            time.sleep(0.01)
        _Service.fault = kind
        began = time.monotonic()
        if kind in PROCESSES:
            what, _, who = kind.partition(" ")
            for part in who.split(" and "):
                for pid in [ajuste.pid] if part == "ajuste" else _pids(f"ajuste-{part}"):
                    os.kill(pid, signal.SIGSTOP if what == "freeze" else signal.SIGKILL)
        while _value() != OLD and time.monotonic() < began + _LIMIT_S:
            time.sleep(0.002)
        restored_ms = 1000 * (time.monotonic() - began)
        with suppress(subprocess.TimeoutExpired):
            ajuste.wait(2 * _SLICE_S)
    finally:
        ajuste.send_signal(signal.SIGCONT)
        ajuste.terminate()
        with suppress(subprocess.TimeoutExpired):
            ajuste.wait(30)
        ajuste.kill()
        ajuste.wait()
        output.close()
    left = _value() != OLD
    subprocess.run([program, "restore"], capture_output=True, check=False)
    return {"kind": kind, "ms": restored_ms, "wrong": _wrong_slices(program), "left": left, "after": _value()}


def _start(command: list[str | Path], output: IO[str]) -> subprocess.Popen[bytes]:
    """Start an experiment; return it in a slice of the new value.

    On a busy machine the service may answer too late for it to begin.
    """
    for _ in range(_BEGINNINGS):
        ajuste = subprocess.Popen(command, stdout=output, stderr=output)
        if _is_in_slice_after_the_baseline(ajuste):
            return ajuste
        ajuste.terminate()
        ajuste.wait()
    raise TimeoutError("no slice of the new value after one of the baseline")


def _is_in_slice_after_the_baseline(ajuste: subprocess.Popen[bytes]) -> bool:
    """Once a whole slice of the baseline is over, it is known how long the service is silent by itself."""
    deadline, baseline_s = time.monotonic() + _LIMIT_S, 0.0
    while time.monotonic() < deadline and ajuste.poll() is None:
        if not _pids("ajuste-watch"):
            time.sleep(0.02)
        elif _value() == OLD:
            baseline_s += 0.05
            time.sleep(0.05)
        elif baseline_s > _SLICE_S / 2:
            return True
        else:
            time.sleep(0.02)
    return False


def _wrong_slices(program: Path) -> int:
    done = subprocess.run([program, "live", "result", "--json"], capture_output=True, check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        return 0  # nothing was kept
    means = {
        configuration["name"]: configuration["metrics"].get("took", {}).get("mean", TOOK_S)
        for configuration in document.get("configurations", ())
    }
    return sum(abs(mean / TOOK_S - 1) > 0.05 for mean in means.values())


def _pids(name: str) -> list[int]:
    """Return the processes of that name in this namespace."""
    pids = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (place / "comm").read_text().rstrip("\n") == name:
                pids.append(int(place.name))
    return pids


def _value() -> str:
    return SETTING.read_text().strip()


if __name__ == "__main__":
    main(sys.argv[1:])
