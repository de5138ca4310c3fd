"""The explanations of what was recorded (``ajuste why``)."""

from __future__ import annotations

from ajuste.model.explanation import Explanation
from ajuste.run.facets import MeasuredRun


def find(measured: MeasuredRun) -> tuple[Explanation, ...]:
    """Return an explanation of each configuration recorded with the baseline; none without a recording of that."""
    recorded = measured.store.recorded(measured.run)
    if measured.resolved.baseline not in recorded:
        return ()
    from ajuste_guest.analysis.explanation import explanations  # few runs are recorded

    return explanations(measured.results, recorded, measured.record.measurements)
