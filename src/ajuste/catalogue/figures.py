"""The figures that samplers read, from ``samplers.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from ajuste.model.figure import FigureSource
from ajuste.model.plan import SamplerSource


@cache
def figure_sources() -> dict[SamplerSource, FigureSource]:
    """Every source by name, in the order of the file."""
    text = files("ajuste.catalogue").joinpath("samplers.toml").read_text(encoding="utf-8")
    found = [FigureSource.model_validate(table) for table in tomllib.loads(text)["source"]]
    return {source.name: source for source in found}
