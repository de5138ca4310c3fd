"""The bundled workloads: each prints one line of results, ``NAME key=value …``, which their readers know by heart."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ajuste.outputs.base import ParseError, excerpt, figure

_FRAMES: Final = re.compile(
    r"^frames profile=[a-z]{1,20} due=(\d{1,12}) drawn=(\d{1,12}) in_time=(\d{1,12}) elapsed_ns=(\d{1,18}) "
    r"min_ns=\d{1,18} p50_ns=(\d{1,18}) p90_ns=\d{1,18} p99_ns=(\d{1,18}) p999_ns=(\d{1,18}) max_ns=(\d{1,18})$",
    re.MULTILINE,
)
_JITTER: Final = re.compile(
    r"^jitter sleeps=\d{1,12} interval_us=\d{1,12} min_ns=(\d{1,18}) p50_ns=(\d{1,18}) p90_ns=(\d{1,18}) "
    r"p99_ns=(\d{1,18}) p999_ns=(\d{1,18}) max_ns=(\d{1,18})$",
    re.MULTILINE,
)
_MATRIX: Final = re.compile(r"^matrix size=(\d{1,12}) repetitions=(\d{1,12}) checksum=(\S{1,40})$", re.MULTILINE)
_PAGES: Final = re.compile(
    r"^pages policy=[a-z]{1,20} nodes=(\d{1,4}) pages=(\d{1,12}) local=(\d{1,12}) remote=(\d{1,12}) "
    r"unknown=(\d{1,12}) fill_ns=(\d{1,18}) read_ns=(\d{1,18}) sum=\d{1,20}$",
    re.MULTILINE,
)
_PATHS: Final = re.compile(
    r"^paths protocol=(?:tcp|mptcp) paths=([12]) elapsed_ns=(\d{1,18}) received_bytes=(\d{1,18}) stall_ns=(\d{1,18}) "
    r"path_bytes=(\d{1,18})(?:,(\d{1,18}))?$",
    re.MULTILINE,
)


def frames(output: str) -> dict[str, float]:
    """``frames.rate`` a second, ``frames.missed`` in percent of those that were due, and the times from when a frame
    was due to when it was ready, in milliseconds: ``frames.p50``, ``.p99``, ``.p999`` and ``.max``.
    """
    due, drawn, in_time, elapsed, *times = (figure(text, "frames") for text in _only("frames", _FRAMES, output))
    if not in_time <= drawn <= due or not due or not elapsed:
        raise _contradiction("frames", output)
    return {
        "frames.rate": drawn / (elapsed / 1e9),
        "frames.missed": 100 * (due - in_time) / due,
        **{f"frames.{name}": time / 1e6 for name, time in zip(("p50", "p99", "p999", "max"), times, strict=True)},
    }


def jitter(output: str) -> dict[str, float]:
    """``jitter.min``, ``.p50``, ``.p90``, ``.p99``, ``.p999`` and ``.max``: how late sleeps ended, in microseconds."""
    names = (f"jitter.{name}" for name in ("min", "p50", "p90", "p99", "p999", "max"))
    found = zip(names, _only("jitter", _JITTER, output), strict=True)
    return {name: figure(value, name) / 1000 for name, value in found}


def matrix(output: str) -> dict[str, float]:
    """No figure: the product is the same every time. Raises ParseError unless it was finished, with a finite
    checksum.
    """
    figure(_only("matrix", _MATRIX, output)[2], "the checksum")
    return {}


def pages(output: str) -> dict[str, float]:
    """``pages.nodes``; ``pages.local`` in percent of all pages, where the kernel tells where they are; ``pages.fill``
    and ``pages.read`` in milliseconds.
    """
    said = _only("pages", _PAGES, output)
    nodes, count, local, remote, unknown, fill_ns, read_ns = (figure(text, "pages") for text in said)
    if not count or local + remote + unknown != count:
        raise _contradiction("pages", output)
    placed = {"pages.local": 100 * local / (local + remote)} if local + remote else {}
    return {"pages.nodes": nodes, **placed, "pages.fill": fill_ns / 1e6, "pages.read": read_ns / 1e6}


def paths(output: str) -> dict[str, float]:
    """``paths.goodput`` in Mbit/s of what the receiver got, ``paths.stall`` in milliseconds, ``paths.second`` in
    percent of all that arrived by the links (0 where there is one).
    """
    said = _only("paths", _PATHS, output)
    links, elapsed_ns, received, stall_ns, first, second = (figure(text or "0", "paths") for text in said)
    if not elapsed_ns or not first or (links == 2) != bool(said[5]):
        raise _contradiction("paths", output)
    return {
        "paths.goodput": received * 8 / (elapsed_ns / 1e3),
        "paths.stall": stall_ns / 1e6,
        "paths.second": 100 * second / (first + second),
    }


PARSERS: Final[Mapping[str, Callable[[str], dict[str, float]]]] = MappingProxyType(
    {"frames": frames, "jitter": jitter, "matrix": matrix, "pages": pages, "paths": paths}
)


def _only(name: str, line: re.Pattern[str], output: str) -> tuple[Any, ...]:
    """The groups of the one line of results. Raises ParseError unless there is one."""
    found = line.findall(output)
    if len(found) != 1:
        raise ParseError(f"{name} printed {len(found)} lines of results instead of one: {excerpt(output)}")
    groups: tuple[Any, ...] = found[0]
    return groups


def _contradiction(name: str, output: str) -> ParseError:
    return ParseError(f"{name} printed figures that contradict each other: {excerpt(output)}")
