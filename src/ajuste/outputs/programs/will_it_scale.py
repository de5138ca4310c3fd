"""will-it-scale: operations per second of tasks that do the same thing side by side.

Source: will-it-scale, main.c (main). Samples of the warm-up do not count; each later sample is a second.
"""

from __future__ import annotations

import re
from statistics import fmean
from typing import Final

from ajuste.outputs.base import ParseError, excerpt

_SAMPLE: Final = re.compile(r"^min:(\d{1,18}) max:(\d{1,18}) total:(\d{1,18})$", re.ASCII | re.MULTILINE)
_AVERAGE: Final = re.compile(r"^average:(\d{1,18})$", re.ASCII | re.MULTILINE)


def parse(output: str) -> dict[str, float]:
    """Means of all samples. Raises ParseError for a run that is not complete."""
    _, begun, measured = output.partition("\nmeasurement\n")
    samples, average = _SAMPLE.findall(measured), _AVERAGE.findall(measured)
    if not begun or not samples or len(average) != 1:
        raise ParseError(f"will-it-scale printed no complete measurement: {excerpt(output)}")
    lowest, highest, total = zip(*((float(one) for one in sample) for sample in samples), strict=True)
    return {
        "will-it-scale.operations-per-second": float(average[0]),
        "will-it-scale.slowest-task": fmean(lowest),
        "will-it-scale.fastest-task": fmean(highest),
        "will-it-scale.total-min": min(total),
        "will-it-scale.total-max": max(total),
    }
