"""Inputs and results of each page of the gallery: ``docs/gallery/build.json``."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from benchmarks.gallery.marks import content
from benchmarks.gallery.pages import GALLERY, IMAGES, Page

RECORD: Final = GALLERY / "build.json"
_DIGEST: Final = re.compile(r"^Digest ([0-9a-f]{64})$", re.MULTILINE)


class PageRecord(BaseModel):
    """``inputs`` are those that decide the figures of a page (see ``inputs.py``), ``results`` the digests of its runs,
    ``written`` a digest of what was put into it. Under an ``agent`` of other code figures may differ slightly; that
    makes no page stale. It is empty where it is unknown.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    inputs: dict[str, str]
    agent: str = ""
    results: dict[str, str] = {}
    written: str

    @property
    def digest(self) -> str:
        """Return a short digest that only the same inputs have."""
        return hashlib.sha256(json.dumps(self.inputs, sort_keys=True).encode()).hexdigest()[:8]

    def changes(self, now: Mapping[str, str]) -> list[str]:
        """Return the reasons why the page is stale: the inputs that differ ``now``, or that are not recorded. Inputs
        that are not on this machine are not compared.
        """
        reasons = [
            f"{name} changed from {before} to {now[name]}"
            for name, before in self.inputs.items()
            if name in now and now[name] != before
        ]
        unknown = [name for name in now if name not in self.inputs]
        return [*reasons, f"not recorded: {', '.join(unknown)}"] if unknown else reasons


def records() -> dict[str, PageRecord]:
    """Return the records of all pages by file."""
    document = json.loads(RECORD.read_text(encoding="utf-8"))
    return {name: PageRecord.model_validate(record) for name, record in document.items()}


def record(page: Page, inputs: dict[str, str], agent: str) -> None:
    """Record what ``page``, which was just written, was measured with."""
    write({**records(), page.file: page_record(page, inputs, agent)})


def page_record(page: Page, inputs: dict[str, str], agent: str) -> PageRecord:
    return PageRecord(inputs=inputs, agent=agent, results=results(page), written=written(page))


def write(by_page: Mapping[str, PageRecord]) -> None:
    document = {name: by_page[name].model_dump() for name in sorted(by_page)}
    RECORD.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def results(page: Page) -> dict[str, str]:
    """Return the digests of its runs that ``page`` prints, by command."""
    text = page.path.read_text(encoding="utf-8")
    digests = ((run.mark, _DIGEST.findall(content(text, run.mark))) for run in page.run)
    return {mark: printed[-1] for mark, printed in digests if printed}


def written(page: Page) -> str:
    """Return a digest of what programs wrote into ``page``, with its pictures."""
    text = page.path.read_text(encoding="utf-8")
    hasher = hashlib.sha256()
    for mark in page.marks:
        place = content(text, mark)
        hasher.update(f"{mark}\n{place}\n".encode())
        for image in re.findall(r"\(images/([^)]+)\)", place):
            hasher.update((IMAGES / Path(image).name).read_bytes())
    return hasher.hexdigest()
