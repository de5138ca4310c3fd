"""Results that mails and pictures are made of."""

from __future__ import annotations

from tests.report.conftest import granularity, grid, hostile, timed, undecided

__all__ = ["granularity", "grid", "hostile", "timed", "undecided"]
