"""Results that sections on versions are made of."""

from __future__ import annotations

from tests.report.conftest import granularity, grid

__all__ = ["granularity", "grid"]
