"""A finding: what one diagnostic says of one metric, before all of them are weighed together."""

from __future__ import annotations

from dataclasses import dataclass

from ajuste.model.diagnostic import Kind


@dataclass(frozen=True)
class Finding:
    """See ``model.diagnostic.Diagnostic``. Without a ``p_value`` it is ``certain`` whether it is there.

    ``spoils``: it is worth knowing even where it misleads no test.
    """

    kind: Kind
    measures: str
    value: float
    says: str
    why: str
    p_value: float | None = None
    certain: bool = False
    naive_error: float | None = None
    configuration: str = ""
    verdict_affected: bool = False
    spoils: bool = False
