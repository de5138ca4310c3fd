"""What a person asked for on the command line of ``ajuste compare``, word by word."""

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
from ajuste.study.location import KeyPath as Keys
from ajuste.study.target import PACKAGE_PATTERN

PACKAGE_EXPECTED: Final = "expected the name of a Debian package, such as redis-server or redis-server/trixie"
PACKAGE_HINT: Final = "search for packages at https://packages.debian.org"
TOPOLOGY_HINT: Final = "give numbers such as --topology sockets=2,cores=4,threads=2; cores are those of a socket"


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """What every comparison asks: each field is the option of that name, as it was given."""

    baseline: tuple[str, ...] = ()
    one_at_a_time: bool = False
    min_effect: str | None = None
    confidence: str | None = None
    seed: int | None = None
    name: str | None = None


@dataclass(frozen=True)
class Request(ComparisonOptions):
    """``commands`` are those between the ``--``; every other field is the option of that name, as it was given.
    ``source_options`` are the options that were given instead of ``--kernel``, if any.
    """

    commands: tuple[tuple[str, ...], ...]
    set: tuple[str, ...] = ()
    profile: str | None = None
    nice: str | None = None
    policy: str | None = None
    cpus: str | None = None
    cgroup_weight: str | None = None
    boot: tuple[str, ...] = ()
    boot_kernel: str | None = None
    reboots: bool = False
    reboot_each: int | None = None
    kernel: str | None = None
    source_options: str = ""
    vm: bool = False
    clock: str | None = None
    memory: str | None = None
    machine: str | None = None
    topology: str | None = None
    screen: bool = False
    background: tuple[str, ...] = ()
    service: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()
    setup: str | None = None
    prepare: str | None = None
    cleanup: str | None = None
    file: tuple[str, ...] = ()
    package: tuple[str, ...] = ()
    metric: tuple[str, ...] = ()
    precision: str | None = None
    max_time: str | None = None
    blocks: str | None = None
    warm_up: int | None = None
    timeout: str | None = None
    as_root: bool = False
    ignore_failure: bool = False
    keep_output: bool = False

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
        return self.source_options or f"--kernel {self.kernel}"

    @property
    def kernels(self) -> tuple[str, ...]:
        """Raises RequestError."""
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


# Where each part of a study from a command line was said: the option, for errors.


HINT = "see `ajuste compare --help` for examples"


@dataclass(frozen=True)
class CommandLine:
    """``options`` has the words for keys of the study, such as ``--nice 0,10`` for ``("factor", 0)``.

    ``command`` is what stands for the rest.
    """

    options: Mapping[Keys, str]
    hint: str = HINT
    command: str = "ajuste compare"

    def place(self, keys: Keys) -> Place:
        """Return the option that set a key, or what is around it."""
        for end in range(len(keys), 0, -1):
            if keys[:end] in self.options:
                return Place(self.options[keys[:end]])
        return Place(self.command)

    @property
    def directory(self) -> Path:
        """Programs and files are relative to where the command was given."""
        return Path()


# Amounts as people write them on a command line: shares, durations, sizes and numbers of blocks.


_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_MIB: Final = {"": 1.0, "M": 1.0, "MiB": 1.0, "G": 1024.0, "GiB": 1024.0}
_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"


def share(option: str, text: str) -> float:
    """Parse ``1%`` or ``0.01`` as 0.01. Raises RequestError."""
    match = re.fullmatch(_NUMBER + r"\s*(%?)", text.strip())
    if not match:
        raise wrong(option, text, "a share such as 1% or 0.01")
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


def package_names(given: Sequence[str]) -> list[str]:
    """Return the packages of all options ``--package``, each with names between commas. Raises RequestError."""
    texts = [(text, Place(f"--package {text}")) for text in given]
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
