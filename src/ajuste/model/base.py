"""The base of all models."""

from __future__ import annotations

import pydantic


class BaseModel(pydantic.BaseModel):
    """Pydantic's, but what validates a model is built when it is first needed: a command needs few of hundreds."""

    model_config = pydantic.ConfigDict(defer_build=True)
