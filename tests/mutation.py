"""Hostile inputs from harmless ones, and bounds within which each must be judged."""

from __future__ import annotations

import random
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

PIECES = (
    *'"{}[],:;\n\t\0 .+-_%#()\r=\\/$',
    *("nan", "inf", "-1e999", "1e-320", "-0", "-7.5", "9" * 5000, "null", "true", "1,5", "1_0", "0x1"),
    *("0x" + "f" * 2000, "${f:", "${a}", "@@ -1 +1 @@", "é", "\ufeff", "\\ud800", "\u202e", "\u2028"),
    *("</script>", "\x1b[2J", "\x9b", "\u3164", "[red]", "\\udc80", "[[factor]]\n", "a."),
    *("block", "configuration", "[[[[", '{"a":', "<not counted>", "runs)"),
)
LARGE = 100_000
CPU_SECONDS = 10.0
"""CPU time for inputs of about ``LARGE`` bytes: far more than they take, far less than what grows with the square."""
MEMORY_BYTES = 1 << 30


class TooLong(Exception):
    """An input took more than its share of the processor."""


def mutated(seed: str, source: random.Random) -> str:
    """The seed with a few places cut out, repeated, or replaced by pieces that parsers stumble over; once in a while
    by very many of them.
    """
    text = seed
    for _ in range(source.randint(1, 4)):
        start = source.randint(0, len(text))
        end = min(len(text), start + source.choice((0, 0, 1, 2, 5, 20, 200)))
        middle = text[start:end] * 2
        if source.random() < 0.8:
            piece = source.choice(PIECES)
            times = LARGE if source.random() < 0.005 else source.choice((1, 1, 2, 3, 30))
            middle = piece * min(times, LARGE // len(piece))
        text = text[:start] + middle + text[end:]
        if source.random() < 0.005 and end > start:
            text = text[:start] + text[start:end] * (LARGE // (end - start)) + text[end:]
    return text


@contextmanager
def bounded(cpu_seconds: float = CPU_SECONDS, memory_bytes: int = MEMORY_BYTES) -> Iterator[None]:
    """Meanwhile more processor time is TooLong and more memory a MemoryError."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {cpu_seconds} s of processor time")

    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = signal.signal(signal.SIGPROF, stop)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + memory_bytes, limits[1]))
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)
