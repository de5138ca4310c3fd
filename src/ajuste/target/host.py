"""The target ``host``: this machine as it is. Nothing is written here in this version."""

from __future__ import annotations

import subprocess
import time
from types import TracebackType
from typing import Self

from ajuste.model.error import RequestError, RunError
from ajuste.model.event import Hello, parse_event
from ajuste.model.observation import Observation
from ajuste.model.plan import Plan
from ajuste.native import AGENT, native_program
from ajuste.target.stream import read_trial

_SLACK_SECONDS = 60
_SHOWN = 300


class HostTarget:
    """Runs plans that write nothing, by ``ajuste-agent run``."""

    def __init__(self) -> None:
        self._hello: Hello | None = None

    @property
    def hello(self) -> Hello:
        assert self._hello is not None, "the target was not entered"
        return self._hello

    @property
    def environment(self) -> dict[str, str]:
        return {
            "kernel": self.hello.kernel,
            "kernel build": self.hello.build,
            "clock": "wall",
            "CPUs": str(self.hello.cpus),
            "memory": f"{self.hello.memory_bytes >> 20} MiB",
        }

    @property
    def parallel(self) -> int:
        return 1

    def __enter__(self) -> Self:
        observation = self.run(Plan(id="hello"))
        if observation.problem:
            raise RunError(f"the agent does not work on this machine: {observation.problem}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def run(self, plan: Plan) -> Observation:
        """As ``Target.run``. Raises RequestError for a plan that writes."""
        if plan.writes:
            names = ", ".join(write.tunable for write in plan.writes)
            raise RequestError(
                f"the plan changes {names}: changing this machine is not in this version",
                hint='use a guest instead: target = "vm"',
            )
        began = time.monotonic()
        said, complaint, late = _carry_out(plan)
        first, _, rest = said.partition(b"\n")
        hello = _hello(first)
        if hello is not None:
            self._hello = hello
        stream = read_trial(rest, plan)
        problem = stream.problem
        if late:
            problem = "the agent did not end within its time limit"
        elif hello is None:
            problem = f"the agent did not say hello: {complaint[:_SHOWN] or 'it said nothing'}"
        return Observation(
            lines=stream.lines,
            events=stream.events,
            problem=problem,
            console=complaint,
            host_seconds=time.monotonic() - began,
        )


def _hello(line: bytes) -> Hello | None:
    try:
        event = parse_event(line)
    except ValueError:
        return None
    return event if isinstance(event, Hello) else None


def _carry_out(plan: Plan) -> tuple[bytes, str, bool]:
    """What the agent said, what it complained of, and whether it had to be killed."""
    limit_s = (
        plan.timeout_ns + plan.settle_ns + plan.observe_ns + plan.perturbation.start_delay_ns
    ) / 1e9 + _SLACK_SECONDS
    agent = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", "--", native_program(AGENT), "run", "--plan", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    try:
        said, complaint = agent.communicate(plan.model_dump_json().encode(), timeout=limit_s)
    except subprocess.TimeoutExpired:
        agent.kill()
        said, complaint = agent.communicate()
        return said, complaint.decode(errors="replace"), True
    except BaseException:
        # Told to end, it ends what it has started first.
        agent.terminate()
        agent.wait()
        raise
    return said, complaint.decode(errors="replace"), False
