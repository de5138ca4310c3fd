"""The request of a person on the command line of ``ajuste compare``, word by word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ajuste.model.boot import DEFAULT_PER_BOOT
from ajuste.model.error import Place, RequestError
from ajuste.model.topology import parse_topology
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.model.wording import split_at
from ajuste.study.command_line.option import (
    BUILD,
    COMMAND,
    GUEST,
    OUTPUT,
    RARE,
    REBOOTS,
    SETTINGS,
    VERDICT,
    WHERE,
    flag,
    option,
    texts,
)
from ajuste.study.problem import KeyPath as Keys
from ajuste.study.problem import at_or_around
from ajuste.study.target import PACKAGE_PATTERN

PACKAGE_EXPECTED: Final = "expected the name of a Debian package, such as redis-server or redis-server/trixie"
PACKAGE_HINT: Final = "search for packages at https://packages.debian.org"
TOPOLOGY_HINT: Final = "give numbers such as --topology sockets=2,cores=4,threads=2; cores are those of a socket"

# Several commands have these options, so none is named.
HINT: Final = "add --help to see examples"

_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_MIB: Final = {"": 1.0, "M": 1.0, "MiB": 1.0, "G": 1024.0, "GiB": 1024.0}
_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"


@dataclass(frozen=True)
class Request:
    """A request: ``commands`` are those between the ``--``; every other field is an option, as it was given."""

    commands: tuple[tuple[str, ...], ...] = ()
    set: tuple[str, ...] = texts(
        "A tunable and its levels, or a range such as 1ms..30ms:6:log (repeatable).", "NAME=LEVEL,...", SETTINGS
    )
    profile: str | None = option(
        "Compare profiles with current settings: tuned:NAME, sysctl:FILE or a path.", "PROFILE,...", SETTINGS
    )
    nice: str | None = option("Nice levels of the command.", "N,...", SETTINGS)
    policy: str | None = option("Scheduling policies of the command.", "POLICY,...", SETTINGS)
    cpus: str | None = option("CPUs the command may run on: 0,0-1; join a list with +: 0+2.", "CPUS,...", SETTINGS)
    cgroup_weight: str | None = option("cpu.weight of the command's control group.", "N,...", SETTINGS)
    scratch: str | None = option(
        "Make this file system for each trial, and run the command in it; several to compare: ext4,xfs.",
        "TYPE,...",
        SETTINGS,
    )
    scratch_size: str | None = option(
        "Size of the --scratch file system (default: 512MiB), in a guest in whole GiB.", "SIZE", RARE
    )
    boot: tuple[str, ...] = texts(
        "A word of this machine's kernel command line and its values; default: as it boots by itself, set: a word "
        "without a value (repeatable). Requires --reboots.",
        "WORD=LEVEL,...",
        REBOOTS,
    )
    boot_kernel: str | None = option(
        "Kernels installed on this machine, such as 6.1.0-50-amd64, 6.12 or default. Requires --reboots.",
        "RELEASE,...",
        REBOOTS,
    )
    reboots: bool = flag("Allow to reboot this machine, again and again: boots are replicates.", REBOOTS)
    reboot_each: int | None = option("Blocks in each boot (default: 3). Requires --reboots.", "N", REBOOTS, least=1)
    kernel: str | None = option(
        "Run in a guest with these kernels: debian:6.1, mine:NAME, or build:SOURCE[+NAME=VALUE][+PATCH]... to "
        "build one.",
        "KERNEL,...",
        WHERE,
    )
    source: str | None = option(
        "Short for --kernel build:SOURCE,build:SOURCE with the options and patches after it.", "SOURCE", BUILD
    )
    patch: tuple[Path, ...] = texts(
        "Compare the kernel without and with this patch (repeatable; a series).", "FILE", BUILD
    )
    kernel_option: tuple[str, ...] = texts(
        "Compare the kernel without and with this option, such as NUMA=n (repeatable).",
        "NAME=VALUE",
        BUILD,
        name="--option",
    )
    vm: bool = flag("Run in a guest.", WHERE)
    clock: str | None = option("The guest's clock: virtual or wall (default: virtual).", "CLOCK", GUEST)
    guest_cpus: int | None = option(
        "Number of CPUs of the guest (default: 1, or as many as --cpus and --topology need).", "N", GUEST, least=1
    )
    memory: str | None = option("Memory of the guest.", "SIZE", GUEST)
    machine: str | None = option(
        "Model this machine's caches and TLBs: zen4-8c, skylake-server, textbook, or a TOML file.", "NAME|FILE", GUEST
    )
    topology: str | None = option(
        "Sockets of the guest, cores of each, threads of each core: sockets=2,cores=4,threads=2; also dies and "
        "llc_groups of each socket.",
        "NAME=NUMBER,...",
        GUEST,
    )
    one_at_a_time: bool = flag("Vary one thing at a time, not every combination.", RARE)
    screen: bool = flag("Find which of many settings matter, from few combinations.", RARE)
    baseline: tuple[str, ...] = texts("Baseline level (default: the first).", "[NAME=]LEVEL", SETTINGS)
    background: tuple[str, ...] = texts(
        "Run this background load: a command, or spin (repeatable); 10x COMMAND runs ten of it.", "COMMAND", COMMAND
    )
    background_ready: tuple[str, ...] = texts(
        "When the --background before it is there, and the command may start: settled (default), log:TEXT, "
        "command:COMMAND or none (repeatable).",
        "WHEN",
        RARE,
    )
    service: tuple[str, ...] = texts(
        "Start this server before each run, and stop it after; {port} is a free port (repeatable).", "COMMAND", COMMAND
    )
    ready: tuple[str, ...] = texts(
        "When the --service before it is ready: port (default with {port}), port:N, socket:PATH, log:PATTERN, "
        "command:COMMAND or none (repeatable).",
        "WHEN",
        COMMAND,
    )
    setup: str | None = option("Run this once before all trials.", "COMMAND", RARE)
    prepare: str | None = option("Run this before each trial.", "COMMAND", COMMAND)
    cleanup: str | None = option("Run this once after all trials.", "COMMAND", RARE)
    file: tuple[str, ...] = texts("Copy this file into the guest (repeatable).", "FILE", GUEST)
    package: tuple[str, ...] = texts(
        "Debian packages that the guest has, with all that they require (repeatable); NAME/trixie for another release.",
        "NAME,...",
        GUEST,
    )
    metric: tuple[str, ...] = texts(
        "Metric that decides: a known one, or one read from the output, such as NAME,UNIT,lower=regex:PATTERN or "
        "NAME,higher=json:/POINTER (repeatable).",
        "METRIC",
        VERDICT,
    )
    min_effect: str | None = option("Smallest effect that matters (default: 2%).", "SHARE", VERDICT)
    precision: str | None = option(
        "Go on until each interval is at most this wide to each side, though it is decided: 1%.", "SHARE", RARE
    )
    confidence: str | None = option("Confidence of all verdicts together (default: 95%).", "SHARE", RARE)
    max_time: str | None = option("Stop after this time, decided or not (default: 5m).", "DURATION", VERDICT)
    blocks: str | None = option("Number of blocks: one run of each configuration per block.", "N or MIN..MAX", VERDICT)
    warm_up: int | None = option(
        "Number of warm-up blocks, which do not count (default: 1, in a guest 0).", None, RARE, least=0
    )
    timeout: str | None = option("Time limit of one trial.", "DURATION", RARE)
    seed: int | None = option("Seed of the order (default: 1).", None, RARE, least=0)
    name: str | None = option("Name for `ajuste report` (default: compare).", "NAME", OUTPUT)
    as_root: bool = flag("Run the command as root, not as the user who called sudo.", RARE)
    ignore_failure: bool = flag("Also measure trials that fail.", RARE)
    keep_output: bool = flag("Keep all output of the trials; otherwise long output and binary data are cut.", RARE)

    @property
    def blocks_per_boot(self) -> int | None:
        """Return the blocks of each boot, if this machine reboots for it."""
        wanted = self.reboots or self.boot or self.boot_kernel is not None
        return self.reboot_each or (DEFAULT_PER_BOOT if wanted else None)

    @property
    def in_guest(self) -> bool:
        return self.vm or self.kernel is not None

    @property
    def kernel_words(self) -> str:
        """Return the options that name the kernels."""
        if self.source is None:
            return f"--kernel {self.kernel}"
        words = [f"--source {self.source}", *(f"--patch {patch}" for patch in self.patch)]
        return " ".join([*words, *(f"--option {text}" for text in self.kernel_option)])

    @property
    def kernels(self) -> tuple[str, ...]:
        """Return the kernels by name. Raises RequestError."""
        return () if self.kernel is None else kernels_between_commas(self.kernel, Place(self.kernel_words))

    def with_kernels(self, names: Mapping[str, str]) -> Request:
        """Return the request with each kernel called as in ``names``."""
        if self.kernel is None:
            return self
        swap = dict(names) | {f"{KERNEL_FACTOR}={text}": f"{KERNEL_FACTOR}={name}" for text, name in names.items()}
        return replace(
            self,
            kernel=",".join(names.get(kernel, kernel) for kernel in self.kernels),
            baseline=tuple(swap.get(text, text) for text in self.baseline),
        )


def split_commands(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the commands that ``--`` separates; an empty one where there is nothing between two."""
    commands: list[tuple[str, ...]] = [()]
    for word in words:
        if word == "--":
            commands.append(())
        else:
            commands[-1] = (*commands[-1], word)
    return tuple(commands)


# The option that each part of a study from a command line comes from, for errors.


@dataclass(frozen=True)
class CommandLine:
    """The origin of a study from a command line: ``options`` has the words for keys of the study, such as ``--nice
    0,10`` for ``("factor", 0)``; ``command`` stands for the rest. Programs and files are relative to ``directory``:
    where the command was given.
    """

    options: Mapping[Keys, str]
    hint: str = HINT
    command: str = "ajuste compare"
    directory: Path = Path()

    def place(self, keys: Keys) -> Place:
        """Return the option that gives a key, or what is around it."""
        return Place(at_or_around(self.options, keys) or self.command)


# Amounts as people write them on a command line: shares, durations, sizes and numbers of blocks.


def share(option: str, text: str) -> float:
    """Parse ``1%`` or ``0.01`` as 0.01. Raises RequestError, also for a bare 5, which would be 500%."""
    match = re.fullmatch(_NUMBER + r"\s*(%?)", text.strip())
    if not match:
        raise wrong(option, text, "a share such as 1% or 0.01")
    if not match[2] and float(match[1]) >= 1:
        raise wrong(option, text, "a percentage, or a share below 1", f"write {match[1]}%")
    return float(match[1]) / (100 if match[2] else 1)


def seconds(option: str, text: str) -> float:
    """Parse ``5m``, ``90s``, ``1.5h`` or plain seconds. Raises RequestError."""
    match = re.fullmatch(_NUMBER + r"\s*([a-z]*)", text.strip())
    if not match or match[2] not in _SECONDS or not float(match[1]):
        raise wrong(option, text, "a duration such as 90s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def mebibytes(option: str, text: str) -> int:
    """Parse ``512``, ``512MiB`` or ``2G`` in MiB. Raises RequestError."""
    match = re.fullmatch(_NUMBER + r"\s*([A-Za-z]*)", text.strip())
    if not match or match[2] not in _MIB:
        raise wrong(option, text, "a size such as 512MiB or 2GiB")
    return round(float(match[1]) * _MIB[match[2]])


def block_range(option: str, text: str) -> tuple[int, int]:
    """Parse ``20`` as 20 to 20, ``5..100`` as 5 to 100. Raises RequestError."""
    match = re.fullmatch(r"([0-9]{1,6})(?:\.\.([0-9]{1,6}))?", text.strip())
    if not match or not int(match[1]) or int(match[2] or match[1]) < int(match[1]):
        raise wrong(option, text, "a number of blocks such as 20, or a range such as 5..100")
    return int(match[1]), int(match[2] or match[1])


def read_topology(text: str) -> dict[str, int]:
    """Return ``--topology`` as a study file has it. Raises RequestError."""
    try:
        return parse_topology(text)
    except ValueError as failure:
        raise RequestError(str(failure), hint=TOPOLOGY_HINT, place=Place(f"--topology {text}")) from None


def package_names(options: Sequence[str]) -> list[str]:
    """Return the packages of all options ``--package``, each with names between commas. Raises RequestError."""
    texts = [(text, Place(f"--package {text}")) for text in options]
    names = [name for text, place in texts for name in between_commas(text, "package", place=place)]
    for name in names:
        if not re.fullmatch(PACKAGE_PATTERN, name):
            raise RequestError(PACKAGE_EXPECTED, hint=PACKAGE_HINT, place=Place(f"--package {name}"))
    return names


def wrong(option: str, text: str, expected: str, hint: str = HINT) -> RequestError:
    """Return the error of an option whose value is not what it should be."""
    return RequestError(f"expected {expected}", hint=hint, place=Place(f"{option} {text}"))


# Lists on the command line.


def between_commas(text: str, what: str, *, hint: str | None = None, place: Place | None = None) -> tuple[str, ...]:
    """Return the parts of ``text``. Raises RequestError where ``what`` ("level") is missing between two commas."""
    return _whole(text.split(","), what, hint, place)


def kernels_between_commas(text: str, place: Place) -> tuple[str, ...]:
    r"""Return the kernel specifications in ``text``; ``\,`` is a comma within one. Raises RequestError."""
    return _whole(split_at(",", text), "kernel", "expected KERNEL or KERNEL,KERNEL", place)


def _whole(parts: Sequence[str], what: str, hint: str | None, place: Place | None) -> tuple[str, ...]:
    words = tuple(part.strip() for part in parts)
    if not all(words):
        raise RequestError(f"found an empty {what} between commas", hint=hint, place=place)
    return words
