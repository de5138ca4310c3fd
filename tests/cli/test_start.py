"""What a command loads before it does anything: everybody waits for it, each time."""

from __future__ import annotations

import subprocess
import sys

SLOW = ("scipy.stats", "scipy.optimize", "scipy.interpolate", "ruptures", "sklearn", "optuna", "distributed")
OF_GUESTS = ("ajuste.executor.guest.guest", "qemu", "elftools")


def loaded_by(*commands: str) -> set[str]:
    modules = ", ".join(f"ajuste.cli.{command}" for command in commands)
    program = f"import sys, {modules}; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def test_an_experiment_on_the_host_loads_nothing_of_guests_and_no_large_library_that_few_need() -> None:
    loaded = loaded_by("run", "compare", "report", "analyse")
    assert "ajuste.executor.host.host" in loaded
    assert not loaded.intersection((*SLOW, *OF_GUESTS))
