"""Causes that were planted, and whether ``ajuste why`` names them: the first function of the difference is the one that
was changed, or one that only the change calls more often.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from ajuste.machine.home import home
from ajuste.model.cost import CostComparison
from benchmarks.comparison import Comparison

_AJUSTE: Final = Path(sys.executable).parent / "ajuste"
_PATCHES: Final = Path(__file__).parent
_SOURCE: Final = ("--source", "debian:6.1", "--patch")
_JOB: Final = "/ajuste/bin/ajuste-workloads matrix --size 200 --repetitions 3"
_TURNS: Final = f"{_JOB} & {_JOB}; wait"
_PROGRAMS: Final = ("dd", "sleep")
_FILLED: Final = "/study/dd if=/dev/zero bs=1 count=20000 | /study/sleep 0.5"
_SCHEDULING: Final = frozenset(
    (
        "__update_load_avg_se",
        "__schedule",
        "__switch_to",
        "__switch_to_asm",
        "finish_task_switch.isra.0",
        "pick_next_task_fair",
        "update_curr",
    )
)


class Cause(NamedTuple):
    """``words`` compare a baseline with what has the cause, or name a study that does; one of ``functions`` must stand
    first: by instructions, or by the time of the machine that the study models.
    """

    words: tuple[str, ...]
    functions: frozenset[str]

    @property
    def study(self) -> Path | None:
        return Path(self.words[0]) if self.words[0].endswith(".toml") else None


CAUSES: Final = {
    "one more lock round": Cause(
        (
            *_SOURCE,
            str(_PATCHES / "one-more-lock-round.patch"),
            "--file",
            "dd",
            "--file",
            "sleep",
            "--",
            "sh",
            "-c",
            _FILLED,
        ),
        frozenset(("mutex_lock", "mutex_unlock", "pipe_write")),
    ),
    "a slow path of write(2)": Cause(
        (
            *_SOURCE,
            str(_PATCHES / "slow-write.patch"),
            "--",
            "dd",
            "if=/dev/zero",
            "of=/dev/null",
            "bs=1",
            "count=20000",
        ),
        frozenset(("write_null",)),
    ),
    "a changed slice": Cause(
        ("--kernel", "debian:6.1", "--set", "sched_min_granularity_ns=750ms,750us", "--", "sh", "-c", _TURNS),
        _SCHEDULING,
    ),
    "false sharing": Cause((str(_PATCHES / "false-sharing.toml"),), frozenset(("count",))),
    "remote allocation": Cause(
        (str(_PATCHES / "remote-allocation.toml"),), frozenset(("clear_page_orig", "clear_page_rep", "clear_page_erms"))
    ),
}


def measure() -> tuple[Comparison, ...]:
    """The share of the whole difference that the first function makes."""
    figures: dict[str, list[float]] = {}
    named = 0
    for name, cause in CAUSES.items():
        first, share = _first_function(cause)
        is_named = first in cause.functions
        named += is_named
        figures[f"{name}: {first}{'' if is_named else ' (NOT THE CAUSE)'}"] = [100 * share]
    return (
        Comparison(
            name="planted",
            what="the first function that `ajuste why` names, and its share of the difference",
            unit="%",
            figures=figures,
            goal=f"{named} of {len(CAUSES)} planted causes are named first; goal: all",
            reached=named == len(CAUSES),
        ),
    )


def _first_function(cause: Cause) -> tuple[str, float]:
    """Return the name of the first function, and its share of the difference."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "cache").symlink_to(home().cache)
        for program in _PROGRAMS:
            shutil.copy(f"/bin/{program}", directory)
        environment = {**os.environ, "AJUSTE_HOME": directory}

        def ajuste(*words: str) -> str:
            return subprocess.run(
                [_AJUSTE, *words], cwd=directory, env=environment, check=True, stdout=subprocess.PIPE, text=True
            ).stdout

        if cause.study is None:
            ajuste("compare", "--vm", "--metric", "instructions", "--blocks", "2", "--name", "planted", *cause.words)
        else:
            shutil.copy(cause.study, directory)
            _build(_PATCHES / "counters.c", Path(directory) / "counters")
            ajuste("run", cause.study.name, "--quiet")
        costs = CostComparison.model_validate(json.loads(ajuste("why", "planted", "--json"))["costs"])
    if costs.modelled is not None:
        machine, rows = costs.modelled.machine, costs.modelled.functions
        whole = sum(part.difference(machine) for part in costs.modelled.parts)
        return rows[0].name, rows[0].difference(machine) / whole
    whole = sum(part.difference for part in costs.parts)
    return costs.functions[0].name, costs.functions[0].difference / whole


def _build(source: Path, program: Path) -> None:
    command = ("cc", "-O2", "-static", "-pthread", "-o", program, source)
    subprocess.run(command, check=True)
