"""Breaks a guard again and again, in a network of its own, and prints how long each breach stayed (see ``guards``)."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

SETTING: Final = Path("/proc/sys/net/ipv4/tcp_retries2")
_OLD, _NEW = "15", "8"
_PORT: Final = 21794
_LIMIT_S: Final = 200.0


class _Service(BaseHTTPRequestHandler):
    """Shows a figure that is bad once it has been told so, as long as the new value is set."""

    bad = threading.Event()

    def do_GET(self) -> None:
        worst = 9 if self.bad.is_set() and _value() == _NEW else 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"# TYPE worst gauge\nworst {worst}\n".encode())

    def log_message(self, *_: object) -> None:
        pass


def main(words: list[str]) -> None:
    home, kind, rounds = Path(words[0]), words[1], int(words[2])
    server = ThreadingHTTPServer(("127.0.0.1", _PORT), _Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chance = random.Random(kind)
    print(json.dumps([_breach(kind, f"{kind}-{number}", home, chance) for number in range(rounds)]))


def _breach(kind: str, name: str, home: Path, chance: random.Random) -> float:
    """Milliseconds from the breach to the old value."""
    _Service.bad.clear()
    page = f"http://127.0.0.1:{_PORT}/#worst"
    words = ["live", "--set", f"net.ipv4.tcp_retries2={_OLD},{_NEW}", "--slice", "4s", "--washout", "0", "--for", "10m"]
    words += [
        "--metric",
        f"worst,s,lower=prometheus:{page}",
        "--guard",
        "worst < 5s",
        "--name",
        name,
        "--quiet",
        "--fresh",
    ]
    output = (home / "said.txt").open("w")

    def begin() -> subprocess.Popen[bytes]:
        return subprocess.Popen([Path(sys.executable).with_name("ajuste"), *words], stdout=output, stderr=output)

    ajuste = begin()
    try:
        while _value() != _NEW:
            if ajuste.poll() is not None:  # On a busy machine the service may answer too late for it to begin.
                ajuste = begin()
            time.sleep(0.01)
        time.sleep(0.5 + chance.random())
        while _value() != _NEW:  # Its slice is over by now.
            _await(_NEW)
            time.sleep(0.5)
        _Service.bad.set()
        began = time.monotonic()
        if kind != "guard":
            os.kill(ajuste.pid, signal.SIGKILL if kind == "killed" else signal.SIGSTOP)
        _await(_OLD, every_s=0.002)
        return 1000 * (time.monotonic() - began)
    finally:
        ajuste.kill()
        ajuste.wait()
        output.close()
        _await(_OLD)


def _value() -> str:
    return SETTING.read_text().strip()


def _await(value: str, every_s: float = 0.01) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while _value() != value:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{SETTING} did not become {value}")
        time.sleep(every_s)


if __name__ == "__main__":
    main(sys.argv[1:])
