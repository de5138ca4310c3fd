"""Facts about the machine that Ajuste itself runs on, kept with every run."""

from __future__ import annotations

import platform
from pathlib import Path

import psutil


def host_facts() -> dict[str, str]:
    """For people: processor, memory, system, kernel, Python. Nothing that names the machine or its user."""
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        system = "Linux"
    return {
        "processor": f"{_processor()}, {psutil.cpu_count()} CPUs",
        "memory": f"{psutil.virtual_memory().total / 2**30:.1f} GiB",
        "system": system,
        "kernel": platform.release(),
        "Python": platform.python_version(),
    }


def _processor() -> str:
    """As /proc/cpuinfo says it (proc(5)); the architecture where it says nothing."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.machine()
