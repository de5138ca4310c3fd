"""Winners that are adopted while processes are killed: no value is ever neither the old nor the new one.

In a network of its own, an experiment is taken to its verdict once; then its probation is begun again and again, and
the agent, its guardian, the watch and Ajuste are killed (SIGKILL), alone and together: half of the times at a random
moment, half of them as soon as the guardian is gone, which is when the agent is to be left. A reader looks at the
setting every millisecond. Then there is a record and the new value, until it is undone; or else `ajuste restore`
restores the old one. ``python -m benchmarks.live.adoption 100`` kills as often.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from ajuste.cli.edge import exit_code
from ajuste.cli.main import application
from ajuste.cli.restore import restore
from ajuste.executor.host.adoption import adoptions
from ajuste.executor.host.journals import ADOPTED
from ajuste.model.error import RequestError
from ajuste_live.state import ON_PROBATION
from benchmarks.comparison import Comparison, show
from benchmarks.kill_tally import subsets
from benchmarks.live.fault import SETTING
from benchmarks.live.redis import printed_alone

KILLS: Final = 100
AT_ONCE: Final = 2
OLD, NEW = "15", "8"
_PORT: Final = 21797
_SPAN_S: Final = 2.0
_LIMIT_S: Final = 120.0
_BEGINNINGS: Final = 8


def measure(kills: int = KILLS) -> Iterable[Comparison]:
    """Measure so many kills. Needs root."""
    if os.geteuid() != 0:
        raise RequestError("a network of its own needs root")
    Path("/var/lib/ajuste").mkdir(exist_ok=True)
    shares = [kills // AT_ONCE + (number < kills % AT_ONCE) for number in range(AT_ONCE)]
    with tempfile.TemporaryDirectory(prefix="ajuste-adoption-") as directory, ThreadPoolExecutor(AT_ONCE) as pool:
        places = [Path(directory) / str(number) for number in range(AT_ONCE)]
        results = [outcome for outcomes in pool.map(_outcomes, shares, places) for outcome in outcomes]
    wrong = [outcome for outcome in results if outcome["wrong"]]
    adopted = sum(outcome["adopted"] for outcome in results)
    looks = sum(outcome["looks"] for outcome in results)
    for outcome in wrong:
        print(json.dumps(outcome), file=sys.stderr)
    yield Comparison(
        name="live-adoption",
        what=f"{len(results)} kills while a winner is adopted, {adopted} of them too late to prevent it; "
        f"neither the old nor the new value, or not to be undone: {len(wrong)}, of {looks} looks at the setting",
        unit="ms",
        figures={"longest time between two looks": [outcome["apart_ms"] for outcome in results]},
        goal="always the old or the new value, and the old one after it is undone",
        reached=not wrong and len(results) == kills,
    )


def _outcomes(kills: int, directory: Path) -> list[dict[str, Any]]:
    printed = printed_alone(directory, "benchmarks.live.adoption", "--inside", str(directory), str(kills))
    return [json.loads(line) for line in printed.splitlines()]


# In the network of its own.


class _Service(BaseHTTPRequestHandler):
    events = 0
    total_s = 0.0

    def do_GET(self) -> None:
        _Service.events += 100
        noise = 1 + (_Service.events % 700) / 7000
        _Service.total_s += 100 * (0.008 if _value() == NEW else 0.010) * noise
        text = f"# TYPE took summary\ntook_sum {_Service.total_s}\ntook_count {_Service.events}\n"
        body = f"{text}# TYPE worst gauge\nworst 1\n".encode()
        with suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _fork(work: Callable[[], object], log: Path) -> int:
    """Do ``work`` in a process forked from this one, as a command would: nothing is imported anew."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os._exit(exit_code(work))
    finally:
        os._exit(70)


def _serve() -> None:
    ThreadingHTTPServer(("127.0.0.1", _PORT), _Service).serve_forever()


def _read(seen_in: Path) -> None:
    """Look at the setting every millisecond, until SIGTERM; then say what was seen."""
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: over.append(number))
    seen: Counter[str] = Counter()
    apart_s, last = 0.0, time.monotonic()
    while not over:
        seen[_value()] += 1
        now = time.monotonic()
        apart_s, last = max(apart_s, now - last), now
        time.sleep(0.001)
    seen_in.write_text(json.dumps({"seen": seen, "apart_ms": 1000 * apart_s}))


def inside(directory: Path, kills: int) -> None:
    """Kill so often, and print what came of each as a line of JSON."""
    chance = random.Random(directory.name)
    log = directory / "said.txt"
    service = _fork(_serve, log)
    home, decided = directory / "home", directory / "decided"
    ajuste = _on_probation(directory, "60s")
    os.kill(ajuste, signal.SIGKILL)
    _await_end(ajuste)
    shutil.copytree(home, decided, ignore=shutil.ignore_patterns("beat-*"))
    queue: list[tuple[str, ...]] = []
    for number in range(kills):
        queue = queue or chance.sample(subsets("live"), len(subsets("live")))
        shutil.rmtree(home)
        shutil.copytree(decided, home)
        print(json.dumps(_killed(directory, queue.pop(), chance, as_it_is_left=number % 2 == 1)), flush=True)
    os.kill(service, signal.SIGKILL)


def _killed(directory: Path, parts: tuple[str, ...], chance: random.Random, *, as_it_is_left: bool) -> dict[str, Any]:
    log, seen_in = directory / "said.txt", directory / "seen.json"
    ajuste = _on_probation(directory, "1s")
    reader = _fork(lambda: _read(seen_in), log)
    pids = {"orchestrator": ajuste} | {part: _pid(f"ajuste-{part}") for part in ("agent", "guardian", "watch")}
    if as_it_is_left:
        deadline = time.monotonic() + _LIMIT_S
        while Path(f"/proc/{pids['guardian']}").exists() and time.monotonic() < deadline:
            pass
        time.sleep(0.005 * chance.random() ** 4)
    else:
        time.sleep(_SPAN_S * chance.random())
    for part in chance.sample(parts, len(parts)):
        with suppress(ProcessLookupError):
            os.kill(pids[part], signal.SIGKILL)
    _await_end(ajuste)
    after, adopted = _value(), adoptions()
    os.waitpid(_fork(lambda: restore(None), log), 0)
    restored = _value()
    for adoption in adopted:
        os.waitpid(_fork(lambda run=adoption.run: restore(None, run=run), log), 0)  # type: ignore[misc]
    os.kill(reader, signal.SIGTERM)
    os.waitpid(reader, 0)
    readings = json.loads(seen_in.read_text())
    wrong = [value for value in readings["seen"] if value not in (OLD, NEW)]
    wrong += [f"{after} although adopted"] if adopted and (after, restored) != (NEW, NEW) else []
    wrong += [f"{restored} after restore"] if not adopted and restored != OLD else []
    wrong += [f"{_value()} in the end"] if _value() != OLD else []
    wrong += [f"{path.name} is left" for path in ADOPTED.glob("*")]
    return {
        "parts": parts,
        "as it is left": as_it_is_left,
        "after": after,
        "adopted": bool(adopted),
        "looks": sum(readings["seen"].values()),
        "apart_ms": readings["apart_ms"],
        "wrong": wrong,
    }


def _on_probation(directory: Path, probation: str) -> int:
    """Begin it. On a busy machine the service may answer too late for it."""
    for _ in range(_BEGINNINGS):
        if ajuste := _begin_probation(directory, probation):
            return ajuste
    raise TimeoutError(f"no probation: {(directory / 'said.txt').read_text()[-2000:]}")


def _begin_probation(directory: Path, probation: str) -> int:
    page = f"prometheus:http://127.0.0.1:{_PORT}/"
    boot = directory / "boot"
    boot.mkdir(exist_ok=True)
    words = ["live", "--set", f"net.ipv4.tcp_retries2={OLD},{NEW}", "--slice", "2s", "--washout", "0", "--for", "20m"]
    words += ["--metric", f"took,s,lower={page}#took", "--watch", f"worst,s={page}#worst", "--guard", "worst < 5s"]
    words += ["--confidence", "80%", "--quiet", "--seed", "2", "--keep-winner", str(boot)]
    state = directory / "home" / "state" / "live" / "now.json"
    state.unlink(missing_ok=True)
    words += ["--adopt", "--probation", probation]
    log = directory / "said.txt"
    ajuste = _fork(lambda: application(words)(words, standalone_mode=False), log)
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline and os.waitpid(ajuste, os.WNOHANG) == (0, 0):
        with suppress(OSError, ValueError):
            if json.loads(state.read_text())["doing"] == ON_PROBATION and _pid("ajuste-watch"):
                return ajuste
        time.sleep(0.005)
    return 0


def _await_end(ajuste: int) -> None:
    os.waitpid(ajuste, 0)
    deadline = time.monotonic() + _LIMIT_S
    while any(_pid(f"ajuste-{part}") for part in ("agent", "guardian", "watch")) and time.monotonic() < deadline:
        time.sleep(0.02)


def _pid(name: str) -> int:
    """Return a process of this namespace, 0 if there is none."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (place / "comm").read_text().rstrip("\n") == name:
                return int(place.name)
    return 0


def _value() -> str:
    return SETTING.read_text().strip()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        for comparison in measure(int(sys.argv[1]) if len(sys.argv) > 1 else KILLS):
            show(comparison, Console())
