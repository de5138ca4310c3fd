"""Metrics: what is measured of a trial, and which direction is better."""

from __future__ import annotations

import re
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

Direction = Literal["lower", "higher", "none"]
Scale = Literal["ratio", "difference"]

_PERCENTILE: Final = re.compile(r"(.+)@p(\d{1,2}(?:\.\d{1,3})?)", re.ASCII)


class Metric(BaseModel):
    """``scale`` is how configurations are compared: ratios for what is always positive, differences for what can
    be 0.

    ``resolution`` is the smallest step the figure can take (1 for a count), in ``unit``: values that are all alike are
    known no better than that. With a ``quantile`` that quantile of the trials' values is compared, not their mean, and
    the name is that of the metric with ``@p95`` or the like after it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    title: str
    unit: str
    direction: Direction
    scale: Scale = "ratio"
    resolution: float = 0.0
    what: str = ""
    quantile: float | None = Field(default=None, gt=0, lt=1)

    @property
    def column(self) -> str:
        """The name under which trials have its values."""
        return self.name if self.quantile is None else split_percentile(self.name)[0]

    def at(self, quantile: float) -> Self:
        """That quantile of this metric as a metric."""
        percent = f"{100 * quantile:.6g}"
        return self.model_copy(
            update={
                "name": f"{self.name}@p{percent}",
                "title": f"{self.title}, {percent} % quantile of the trials",
                "quantile": quantile,
            }
        )


def split_percentile(name: str) -> tuple[str, float | None]:
    """``elapsed@p95`` as ``elapsed`` and 0.95; any other name as it is, and ``None``."""
    found = _PERCENTILE.fullmatch(name)
    quantile = round(float(found[2]) / 100, 5) if found else 0.0
    return (found[1], quantile) if found and quantile > 0 else (name, None)
