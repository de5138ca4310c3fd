"""Results that mails are made of."""

from __future__ import annotations

from tests.report.conftest import granularity, grid, hostile, undecided

__all__ = ["granularity", "grid", "hostile", "undecided"]
