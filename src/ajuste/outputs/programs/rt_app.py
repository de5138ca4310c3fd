"""The logs of rt-app's threads: how late each round of a periodic thread was.

Source: rt-app 1.0, src/rt-app.c (log_timing) and doc/tutorial.txt. Its times are in microseconds.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from ajuste.outputs.base import ParseError, excerpt

_ROUND: Final = re.compile(r"^[ \t]*\d{1,9}(?:[ \t]+-?\d{1,18}){10,12}[ \t\r]*$", re.ASCII | re.MULTILINE)
_RUN, _PERIOD, _SLACK, _WAKE_UP = 2, 3, 7, 10
_US: Final = 1e-6


def parse(output: str) -> dict[str, float]:
    """Of the rounds of all threads. Raises ParseError for an output without any."""
    rows = [[float(word) for word in line.split()[:11]] for line in _ROUND.findall(output)]
    if not rows:
        raise ParseError(f"rt-app logged no round: {excerpt(output)}")
    rounds = np.array(rows)
    slack, late = rounds[:, _SLACK] * _US, rounds[:, _WAKE_UP] * _US
    return {
        "rt-app.rounds": float(len(rows)),
        "rt-app.late": float(np.count_nonzero(slack < 0)),
        "rt-app.run": _mean(rounds[:, _RUN]) * _US,
        "rt-app.period": _mean(rounds[:, _PERIOD]) * _US,
        "rt-app.slack": _mean(slack),
        "rt-app.slack-min": float(slack.min()),
        "rt-app.wakeup-latency": _mean(late),
        **{f"rt-app.wakeup-latency-p{share}": float(np.percentile(late, share)) for share in (50, 90, 99)},
        "rt-app.wakeup-latency-max": float(late.max()),
    }


def _mean(values: npt.NDArray[np.float64]) -> float:
    return float(values.mean())
