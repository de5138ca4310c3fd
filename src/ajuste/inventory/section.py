"""What all parts of an inventory have."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """Facts about one thing. A field that is ``None`` is in ``unknown`` with the reason: ``needs root``, ``not offered
    by this device``.

    Fields of later versions are ignored, so that documents of any version can be compared.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    unknown: dict[str, str] = Field(default_factory=dict)
