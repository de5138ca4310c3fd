"""Loaded by the workers that a coordinator starts on its own machine."""

from __future__ import annotations

import signal


def dask_setup(_: object) -> None:
    """Leave Ctrl-C at the terminal to the coordinator. What is started from here does not inherit that."""
    signal.signal(signal.SIGINT, lambda *_: None)
