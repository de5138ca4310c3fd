"""Lists of CPUs as people write them: ``0``, ``0,2``, ``0-3``."""

from __future__ import annotations

import re

_LIST = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")


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
    return tuple(cpu for cpu, bit in enumerate(reversed(f"{bits:b}")) if bit == "1")
