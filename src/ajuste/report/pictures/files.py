"""Every picture of a report in a file of its own, named for what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.report.page import Page, page_of
from ajuste.report.plots.plot import Plot

PictureFormat = Literal["svg", "png"]

_DPI: Final = 192
_LONGEST: Final = 90
_NAME: Final = re.compile(r"[a-z0-9]+")
_EXPLANATION: Final = re.compile(r"[,;:(]")  # where a title goes on with units and remarks


@dataclass(frozen=True)
class Picture:
    """A plot with a ``title`` that it can be understood by alone, and a ``stem`` for the name of a file: letters,
    digits and dashes, different for each.
    """

    plot: Plot
    title: str
    stem: str


def write_pictures(results: Results, directory: Path, form: PictureFormat) -> tuple[Path, ...]:
    """Draw every plot of the report into ``directory``, which is made if it is missing; the files in the report's
    order. Raises RequestError where it cannot be written.
    """
    import matplotlib  # not at the top: it takes a second, and only this needs it

    from ajuste.report.pictures.drawing import draw
    from ajuste.report.pictures.style import RC

    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context(RC):
            for picture in pictures_of(page_of(results)):
                path = directory / f"{picture.stem}.{form}"
                about = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
                draw(picture.plot, picture.title).savefig(
                    path, format=form, dpi=_DPI, bbox_inches="tight", pad_inches=0.15, metadata=about
                )
                written.append(path)
    except OSError as error:
        raise RequestError(
            f"{directory}: {error.strerror or error}", hint="--pictures DIR needs a directory"
        ) from error
    return tuple(written)


def pictures_of(page: Page) -> Iterator[Picture]:
    """Every plot, in the order of the page."""
    seen: dict[str, int] = {}
    for of, plot in _by_subject(page):
        title = f"{of}: {plot.title}" if of else plot.title
        short = _EXPLANATION.split(plot.title)[0]
        stem = "-".join(_NAME.findall(f"{of} {short}".lower()))[:_LONGEST].strip("-") or "picture"
        seen[stem] = seen.get(stem, 0) + 1
        yield Picture(plot, title, stem if seen[stem] == 1 else f"{stem}-{seen[stem]}")


def _by_subject(page: Page) -> Iterator[tuple[str, Plot]]:
    """Each plot with the metric that its title does not name, as its heading on the page does."""
    yield from (("", plot) for section in page.surfaces for plot in section.plots)
    yield from (((page.sections[0].title, page.lead),) if page.lead else ())
    yield from ((section.title, plot) for section in page.sections for plot in section.plots)
    yield from ((("Timelines", page.timelines),) if page.timelines else ())
    yield from ((section.title, plot) for section in page.scheduling for plot in section.plots)
    yield from ((metric, plot) for metric, plot in page.courses.items())
    yield from (("", plot) for plot in page.small)
