"""Time that a service adds to a trial on this machine: its start, the wait until it is ready, its account and its stop.

A service that needs no time of its own is started and stopped in trials of ``true``, beside the same trials without it;
and so is redis-server, where it is installed, with what it takes itself.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from ajuste.executor.host.host import HostExecutor
from ajuste.machine.home import SERVICE, native_program
from ajuste.model.plan import Command, Plan
from ajuste.outputs.services import accounts
from benchmarks.comparison import Comparison, by_turns, seconds

ROUNDS = 30
MOST_SECONDS = 0.2
PORT = 21790
_ALONE, _SLEEP, _REDIS, _OWN = "no service", "sleep", "redis-server", "redis-server by hand"


def measure() -> tuple[Comparison, ...]:
    """Whole trials, by the time from asking for one to its answer."""
    redis = shutil.which("redis-server")
    with tempfile.TemporaryDirectory(prefix="ajuste-services-") as directory, HostExecutor() as host:
        plans = {_ALONE: Plan(id="alone", workload=Command(argv=("/bin/true",)))}
        plans[_SLEEP] = _served(Path(directory) / "sleep", "none", ("/bin/sleep", "1000"))
        if redis:
            command = (redis, "--port", str(PORT), "--save", "")
            plans[_REDIS] = _served(Path(directory) / "redis", f"port:{PORT}", command)
        ways: dict[str, Callable[[], float]] = {name: partial(_trial, host, plan) for name, plan in plans.items()}
        if redis:
            ways[_OWN] = partial(_by_hand, command)
        figures = by_turns(ways, ROUNDS)
    typical = {name: median(values) for name, values in figures.items()}
    added = [typical[_SLEEP] - typical[_ALONE]]
    added += [typical[_REDIS] - typical[_OWN] - typical[_ALONE]] if redis else []
    milliseconds = {name: [1000 * value for value in values] for name, values in figures.items()}
    comparison = Comparison(
        name="services",
        what="a trial of true on this machine, with and without a service",
        unit="ms",
        figures=milliseconds,
        goal=f"a service adds under {MOST_SECONDS} s beyond its own time",
        reached=max(added) < MOST_SECONDS,
    )
    return (comparison,)


def _served(directory: Path, ready: str, command: tuple[str, ...]) -> Plan:
    program = str(native_program(SERVICE))
    start = (program, "start", "--name", "one", "--directory", str(directory), "--ready", ready, "--", *command)
    before = (Command(argv=start), Command(argv=(program, "begin", str(directory))))
    after = (Command(argv=(program, "stop", str(directory))),)
    return Plan(id=directory.name, before=before, workload=Command(argv=("/bin/true",)), after=after)


def _trial(host: HostExecutor, plan: Plan) -> float:
    began = time.monotonic()
    observation = host.run(plan)
    took = time.monotonic() - began
    service_accounts = accounts(observation.events)
    if (
        observation.problem
        or len(service_accounts) != bool(plan.before)
        or any(account.died or account.killed for account in service_accounts)
    ):
        raise RuntimeError(f"the trial {plan.id} went wrong: {observation.problem or observation.lines}")
    return took


def _by_hand(command: tuple[str, ...]) -> float:
    """Return what the server takes itself, from its start to the first answer, and from SIGTERM to its end."""
    return seconds(lambda: _start_and_stop(command))


def _start_and_stop(command: tuple[str, ...]) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        next(line for line in server.stdout if "Ready to accept connections" in line)
        server.terminate()
        server.communicate()
