"""The kernel: version, build, command line, scheduler, clock."""

from __future__ import annotations

import gzip
import re
import tomllib
import zlib
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any, Final

from pydantic import Field

from ajuste.inventory.published import is_publishable, published_value
from ajuste.inventory.section import Section
from ajuste.inventory.source import Missing, Reading, Source
from ajuste.model.error import AjusteError
from ajuste.model.kernel import KernelVersion

_MOST_CONFIG_BYTES: Final = 4 << 20
_CLOCK = "/sys/devices/system/clocksource/clocksource0"
_SCHEDULERS_FIRST = KernelVersion.parse("6.6")


class Kernel(Section):
    """``release`` is ``uname -r``, ``build`` is ``uname -v``. ``options`` are those of ``asked.toml`` that the build's
    configuration has, ``settings`` the sysctls. ``command_line`` maps parameters to values.
    """

    release: str | None = None
    build: str | None = None
    scheduler: str | None = None
    preemption: str | None = None
    clock_source: str | None = None
    clock_sources_offered: str | None = None
    lockdown: str | None = None
    tainted: int | None = None
    modules: int | None = None
    command_line: dict[str, str] = Field(default_factory=dict)
    options_from: str | None = None
    options: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, str] = Field(default_factory=dict)
    scheduler_features: tuple[str, ...] | None = None


def take_kernel(source: Source) -> Kernel:
    """From proc(5) and sysfs; the preemption model and the scheduler's features need debugfs, and so root."""
    reading = Reading(source, absent="not offered by this kernel")
    release = reading.text("release", "/proc/sys/kernel/osrelease")
    options_from, options = _options(source, release or "")
    if options_from is None:
        reading.lacks("options_from", "neither /proc/config.gz nor /boot/config can be read")
    features = _features(source, reading)
    return Kernel(
        release=release,
        build=reading.text("build", "/proc/sys/kernel/version"),
        scheduler=_scheduler(source, reading, release),
        preemption=_preemption(source, reading, options),
        clock_source=reading.text("clock_source", f"{_CLOCK}/current_clocksource"),
        clock_sources_offered=reading.text("clock_sources_offered", f"{_CLOCK}/available_clocksource"),
        lockdown=reading.choice("lockdown", "/sys/kernel/security/lockdown"),
        tainted=reading.whole("tainted", "/proc/sys/kernel/tainted"),
        modules=_modules(source, reading),
        command_line=_command_line(source),
        options_from=options_from,
        options=options,
        settings=_settings(source),
        scheduler_features=features,
        unknown=reading.unknown,
    )


@cache
def _asked() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("asked.toml").read_text())


def _command_line(source: Source) -> dict[str, str]:
    """What comes after ``--`` is for init and not for the kernel. Double quotes keep blanks together."""
    said: dict[str, str] = {}
    unnamed = 0
    words = re.findall(r'(?:[^\s"]|"[^"]*"?)+', source.line("/proc/cmdline"))
    for word in words[: words.index("--")] if "--" in words else words:
        name, equals, value = word.replace('"', "").partition("=")
        if equals:
            shown = published_value("kernel_parameters", name, value)
            said[name] = f"{said[name]} {shown}" if name in said else shown
        elif is_publishable("kernel_parameters", name):
            said[name] = ""
        else:
            unnamed += 1
    if unnamed:
        said["other words"] = str(unnamed)
    return said


def _options(source: Source, release: str) -> tuple[str | None, dict[str, str]]:
    """Where the configuration was found, and what it says. Options that are off are ``n``."""
    for place in ("/proc/config.gz", f"/boot/config-{release}", f"/lib/modules/{release}/config"):
        found = source.bytes_of(place, _MOST_CONFIG_BYTES)
        if isinstance(found, Missing):
            continue
        text = _unpacked(found) if place.endswith(".gz") else found
        said = {
            name.decode(): value.decode(errors="replace").strip('"')
            for name, value in re.findall(rb"^CONFIG_(\w{1,64})=(.{1,200})$", text, re.MULTILINE)
        }
        if said:
            return place.removesuffix(f"-{release}"), {name: said.get(name, "n") for name in _asked()["options"]}
    return None, {}


def _unpacked(data: bytes) -> bytes:
    try:
        return gzip.GzipFile(fileobj=BytesIO(data)).read(_MOST_CONFIG_BYTES)
    except (OSError, EOFError, zlib.error):
        return b""


def _scheduler(source: Source, reading: Reading, release: str | None) -> str | None:
    """The fair scheduler of that version, and a sched_ext one if it is loaded."""
    try:
        fair = "EEVDF" if KernelVersion.parse(release or "") >= _SCHEDULERS_FIRST else "CFS"
    except (AjusteError, ValueError):
        return reading.lacks("scheduler", "the release is no version")
    extended = source.line("/sys/kernel/sched_ext/state") == "enabled"
    loaded = source.line("/sys/kernel/sched_ext/root/ops")
    return f"{fair}, sched_ext {loaded}".rstrip() if extended else fair


def _preemption(source: Source, reading: Reading, options: dict[str, str]) -> str | None:
    """What is in force: the real-time kernel's, the dynamic one's choice, or that of the build."""
    if source.line("/sys/kernel/realtime") == "1" or options.get("PREEMPT_RT") == "y":
        return "full real-time (PREEMPT_RT)"
    current = re.search(r"\(([a-z]+)\)", source.line("/sys/kernel/debug/sched/preempt"))
    if current:
        return f"{current[1]}, chosen at run time"
    models = {"PREEMPT_LAZY": "lazy", "PREEMPT": "full", "PREEMPT_VOLUNTARY": "voluntary", "PREEMPT_NONE": "none"}
    built = next((words for name, words in models.items() if options.get(name) == "y"), None)
    asked = re.search(r"(?:^|\s)preempt=(\w{1,20})(?:\s|$)", source.line("/proc/cmdline"))
    if options.get("PREEMPT_DYNAMIC") == "y":
        return f"{asked[1] if asked else built or 'full'} at boot; can change at run time"
    if built is None:
        return reading.lacks("preemption", "needs root and debugfs, or the kernel's configuration")
    return built


def _modules(source: Source, reading: Reading) -> int | None:
    found = source.text("/proc/modules", 1 << 20)
    if isinstance(found, Missing):
        return reading.lacks("modules", "not offered by this kernel" if found.reason != "needs root" else found.reason)
    return len(found.splitlines())


def _settings(source: Source) -> dict[str, str]:
    """Those that this kernel has."""
    said: dict[str, str] = {}
    for name in _asked()["settings"]:
        value = source.text(f"/proc/sys/{name.replace('.', '/')}")
        if not isinstance(value, Missing):
            said[name] = " ".join(value.split())
    return said


def _features(source: Source, reading: Reading) -> tuple[str, ...] | None:
    for place in ("/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"):
        found = source.text(place)
        if not isinstance(found, Missing):
            return tuple(found.split())
    return reading.lacks("scheduler_features", "needs root and debugfs")
