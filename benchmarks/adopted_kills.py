"""Kill the adoption of a winner at random moments, and look whether it is adopted and recorded, or restored.

``python -m benchmarks.adopted_kills --kills 20`` needs root. A live experiment on a played service runs up to its
probation once, in a network, a /run, a registry and a /etc/sysctl.d of its own. From there it is taken up again for
each kill: of Ajuste, its agents, guardians and watch, each alone and together, until a little after the adoption.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, combinations
from pathlib import Path
from typing import Final

from benchmarks.victims import stat_of

SETTING: Final = Path("/proc/sys/net/ipv4/tcp_retries2")
BEFORE: Final = "15"
WINNER: Final = "8"
PROBATION_SECONDS: Final = 4
AFTER_SECONDS: Final = 1.5
"""The last kills fall so long after the probation."""
LONGEST_SECONDS: Final = 900.0
_REFUSED: Final = 2
PARTS: Final = ("ajuste", "ajuste-agent", "ajuste-guardian", "ajuste-watch")
ADOPTED: Final = Path("/var/lib/ajuste/adopted")
JOURNALS: Final = Path("/var/lib/ajuste/journals")
BOOT: Final = Path("/etc/sysctl.d")
SERVICE: Final = """\
import http.server, pathlib
setting = pathlib.Path("/proc/sys/net/ipv4/tcp_retries2")
total = count = 0.0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global total, count
        count += 100
        total += 100 * {"8": 0.008}.get(setting.read_text().strip(), 0.010) * (1 + (count % 700) / 7000)
        body = f"# TYPE took summary\\ntook_sum {total}\\ntook_count {count}\\n".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 21799), Handler).serve_forever()
"""
LIVE: Final = (
    *("live", "--set", f"net.ipv4.tcp_retries2={BEFORE},{WINNER}", "--adopt", "--probation", f"{PROBATION_SECONDS}s"),
    *("--slice", "2s", "--washout", "0", "--for", "10m", "--min-effect", "5%", "--seed", "2", "--confidence", "70%"),
    *("--metric", "took,s,lower=prometheus:http://127.0.0.1:21799/#took", "--guard", "took < 5s"),
)


class Adopter:
    """An experiment whose winner is about to be adopted, in ``root``."""

    def __init__(self, root: Path, say: Callable[[str], None]) -> None:
        self.home = root / "home"
        self.before_probation = root / "before"
        self.log = root / "log"
        self.say = say

    def ajuste(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        program = Path(sys.executable).with_name("ajuste")
        environment = {**os.environ, "AJUSTE_HOME": str(self.home)}
        out = self.log.open("w")
        return subprocess.Popen([program, *words], env=environment, stdout=out, stderr=out, text=True)

    def output(self, *words: str) -> tuple[int, str]:
        """Return exit code and output of a command."""
        code = self.ajuste(*words).wait(LONGEST_SECONDS)
        return code, self.log.read_text()

    def on_probation(self) -> subprocess.Popen[str]:
        """Take the experiment up until its winner is in force, on probation."""
        process = self.ajuste(*LIVE)
        deadline = time.monotonic() + LONGEST_SECONDS
        while not ("is on probation" in self.log.read_text() and SETTING.read_text().strip() == WINNER):
            if process.poll() == _REFUSED:  # On a busy machine the played service may not answer in time.
                process = self.ajuste(*LIVE)
            elif process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no probation: {self.log.read_text()[-2000:]}")
            time.sleep(0.005)
        return process

    def prepare(self) -> None:
        """Measure up to the probation, once."""
        process = self.on_probation()
        process.kill()
        process.wait()
        await_none()
        self.output("restore")
        copy(self.home, self.before_probation)

    def kill(self, parts: Sequence[str], generator: random.Random) -> str:
        """Kill ``parts`` at a random moment; returns the outcome, which begins with ``wrong`` if it is none."""
        shutil.rmtree(self.home)
        copy(self.before_probation, self.home)
        process = self.on_probation()
        time.sleep(generator.uniform(0, PROBATION_SECONDS + AFTER_SECONDS))
        victims = [pid for part in parts for pid in ([process.pid] if part == "ajuste" else named(part))]
        generator.shuffle(victims)
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = process.wait(LONGEST_SECONDS)
        await_none()
        output = self.log.read_text()
        caught = SETTING.read_text().strip()
        restored, _ = self.output("restore")
        wrong = self._look(restored)
        if wrong:
            return f"wrong: {wrong}; exit code {code}, {caught} before `ajuste restore`: {output[-600:]}"
        outcome = "adopted" if records() else "restored"
        by_hand = ", by hand" if outcome == "restored" and caught == WINNER else ""
        if outcome == "adopted" and (why := self._undo()):
            return f"wrong: {why}"
        return f"{outcome}{by_hand}"

    def _look(self, restored: int) -> str:
        now, adopted = SETTING.read_text().strip(), records()
        journals = {path.stem for path in ADOPTED.glob("*.journal")} if ADOPTED.exists() else set()
        left = [path.name for path in (*JOURNALS.glob("*"), *(self.home / "state/journals").glob("*"))]
        boot = [path.name for path in BOOT.iterdir()]
        if restored:
            return f"`ajuste restore` ended with {restored}"
        if now != (WINNER if adopted else BEFORE):
            return f"the value is {now} with {len(adopted)} records"
        if journals != {path.stem for path in adopted}:
            return f"journals {sorted(journals)} beside records {[path.name for path in adopted]}"
        if left:
            return f"journals are left: {left}"
        if boot and not adopted:
            return f"{boot} would set it at boot"
        _, status = self.output("live", "status", "--json")
        adoptions = json.loads(status)["adopted"]
        if len(adoptions) != len(adopted) or any(not adoption["in_force"] for adoption in adoptions):
            return f"`ajuste live status` shows {adoptions}"
        return ""

    def _undo(self) -> str:
        (record,) = records()
        code, output = self.output("restore", "--run", json.loads(record.read_text())["run"])
        left = [path.name for path in (*ADOPTED.iterdir(), *BOOT.iterdir())]
        if code or left or SETTING.read_text().strip() != BEFORE:
            return f"not undone: exit code {code}, {SETTING.read_text().strip()}, {left}: {output[-600:]}"
        return ""


def copy(home: Path, place: Path) -> None:
    """Copy a home, without the pipe of an experiment that was killed."""
    shutil.copytree(home, place, symlinks=True, ignore=shutil.ignore_patterns("beat-*"))


def records() -> list[Path]:
    """Return the records of adoptions."""
    return sorted(ADOPTED.glob("*.json")) if ADOPTED.exists() else []


def named(name: str) -> list[int]:
    """Return the processes of that name, which are all ours in a namespace."""
    stats = {int(path.name): stat_of(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    return [pid for pid, stat in stats.items() if stat and stat[0] == name and stat[1] != "Z"]


def await_none() -> None:
    """Wait until no process of an experiment lives."""
    deadline = time.monotonic() + 60
    while any(map(named, PARTS)):
        if time.monotonic() > deadline:
            raise RuntimeError(f"still there: {[part for part in PARTS if named(part)]}")
        time.sleep(0.02)


@contextmanager
def service() -> Iterator[None]:
    """The played service."""
    process = subprocess.Popen([sys.executable, "-c", SERVICE])
    time.sleep(1)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def attack(kills: int, seed: int, say: Callable[[str], None]) -> Counter[str]:
    """Kill so many times; returns the outcomes, each with what was killed."""
    generator = random.Random(seed)
    subsets = tuple(chain.from_iterable(combinations(PARTS, size) for size in range(1, len(PARTS) + 1)))
    outcomes: Counter[str] = Counter()
    queue: list[tuple[str, ...]] = []
    root = Path(tempfile.mkdtemp(prefix="ajuste-adopted-"))
    with service():
        adopter = Adopter(root, say)
        adopter.prepare()
        say("the winner is proved")
        for number in range(kills):
            if not queue:
                queue = list(subsets)
                generator.shuffle(queue)
            parts = queue.pop()
            outcome = adopter.kill(parts, generator)
            say(f"{number + 1}: {' + '.join(parts)}: {outcome}")
            outcomes[outcome.partition(":")[0]] += 1
    shutil.rmtree(root)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("changing settings needs root")
    inside = "AJUSTE_ADOPTED_KILLS"
    if inside not in os.environ:
        places = " ".join(map(str, ("/run", "/var/log", "/var/lib/ajuste", BOOT)))
        script = f"set -e; for place in {places}; do mount -t tmpfs -o mode=0755 none $place; done; mkdir /run/lock; "
        script += 'mount -t sysfs none /sys; ip link set lo up; exec "$@"'
        words = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh"]
        command = [*words, sys.executable, "-m", "benchmarks.adopted_kills", *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, inside: "1"}, check=False).returncode
    outcomes = attack(chosen.kills, chosen.seed, lambda text: print(text, file=sys.stderr, flush=True))
    print(json.dumps(outcomes))
    return 0 if not outcomes["wrong"] else 1


if __name__ == "__main__":
    sys.exit(main())
