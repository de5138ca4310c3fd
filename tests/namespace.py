"""A network of its own for programs that change settings: nothing of this machine is reached."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a network of its own needs root")


def in_namespace(script: str, directory: Path, *, limit_s: float = 60) -> str:
    """Return what ``script`` printed, run by a shell with an empty network, /run and registry of journals of its own;
    every command must succeed.
    """
    assert shutil.which("unshare")
    Path("/var/lib/ajuste").mkdir(exist_ok=True)
    mounts = "".join(f"mount -t tmpfs -o mode=0755 none {place}; " for place in ("/run", "/var/log", "/var/lib/ajuste"))
    begin = f"set -eu; {mounts}mount -t sysfs none /sys; ip link set lo up\n"
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c", begin + script],
        cwd=directory,
        text=True,
        capture_output=True,
        timeout=limit_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_service(begin: str, script: str, directory: Path, files: Mapping[str, str], *, limit_s: float) -> str:
    """Return what ``script`` printed after ``begin``, which knows ``ajuste`` and ``python``, beside ``files``."""
    for name, text in files.items():
        (directory / name).write_text(text)
    ajuste = f"AJUSTE_HOME={directory}/home {Path(sys.executable).with_name('ajuste')}"
    return in_namespace(begin.format(python=sys.executable, ajuste=ajuste) + script, directory, limit_s=limit_s)
