"""glxgears of Mesa's demos: every five seconds a line ``2508 frames in 5.0 seconds = 501.541 FPS``."""

from __future__ import annotations

import re

from ajuste.outputs.base import ParseError, excerpt, figure

_LINE = re.compile(r"^(\d{1,9}) frames in \d{1,6}\.\d seconds = (\d{1,9}\.\d{1,6}) FPS$", re.MULTILINE | re.ASCII)


def parse(output: str) -> dict[str, float]:
    """``glxgears.rate``: frames a second, over all lines. The time of each is its frames by their rate: that has more
    digits than the time.
    """
    found = [(figure(frames, "frames"), figure(rate, "the frame rate")) for frames, rate in _LINE.findall(output)]
    if not found:
        raise ParseError(f"glxgears printed no frame rate; it needs at least five seconds: {excerpt(output)}")
    if not all(frames and rate for frames, rate in found):
        raise ParseError(f"glxgears drew nothing: {excerpt(output)}")
    return {"glxgears.rate": sum(frames for frames, _ in found) / sum(frames / rate for frames, rate in found)}
