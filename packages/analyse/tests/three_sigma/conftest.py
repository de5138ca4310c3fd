"""Trials that the 3-sigma rule is applied to."""

from __future__ import annotations

from tests.analysis.conftest import configurations, elapsed, trials

__all__ = ["configurations", "elapsed", "trials"]
