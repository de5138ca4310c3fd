"""Time from nothing to a command that ran in a guest: Ajuste beside virtme-ng, same kernel, both emulated (no KVM)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from ajuste.machine.home import home
from ajuste.model.kernel import KernelImage
from ajuste_guest.kernel.fetch import fetch_kernel
from benchmarks.comparison import Comparison, by_turns, seconds
from benchmarks.guest import MEMORY_MIB

SPEC = "debian:6.1/generic"
"""virtme-ng shares the host's files by 9p, which the cloud flavour does not have."""

ROUNDS = 5
_BIN = Path(sys.executable).parent


def measure() -> tuple[Comparison, ...]:
    """Whole processes: from the start of the command to its end."""
    with installed() as vmlinuz:
        figures = by_turns(
            {
                "ajuste": lambda: seconds(lambda: _run([sys.executable, "-m", "benchmarks.guest", SPEC])),
                "virtme-ng": lambda: seconds(lambda: run_virtme_ng(vmlinuz)),
            },
            ROUNDS,
        )
    comparison = Comparison(
        name="cold-start",
        what=f"true in a guest with {SPEC}, 1 CPU, {MEMORY_MIB} MiB, emulated",
        unit="s",
        figures=figures,
        goal="no slower than virtme-ng",
        reached=median(figures["ajuste"]) <= median(figures["virtme-ng"]),
    )
    return (comparison,)


@contextmanager
def installed() -> Iterator[Path]:
    """The kernel where virtme-ng, which is seen to work with it, looks for kernels."""
    image = fetch_kernel(SPEC, home(), say=print)
    with tempfile.TemporaryDirectory() as directory:
        vmlinuz = _as_installed(image, Path(directory))
        _check(vmlinuz)
        yield vmlinuz


def run_virtme_ng(vmlinuz: Path) -> None:
    """``true`` in its guest."""
    _say(_virtme_ng(vmlinuz))


def _as_installed(image: KernelImage, root: Path) -> Path:
    """The kernel and its modules laid out as virtme-ng looks for them, without a second copy of the files."""
    assert image.modules is not None
    shutil.copytree(image.modules, root / "lib/modules" / image.release, copy_function=_link, symlinks=True)
    subprocess.run(["depmod", "-b", root, image.release], check=True, env=_environment())
    (root / "boot").mkdir()
    vmlinuz = root / "boot" / f"vmlinuz-{image.release}"
    shutil.copy(image.vmlinuz, vmlinuz)
    return vmlinuz


def _link(source: str, destination: str) -> str:
    try:
        os.link(source, destination)
    except OSError:  # Another file system.
        shutil.copy(source, destination)
    return destination


def _virtme_ng(vmlinuz: Path, *options: str, command: str = "true") -> list[str]:
    """Return a command of virtme-ng, which wants a terminal; script(1) gives it one."""
    words = ["vng", *options, "-r", str(vmlinuz), "--disable-kvm", "--disable-microvm", "--force-9p"]
    words += ["--cpus", "1", "--memory", f"{MEMORY_MIB}M", "--exec", command]
    return ["script", "-qec", shlex.join(words), "/dev/null"]


def _check(vmlinuz: Path) -> None:
    """Once, and not timed: that virtme-ng really gets to its command with this kernel."""
    output = _say(_virtme_ng(vmlinuz, "-v", command="echo $((6 * 7)) is the answer"))
    if "42 is the answer" not in output:
        raise SystemExit(f"virtme-ng did not run its command:\n{output[-2000:]}")


def _say(command: list[str]) -> str:
    """Return what a command prints; virtme-ng's exit code is not its command's where it falls back to the console."""
    done = subprocess.run(command, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.stdout.decode(errors="replace")


def _run(command: list[str]) -> None:
    subprocess.run(command, env=_environment(), stdin=subprocess.DEVNULL, check=True)


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{_BIN}:{os.environ['PATH']}:/sbin:/usr/sbin"}
