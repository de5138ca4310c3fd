"""The bundled paths: a line ``paths protocol=… received_bytes=N stall_ns=N path_bytes=N,N``, another on subflows."""

from __future__ import annotations

import re

from ajuste.outputs.base import ParseError, excerpt, figure

_LINE = re.compile(
    r"^paths protocol=(?:tcp|mptcp) paths=([12]) elapsed_ns=(\d{1,18}) received_bytes=(\d{1,18}) stall_ns=(\d{1,18}) "
    r"path_bytes=(\d{1,18})(?:,(\d{1,18}))?$",
    re.MULTILINE,
)


def parse(output: str) -> dict[str, float]:
    """``paths.goodput`` in Mbit/s of what the receiver got, ``paths.stall`` in milliseconds, ``paths.second`` in
    percent of all that arrived by the links (0 where there is one).
    """
    found = _LINE.findall(output)
    if len(found) != 1:
        raise ParseError(f"paths printed {len(found)} lines of results instead of one: {excerpt(output)}")
    links, elapsed_ns, received, stall_ns, first, second = (figure(text or "0", "paths") for text in found[0])
    if not elapsed_ns or not first or (links == 2) != bool(found[0][5]):
        raise ParseError(f"paths printed figures that contradict each other: {excerpt(output)}")
    return {
        "paths.goodput": received * 8 / (elapsed_ns / 1e3),
        "paths.stall": stall_ns / 1e6,
        "paths.second": 100 * second / (first + second),
    }
