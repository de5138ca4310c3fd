"""Lists and masks of CPUs as tuned writes them: ``0,2-4,^3``, ``0x1f``, ``00000000,0000001f``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

MOST_CPUS: Final = 8192


def read_cpus(text: str) -> list[int]:
    """The CPUs of a list, in order; numbers behind ``^`` or ``!`` are left out. Masks are in hexadecimal with ``0x``,
    their groups separated by commas; two commas end one.

    Nothing of a list that is none, as tuned has it.
    """
    chosen: set[int] = set()
    without: set[int] = set()
    mask = ""
    for word in [*text.strip().strip("'\"").split(","), ""]:
        if mask and word:
            mask += word
            continue
        try:
            if mask:
                chosen |= set(of_mask(mask))
                mask = ""
            elif word[:2].lower() == "0x":
                mask = word
            elif word[:1] in ("^", "!"):
                without |= _range(word[1:])
            elif word:
                chosen |= _range(word)
        except ValueError:
            return []
    return sorted(chosen - without)


def _range(word: str) -> set[int]:
    first, dash, last = word.partition("-")
    begin, end = int(first), int(last if dash else first)
    if not 0 <= begin <= MOST_CPUS or end > MOST_CPUS:
        raise ValueError(word)
    return set(range(begin, end + 1))


def of_mask(text: str) -> list[int]:
    """The CPUs of a mask. Raises ValueError for what is none."""
    bits = int(text.replace(",", ""), 16)
    if bits < 0 or bits.bit_length() > MOST_CPUS:
        raise ValueError(text)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def written(cpus: Iterable[int]) -> str:
    """``0,1,2``."""
    return ",".join(map(str, cpus))


def packed(cpus: Iterable[int]) -> str:
    """``0-2,7``."""
    runs = ([cpu for _, cpu in run] for _, run in groupby(enumerate(cpus), key=lambda pair: pair[1] - pair[0]))
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def mask_of(cpus: Iterable[int]) -> str:
    """As the kernel writes it, in groups of eight digits: ``00000001,00000000``."""
    bits = sum(1 << cpu for cpu in cpus)
    digits = f"{bits:x}"
    digits = digits.zfill(8 * max(1, -(-len(digits) // 8)))
    return ",".join(digits[start : start + 8] for start in range(0, len(digits), 8))
