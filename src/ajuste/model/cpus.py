"""Lists and masks of CPUs as the kernel writes them: ``0-2,7``, ``00000001,00000000``.

Source: cpuset(7), "List format" and "Mask format".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LIST = re.compile(r"[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*")
_DIGITS_OF_GROUP = 8


def parse_cpus(text: str) -> tuple[int, ...]:
    """The CPU numbers of ``text``, ascending and each once. Raises ValueError for anything else."""
    if not _LIST.fullmatch(text):
        raise ValueError(f"{text!r} is no list of CPUs; expected something like 0 or 0,2 or 0-3")
    bits = 0  # not a set: ten thousand CPUs may be named again and again
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) < int(first):
            raise ValueError(f"{part!r} runs backwards; expected the smaller CPU first")
        bits |= (1 << int(last or first) + 1) - (1 << int(first))
    return _numbers(bits)


def cpus_said(text: str) -> list[int]:
    """The CPUs of a list that the kernel shows: it says nothing, or ``(null)``, where there are none."""
    try:
        return list(parse_cpus(text.strip()))
    except ValueError:
        return []


def parse_mask(text: str) -> tuple[int, ...]:
    """The CPUs of a mask in hexadecimal digits, with commas or without. Raises ValueError for anything else."""
    bits = int(text.replace(",", ""), 16)
    if bits < 0:
        raise ValueError(text)
    return _numbers(bits)


def cpu_list(cpus: Iterable[int]) -> str:
    """``0-2,7`` for 0, 1, 2 and 7, in any order."""
    every = set(cpus)
    starts = sorted(cpu for cpu in every if cpu - 1 not in every)
    ends = sorted(cpu for cpu in every if cpu + 1 not in every)
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def cpu_mask(cpus: Iterable[int]) -> str:
    """A mask in groups of eight digits, with leading zeros: the kernel leaves those out, but they keep a mask from
    being read as a list of CPUs.
    """
    bits = 0
    for cpu in cpus:
        bits |= 1 << cpu
    groups = max(1, -(-bits.bit_length() // (4 * _DIGITS_OF_GROUP)))
    digits = f"{bits:0{_DIGITS_OF_GROUP * groups}x}"
    return ",".join(digits[start : start + _DIGITS_OF_GROUP] for start in range(0, len(digits), _DIGITS_OF_GROUP))


def _numbers(bits: int) -> tuple[int, ...]:
    return tuple(cpu for cpu, bit in enumerate(reversed(f"{bits:b}")) if bit == "1")
