"""``proc:FILE.KEY``: a figure of /proc, such as ``proc:vmstat.pgmajfault`` or ``proc:meminfo.Dirty``.

A counter becomes a rate, a level is averaged; the catalogue knows which is which.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ajuste.catalogue.loader import figure_sources
from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste_live.reading import Figures, NothingShownError, Source, field_of, level, rate, read_file

KIND: Final = "proc"

_FILES: Final = ("vmstat", "meminfo", "stat")


def open_source(where: str) -> Source:
    """Open a figure of /proc. Raises RequestError for one that is not in the catalogue."""
    name, _, key = where.partition(".")
    known = figure_sources()
    if name not in _FILES:
        raise RequestError(f"{name!r} is not a file of figures; expected one of {', '.join(_FILES)}")
    figure = next((file_figures for source, file_figures in known.items() if source == name), None)
    pattern = figure.find(key) if figure else None
    if pattern is None:
        names = [key_figure.name for key_figure in figure.figures] if figure else []
        raise RequestError(
            f"{name} has no figure {key!r}",
            hint=did_you_mean(nearest_names(key, names, most=3)) or "see `ajuste help sampler-figures`",
        )
    file = Path("/proc") / name
    return Source("files", lambda: _figure(file, key), rate if pattern.kind == "counter" else level)


def _figure(file: Path, key: str) -> Figures:
    value = field_of(read_file(file), key)
    if value is None:
        raise NothingShownError(f"{file} has no {key}")
    return (value,)
