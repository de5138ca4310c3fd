"""Runs that ask about scheduling without a latency, and the command that adds one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

from ajuste.catalogue.loader import catalogue
from ajuste.model.continuation import REPRODUCE
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.trial import KERNEL_FACTOR

_ATTRIBUTES: Final = frozenset({"nice", "policy", "affinity", "cgroup_weight", "cgroup.cpu.max", "cgroup.cpu.idle"})
_PROGRAMS: Final = re.compile(r"\b(hackbench|schbench|cyclictest|perf bench sched|stress-ng --switch)\b")
_PATCHED: Final = re.compile(r"^\+\+\+ \S*kernel/sched/", re.MULTILINE)
_LATENCY: Final = re.compile(r"latenc|delay|wake-?up|jitter", re.IGNORECASE)
# Options that are of the measured command, or name this run's own metrics and amount.
_OF_THE_COMMAND: Final = frozenset({"--metric", "--blocks", "--name", "--prepare"})
_JITTER: Final = ("--", "jitter")


def asks_about_scheduling(results: Results, study: str = "") -> bool:
    """Return whether a factor is the scheduler's; of kernels, whether a patch in ``study`` or the workload is."""
    names = {factor.name for factor in results.factors}
    tunables = catalogue().tunables
    if any(name in _ATTRIBUTES or (name in tunables and _is_of_scheduler(name)) for name in names):
        return True
    workload = str(results.environment.get("workload", ""))
    return KERNEL_FACTOR in names and bool(_PATCHED.search(study) or _PROGRAMS.search(workload))


def _is_of_scheduler(name: str) -> bool:
    return catalogue().tunables[name].subsystem.startswith("scheduler")


def measures_latency(results: Results) -> bool:
    """Return whether a metric is a latency, as its name or title has it."""
    return any(map(_is_latency, results.metrics))


def _is_latency(metric: Metric) -> bool:
    return _LATENCY.search(f"{metric.name} {metric.title}") is not None


def latency_command(results: Results, built: Mapping[str, str]) -> str | None:
    """Return the command that asks the same of the delay of wake-ups, beside the run's load or else one that spins;
    ``None`` where it is not known. ``built`` has how others build the kernels of this machine.
    """
    if built or [factor.name for factor in results.factors] == [KERNEL_FACTOR]:
        return _of_kernels(results, built)
    words = shlex.split(REPRODUCE.of(results)[0]) if REPRODUCE.of(results) else []
    if words[:2] != ["ajuste", "compare"] or words.count("--") != 1:
        return None
    options = words[2 : words.index("--")]
    remaining = [
        word
        for place, word in enumerate(options)
        if word.partition("=")[0] not in _OF_THE_COMMAND and (not place or options[place - 1] not in _OF_THE_COMMAND)
    ]
    load = [] if any(word.partition("=")[0] == "--background" for word in remaining) else ["--background", "spin"]
    return shlex.join(["ajuste", "compare", *remaining, *load, *_JITTER])


def _of_kernels(results: Results, built: Mapping[str, str]) -> str | None:
    if [factor.name for factor in results.factors] != [KERNEL_FACTOR]:
        return None
    kernels = ",".join(built.get(level, level) for level in results.factors[0].levels)
    return shlex.join(["ajuste", "compare", "--kernel", kernels, "--background", "spin", *_JITTER])
