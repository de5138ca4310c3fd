"""Pages of the gallery: ``docs/gallery/gallery.toml``, read and checked."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
INDEX = GALLERY / "README.md"
IMAGES = GALLERY / "images"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MeasuredCommand(_Entry):
    """A command of ``ajuste`` that measures (``run STUDY …``, ``compare …``) and what of its run stands on a page:
    ``metrics`` are the columns of the table (those that decide if there are none), ``pictures`` the names that
    ``ajuste report --pictures`` gives.
    """

    command: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """Name of its place on the page."""
        return shlex.join(self.command)

    @property
    def study(self) -> str | None:
        """The built-in study, if it is one."""
        return self.command[1] if self.command[0] == "run" else None


class Shown(_Entry):
    """A command of ``ajuste`` whose output stands on a page."""

    command: tuple[str, ...]

    @property
    def mark(self) -> str:
        return shlex.join(self.command)


class Page(_Entry):
    """A page and the experiment that it makes easy; ``before`` are commands of ``ajuste`` that its others need."""

    file: str
    experiment: Literal["A", "B", "C", "D", "E", "F", "G", "H"]
    before: tuple[tuple[str, ...], ...] = ()
    run: tuple[MeasuredCommand, ...] = ()
    show: tuple[Shown, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """The places of the page that are written."""
        return (*(command.mark for command in self.run), *(command.mark for command in self.show))

    @property
    def path(self) -> Path:
        return GALLERY / f"{self.file}.md"


def pages() -> tuple[Page, ...]:
    """Return all pages in the order of the index."""
    document = tomllib.loads((GALLERY / "gallery.toml").read_text(encoding="utf-8"))
    return tuple(Page.model_validate(page) for page in document["page"])
