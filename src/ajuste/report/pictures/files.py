"""Every picture of a report in a file of its own, named for what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ajuste.model.error import RequestError
from ajuste.report.document import Report
from ajuste.report.plots.plot import Plot

PictureFormat = Literal["svg", "png"]

_DPI: Final = 192
_LONGEST: Final = 90
_NAME: Final = re.compile(r"[a-z0-9]+")
_EXPLANATION: Final = re.compile(r"[,;:(]")  # where a title goes on with units and remarks


@dataclass(frozen=True)
class SavedPicture:
    """A plot with a ``title`` that it can be understood by alone, and a ``stem`` for the name of a file: letters,
    digits and dashes, different for each.
    """

    plot: Plot
    title: str
    stem: str


def write_pictures(report: Report, directory: Path, form: PictureFormat) -> tuple[Path, ...]:
    """Draw every plot of the report into ``directory``, which is made if it is missing; the files in the report's
    order. Raises RequestError where it cannot be written.
    """
    import matplotlib as mpl  # not at the top: it takes a second, and only this needs it

    from ajuste.report.pictures.drawing import draw
    from ajuste.report.pictures.traces import RC

    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(RC):
            for picture in saved_pictures(report):
                path = directory / f"{picture.stem}.{form}"
                about = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
                draw(picture.plot, picture.title).savefig(
                    path, format=form, dpi=_DPI, bbox_inches="tight", pad_inches=0.15, metadata=about
                )
                written.append(path)
    except OSError as error:
        raise RequestError(
            f"{directory}: {error.strerror or error}", hint="give a directory that you can write to"
        ) from error
    return tuple(written)


def saved_pictures(report: Report) -> Iterator[SavedPicture]:
    """Every plot, in the order of the report."""
    seen: dict[str, int] = {}
    for picture in report.pictures:
        of, plot = picture.of, picture.plot
        title = f"{of}: {plot.title}" if of else plot.title
        short = _EXPLANATION.split(plot.title)[0]
        stem = "-".join(_NAME.findall(f"{of} {short}".lower()))[:_LONGEST].strip("-") or "picture"
        seen[stem] = seen.get(stem, 0) + 1
        yield SavedPicture(plot, title, stem if seen[stem] == 1 else f"{stem}-{seen[stem]}")
