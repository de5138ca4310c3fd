"""The tables that a study may ask for besides the verdicts."""

from __future__ import annotations

from ajuste.model.results import Results
from ajuste.report.kernel_options import kernel_options_listing
from ajuste.report.labels import Labels
from ajuste.report.listing import Listing
from ajuste.report.machines import machines_listing
from ajuste.report.predictions import predictions_listing
from ajuste.report.three_sigma import three_sigma_listing


def listings_of(results: Results, labels: Labels) -> tuple[Listing, ...]:
    """Those that there are, in the order to be shown."""
    found = (
        kernel_options_listing(results),
        machines_listing(results, labels),
        predictions_listing(results, labels),
        three_sigma_listing(results, labels),
    )
    return tuple(listing for listing in found if listing is not None)
