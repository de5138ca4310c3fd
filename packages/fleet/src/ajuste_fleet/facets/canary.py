"""The order in which machines began, and how far it came."""

from __future__ import annotations

from ajuste.model.fleet import FLEET
from ajuste.run.facets import MeasuredRun
from ajuste_fleet.model import CanaryRecord


def find(measured: MeasuredRun) -> CanaryRecord | None:
    """Return the record of the order; None if the run had none."""
    environment = measured.run.environment
    return CanaryRecord.model_validate(environment[FLEET]) if FLEET in environment else None
