"""CPUs: lists and masks as the kernel writes them (``0-2,7``, ``00000001,00000000``), and where those of a guest are:
sockets, dies, groups that share a last-level cache, cores and threads.

Source: cpuset(7), "List format" and "Mask format".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import Field, Strict, model_validator

from ajuste.model.base import ClosedModel
from ajuste.model.wording import count_of

if TYPE_CHECKING:
    from ajuste.model.plan import MemoryNode

_LIST = re.compile(r"[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*")
_DIGITS_OF_GROUP = 8

MOST_CPUS: Final = 16
_Whole = Annotated[int, Strict(), Field(ge=1, le=MOST_CPUS)]
_THREADS: Final = (1, 2, 4, 8)

# Numbers of CPUs, ascending.
CpuSet = tuple[int, ...]


def parse_cpus(text: str) -> tuple[int, ...]:
    """Return the CPU numbers of ``text``, ascending and each once. Raises ValueError for anything else."""
    if not _LIST.fullmatch(text):
        raise ValueError(f"{text!r} is no list of CPUs; expected something like 0 or 0,2 or 0-3")
    bits = 0  # not a set: ten thousand CPUs may be named again and again
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) < int(first):
            raise ValueError(f"{part!r} runs backwards; expected the smaller CPU first")
        bits |= (1 << int(last or first) + 1) - (1 << int(first))
    return _numbers(bits)


def parse_kernel_cpus(text: str) -> list[int]:
    """Return the CPUs of a list that the kernel shows: it says nothing, or ``(null)``, where there are none."""
    try:
        return list(parse_cpus(text.strip()))
    except ValueError:
        return []


def parse_mask(text: str) -> tuple[int, ...]:
    """Return the CPUs of a mask in hexadecimal digits, with commas or without. Raises ValueError for anything else."""
    bits = int(text.replace(",", ""), 16)
    if bits < 0:
        raise ValueError(text)
    return _numbers(bits)


def cpu_list(cpus: Iterable[int]) -> str:
    """Return a list as the kernel writes it: ``0-2,7`` for 0, 1, 2 and 7, in any order."""
    every = set(cpus)
    starts = sorted(cpu for cpu in every if cpu - 1 not in every)
    ends = sorted(cpu for cpu in every if cpu + 1 not in every)
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def cpu_mask(cpus: Iterable[int]) -> str:
    """Return a mask in groups of eight digits, with leading zeros: the kernel leaves those out, but they keep a mask
    from being read as a list of CPUs.
    """
    bits = 0
    for cpu in cpus:
        bits |= 1 << cpu
    groups = max(1, -(-bits.bit_length() // (4 * _DIGITS_OF_GROUP)))
    digits = f"{bits:0{_DIGITS_OF_GROUP * groups}x}"
    return ",".join(digits[start : start + _DIGITS_OF_GROUP] for start in range(0, len(digits), _DIGITS_OF_GROUP))


def _numbers(bits: int) -> tuple[int, ...]:
    return tuple(cpu for cpu, bit in enumerate(reversed(f"{bits:b}")) if bit == "1")


class Topology(ClosedModel):
    """The layout of CPUs: all sockets are alike. CPUs are numbered from socket to socket, and the threads of a core one
    after the other.
    """

    sockets: _Whole = Field(default=1, description="Sockets of the machine.")
    dies: _Whole = Field(default=1, description="Dies of each socket.")
    llc_groups: _Whole | None = Field(
        default=None,
        description="Groups of cores of each socket; each group shares a last-level cache (default: one for each die).",
    )
    cores: _Whole = Field(default=1, description="Cores of each socket.")
    threads: _Whole = Field(default=1, description="Threads of each core: 1, 2, 4 or 8. They share its L1 and L2.")

    @property
    def cpus(self) -> int:
        """Return the number of CPUs of the whole machine."""
        return self.sockets * self.cores * self.threads

    @property
    def groups(self) -> int:
        """Return the number of groups of each socket."""
        return self.dies if self.llc_groups is None else self.llc_groups

    @property
    def groups_of_die(self) -> int:
        return self.groups // self.dies

    @property
    def cores_of_group(self) -> int:
        return self.cores // self.groups

    @property
    def in_words(self) -> str:
        """Describe the topology for people: ``2 sockets × 2 cores × 2 threads; 2 cores share an LLC``."""
        counts = [(self.sockets, "socket"), (self.dies, "die"), (self.cores // self.dies, "core")]
        counts += [(self.threads, "thread")]
        counted = [
            f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts if count > 1 or name == "core"
        ]
        sharing = self.cores_of_group
        shared = f"{sharing} cores share an LLC" if sharing > 1 else "each core has an LLC"
        return f"{' × '.join(counted)}; {shared}"

    @property
    def by_core(self) -> tuple[CpuSet, ...]:
        return tuple(self._split(self.threads))

    @property
    def by_group(self) -> tuple[CpuSet, ...]:
        return tuple(self._split(self.threads * self.cores_of_group))

    @property
    def by_die(self) -> tuple[CpuSet, ...]:
        return tuple(self._split(self.threads * self.cores // self.dies))

    @property
    def by_socket(self) -> tuple[CpuSet, ...]:
        return tuple(self._split(self.threads * self.cores))

    def _split(self, size: int) -> Iterator[CpuSet]:
        return (tuple(range(first, first + size)) for first in range(0, self.cpus, size))

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if problem := self._problem():
            raise ValueError(problem)
        return self

    def _problem(self) -> str:
        if self.threads not in _THREADS:
            return f"threads is {self.threads}; expected 1, 2, 4 or 8"
        if self.cores % self.dies:
            return f"dies is {self.dies}; expected a divisor of the socket's {count_of(self.cores, 'core')}"
        if self.cores % self.groups:
            return f"llc_groups is {self.groups}; expected a divisor of the socket's {count_of(self.cores, 'core')}"
        if self.groups % self.dies:
            return f"llc_groups is {self.groups}; expected a multiple of the socket's {self.dies} dies"
        if self.cpus > MOST_CPUS:
            return f"there are {self.cpus} CPUs in all; expected at most {MOST_CPUS}"
        return ""

    def problem_with(self, cpus: int, nodes: Sequence[MemoryNode]) -> str:
        """Return what is wrong with a machine of so many CPUs and these nodes; empty if nothing."""
        if cpus != self.cpus:
            return f"cpus is {cpus}; expected {self.cpus}, as the topology ({self.in_words}), or leave cpus out"
        size, end = self.threads * self.cores_of_group, 0
        for number, node in enumerate(nodes):
            end += node.cpus
            if end % size:
                return (
                    f"cpus of node {number} is {node.cpus}, which splits an LLC group of the topology; expected a "
                    f"multiple of {size}, or more llc_groups"
                )
        return ""


def parse_topology(text: str) -> dict[str, int]:
    """Return the table that ``sockets=2,cores=4,threads=2`` stands for. Raises ValueError."""
    known = tuple(Topology.model_fields)
    table: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in known:
            raise ValueError(f"found {part.strip()!r}; expected NAME=NUMBER with one of {', '.join(known)}")
        if name in table:
            raise ValueError(f"{name} is given twice; expected it once")
        if not (value.isascii() and value.isdigit() and len(value) <= len(str(MOST_CPUS)) and int(value)):
            raise ValueError(f"{name} is {value!r}; expected a number between 1 and {MOST_CPUS}")
        table[name] = int(value)
    return table
