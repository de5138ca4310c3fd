"""The bundled pages: one line ``pages policy=… nodes=N pages=N local=N remote=N … fill_ns=… read_ns=… sum=…``."""

from __future__ import annotations

import re

from ajuste.outputs.base import ParseError, excerpt, figure

_LINE = re.compile(
    r"^pages policy=[a-z]{1,20} nodes=(\d{1,4}) pages=(\d{1,12}) local=(\d{1,12}) remote=(\d{1,12}) "
    r"unknown=(\d{1,12}) fill_ns=(\d{1,18}) read_ns=(\d{1,18}) sum=\d{1,20}$",
    re.MULTILINE,
)


def parse(output: str) -> dict[str, float]:
    """``pages.nodes``; ``pages.local`` in percent of all pages, where the kernel tells where they are; ``pages.fill``
    and ``pages.read`` in milliseconds.
    """
    found = _LINE.findall(output)
    if len(found) != 1:
        raise ParseError(f"pages printed {len(found)} lines of results instead of one: {excerpt(output)}")
    nodes, pages, local, remote, unknown, fill_ns, read_ns = (figure(text, "pages") for text in found[0])
    if not pages or local + remote + unknown != pages:
        raise ParseError(f"pages printed figures that contradict each other: {excerpt(output)}")
    placed = {"pages.local": 100 * local / (local + remote)} if local + remote else {}
    return {"pages.nodes": nodes, **placed, "pages.fill": fill_ns / 1e6, "pages.read": read_ns / 1e6}
