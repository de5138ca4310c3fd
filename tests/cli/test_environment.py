"""The environment of a workload is the one that Ajuste was called with."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tiers import slow

pytestmark = pytest.mark.usefixtures("machine_lock")

STUDY = """\
schema = 1
name = "searched"
[[factor]]
name = "workload.size"
levels = "40..90"
[workload]
kind = "matrix"
parameters = { repetitions = 1 }
prepare = ["cp", "/proc/self/environ", "seen"]
[target]
kind = "host"
[analysis]
metrics = ["elapsed"]
"""
SEARCH = ("tune", "searched.toml", "--trials", "30")
COMPARISON = ("compare", "--nice", "0,1", "--blocks", "3", "--warm-up", "0", "--", "cp", "/proc/self/environ", "seen")


@pytest.mark.parametrize("command", [COMPARISON, *slow(SEARCH)], ids=["compare", "tune"])
def test_a_workload_finds_the_environment_of_the_call_byte_for_byte(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Also after a search has begun, whose libraries set variables of their own. What is added is the padding that
    moves the stack from trial to trial.
    """
    (tmp_path / "searched.toml").write_text(STUDY)
    environment = {
        b"ZED": b"last comes first",
        b"PATH": os.environb[b"PATH"],
        b"ODD": b"\xff\xe9 \xf4\x8f\xbe\x80 caf\xc3\xa9\n",
        b"B\xfe": b"",
        b"HOME": os.fsencode(tmp_path),
        b"A": b"1",
    }
    done = subprocess.run(
        [Path(sys.executable).parent / "ajuste", *command],
        env={**environment, b"AJUSTE_HOME": os.fsencode(tmp_path / "home")},
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    seen = re.sub(rb"AJUSTE_PADDING=x*\0", b"", (tmp_path / "seen").read_bytes())
    assert seen == b"".join(name + b"=" + value + b"\0" for name, value in environment.items())
