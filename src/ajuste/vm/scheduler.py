"""The program of a BPF scheduler (sched_ext) that was built for a kernel."""

from __future__ import annotations

from pathlib import Path

from ajuste.kernel.spec import BUILT
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage


def how_to_build(spec: str) -> str:
    """The command that builds a kernel with its schedulers: under the name that was asked for, if it was one."""
    kind, _, name = spec.partition(":")
    return f"ajuste kernel build --source debian:6.12 --config lab-ext --name {name if kind == BUILT else 'ext'}"


def scheduler_of(kernel: KernelImage, name: str) -> Path:
    """The file of ``name``. Raises RequestError where the kernel was not built with it, with what it has."""
    if kernel.schedulers is None:
        raise RequestError(
            f"{kernel.spec} was not built with BPF schedulers (sched_ext), and {name} is asked for",
            hint=how_to_build(kernel.spec),
        )
    program = kernel.schedulers / name
    if not program.is_file():
        known = ", ".join(sorted(file.name for file in kernel.schedulers.iterdir()))
        raise RequestError(f"{kernel.spec} was built without the scheduler {name}; it has {known}")
    return program
