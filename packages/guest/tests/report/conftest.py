"""Results that these reports are made of."""

from __future__ import annotations

from tests.report.conftest import browser, granularity

__all__ = ["browser", "granularity"]
