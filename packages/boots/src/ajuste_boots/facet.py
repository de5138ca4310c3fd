"""The boots of a run across reboots."""

from __future__ import annotations

from ajuste.model.boot import BOOTS
from ajuste.run.facets import MeasuredRun
from ajuste_boots.model import BootFindings, KeptBoots


def find(measured: MeasuredRun) -> BootFindings | None:
    """Return what its boots tell; None if the machine did not reboot for it."""
    if BOOTS not in measured.run.environment:
        return None
    from ajuste_boots.spread import boot_findings  # few runs have boots

    boots = KeptBoots.model_validate(measured.run.environment[BOOTS])
    return boot_findings(measured.resolved, measured.record.measurements, boots)
