"""Measuring, on a target that the test plays and on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from ajuste.executor.host.host import HostExecutor
from ajuste.model.error import RunError
from ajuste.model.event import Event, Exited, Output
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste_doctor.measuring import Length, measure
from played import PlayedExecutor

SHORT = Length(sleeps=20, runs=4, job_s=0.02, limit_s=30, fewest=3)
JITTER = "jitter sleeps=20 interval_us=1000 min_ns=1 p50_ns=2000 p90_ns=3 p99_ns=40000 p999_ns=5 max_ns=60000\n"
MATRIX = "matrix size=200 repetitions=1 checksum=1\n"


class Played(PlayedExecutor):
    """A target on which a repetition of the job takes a millisecond of CPU time and twice as long as that."""

    def __init__(self, **spoilt: Any) -> None:
        super().__init__()
        self.spoilt = spoilt

    def run(self, plan: Plan) -> Observation:
        self.plans.append(plan)
        assert plan.workload is not None
        assert plan.writes == ()
        if "problem" in self.spoilt:
            return Observation(problem=self.spoilt["problem"])
        words = plan.workload.argv
        repetitions = int(words[-1]) if words[1] == "matrix" else 1
        text = self.spoilt.get("output", MATRIX if words[1] == "matrix" else JITTER)
        common: dict[str, Any] = {"voluntary_switches": 1, "involuntary_switches": 1, "minor_faults": 1}
        common |= {"major_faults": 0, "peak_rss_bytes": 1, "index": 0, "at_ns": 4, "role": "workload"}
        exited = Exited(
            exit_code=self.spoilt.get("exit_code", 0),
            wall_ns=2_000_000 * repetitions,
            user_ns=900_000 * repetitions,
            system_ns=100_000 * repetitions,
            **common,
        )
        events: tuple[Event, ...] = (
            exited,
            Output(at_ns=5, role="workload", index=0, stream="stdout", text=text),
        )
        return Observation(events=events)


def test_the_job_is_made_as_long_as_asked_for_and_run_as_often() -> None:
    target = Played()
    messages: list[str] = []
    measured = measure(target, SHORT, messages.append)
    assert [(run.elapsed_s, run.cpu_s) for run in measured.runs] == [(0.04, 0.02)] * 4
    assert measured.jitter is not None
    assert (measured.jitter.p50_us, measured.jitter.p99_us, measured.jitter.max_us) == (2, 40, 60)
    programs = [plan.workload.argv[1] for plan in target.plans if plan.workload]
    assert programs == ["jitter", *["matrix"] * 6]
    assert messages[-1].startswith("measuring the job: run 4 of 4")


def test_where_it_takes_too_long_there_are_fewer_runs() -> None:
    measured = measure(Played(), Length(sleeps=20, runs=9, job_s=0.02, limit_s=0, fewest=3))
    assert len(measured.runs) == 3


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [
        ({"problem": "the agent is lost"}, "could not run jitter: the agent is lost"),
        ({"exit_code": 1}, "jitter ended with exit code 1"),
        ({"output": "nonsense"}, "could not measure the jitter of sleeps"),
        ({"output": JITTER}, "the job failed"),
    ],
)
def test_what_goes_wrong_is_one_clear_error(spoilt: dict[str, Any], words: str) -> None:
    with pytest.raises(RunError, match=words):
        measure(Played(**spoilt), SHORT)


def test_this_machine_is_measured_by_the_agent() -> None:
    with HostExecutor() as target:
        measured = measure(target, SHORT)
    assert len(measured.runs) == 4
    assert all(run.cpu_s > 0 for run in measured.runs)
    assert [run.began_s for run in measured.runs] == sorted(run.began_s for run in measured.runs)
    assert measured.jitter is not None
    assert 0 < measured.jitter.p50_us <= measured.jitter.p99_us <= measured.jitter.max_us
    assert measured.steal_percent is not None
    assert 0 <= measured.steal_percent <= 100
    assert measured.others_percent is not None
    assert 0 <= measured.others_percent <= 100
