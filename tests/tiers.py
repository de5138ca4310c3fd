"""Selection of tests: those that are slow run only by ``make test-all``, and where all programs are installed
(``AJUSTE_TESTS_COMPLETE=1``, as in ``.ci/run``) each runs but those for what the machine cannot have.
"""

from __future__ import annotations

import os
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Return values of a parameter with which a test is slow."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


COMPLETE = os.environ.get("AJUSTE_TESTS_COMPLETE") == "1"

ACCEPTED = {
    # The machine
    "needs two CPUs": "a machine of one",
    "this machine has swap": "its owner's decision",
    "this machine has no disk": "a container without a disk of its own",
    "no loop devices here": "a container without /dev/loop-control",
    "no interrupts to be seen here": "a container whose /proc/irq is hidden",
    "no device, or a name that is not published": "a container without a network device",
    "/dev/cpu_dma_latency is not here": "a container's /dev",
    # Its kernel
    "this kernel has no tracing": "built without ftrace, or hidden by a container",
    "this kernel does not say how it was built": "no /boot/config and no /proc/config.gz",
    "this kernel does not account for waiting": "built without CONFIG_SCHED_INFO",
    "the agent hardly ever had to wait": "CPUs that the host of a virtual machine takes away",
    "this machine has cgroup v2": "a test of those without",
    "this machine has no cgroup v2": "only cgroup v1",
    "groups have every controller here": "a test of those that lack one",
    "every congestion control of this machine is allowed": "a kernel with one only",
    "the module is loaded": "a module that only guests of the studies load",
    "(sch_netem)": "a kernel without this queue",
    "(it takes root)": "a kernel that gives nobody a network",
    # Its user
    "only for an ordinary user": "root may do everything",
    "ajuste_guest is not installed": "a package that is tested alone",
    # Programs that Debian does not have, and what takes hours to make
    "Perfetto's trace_processor_shell is not in PATH": "no package of Debian has it",
    "no built kernel is cached on this machine": "only who builds kernels has them: `make bench`",
    "no source of a kernel is in the cache": "the same",
    "mine:ext was not built": "the same",
    "built kernel not found": "the same",
    "no free package of Debian has": "a benchmark that its users build",
    "no clang with libbpf 1.2": "Debian 12 has libbpf 1.1",
    "needs a directory that is not here": "sources of a benchmark that nobody packages",
}
"""Words in the reasons of skips, and when the machine cannot have what is missing."""


def insist(report: pytest.TestReport, complete: bool = COMPLETE) -> None:
    """Make a failure of a skip for want of a program."""
    if not (complete and report.skipped and isinstance(report.longrepr, tuple)):
        return
    path, line, reason = report.longrepr
    if not any(words in reason for words in ACCEPTED):
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: {reason}\nInstall what is missing: setup/packages.txt names it."
