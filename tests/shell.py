"""The command line as a person uses it: a process of its own, with a home of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SMALL = """\
schema = 1
name = "small"
question = "Does a larger minimum granularity mean fewer switches?"

[[factor]]
name = "sched_min_granularity_ns"
levels = [750000, 75000000]

[workload]
kind = "matrix"
parameters = { size = 100, repetitions = 2 }

[[workload.background]]
kind = "spin"

[target]
kernel = "debian:5.10"
instruction_ns = 8

[analysis]
metrics = ["involuntary-switches"]
describe = ["elapsed"]

[budget]
min_blocks = 3
max_blocks = 3
"""


def takes_the_machine(command: str) -> bool:
    """Whether it works only while no other experiment goes on here: such tests use the fixture ``machine_lock``."""
    return re.search(r"ajuste (compare|doctor|restore)\b", command) is not None


@dataclass(frozen=True)
class Shell:
    """Runs ``ajuste`` in ``directory``, with everything that it keeps below ``home``."""

    directory: Path
    home: Path

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [Path(sys.executable).parent / "ajuste", *words],
            cwd=self.directory,
            env={**os.environ, "AJUSTE_HOME": str(self.home), "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def __call__(self, *words: str, expect: int = 0) -> tuple[str, str]:
        """What it said on stdout and stderr; its exit code must be ``expect``."""
        process = self.start(*words)
        said, complained = process.communicate()
        assert process.returncode == expect, f"exit code {process.returncode}\n{said[-3000:]}\n{complained[-3000:]}"
        return said, complained

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json")[0])
