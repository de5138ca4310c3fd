"""The harnesses by name, and those that a project seems to use."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ajuste_ci.harnesses.base import Harness
from ajuste_ci.harnesses.criterion import Criterion
from ajuste_ci.harnesses.divan import Divan
from ajuste_ci.harnesses.go import GoBench
from ajuste_ci.harnesses.google import GoogleBenchmark
from ajuste_ci.harnesses.hyperfine import Hyperfine
from ajuste_ci.harnesses.libtest import Libtest

HARNESSES: Final[dict[str, Harness]] = {
    harness.name: harness for harness in (Criterion(), Divan(), Libtest(), GoBench(), GoogleBenchmark(), Hyperfine())
}


def harnesses_of(project: Path) -> tuple[str, ...]:
    """Return the names of the harnesses that the project in that directory seems to use."""
    return tuple(name for name, harness in HARNESSES.items() if harness.is_used(project))
