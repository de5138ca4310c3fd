"""Native programs with which each page of the gallery was measured: ``docs/gallery/build.json``.

Every figure and digest of a guest depends on each byte of these programs, so a page says which they were. A change in
them makes no page wrong: it is what those programs came to. Only the same tools make the same bytes, and so the record
names them.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ajuste.machine.home import AGENT, LENS, WORKLOADS, native_program
from benchmarks.gallery.pages import GALLERY

RECORD = GALLERY / "build.json"


class Build(BaseModel):
    """Programs by their SHA-256, and what made them: versions, and the SHA-256 of the C library."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tools: dict[str, str]
    programs: dict[str, str]

    @property
    def name(self) -> str:
        """Return a short name that only the same programs have."""
        return hashlib.sha256(json.dumps(self.programs, sort_keys=True).encode()).hexdigest()[:8]


class Builds(BaseModel):
    """Builds by name, and which of them each page was measured with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    builds: dict[str, Build]
    pages: dict[str, str]

    def with_page(self, page: str, build: Build) -> Builds:
        """Return the record after ``page`` was measured with ``build``; builds of no page are dropped."""
        by_page = dict(sorted({**self.pages, page: build.name}.items()))
        builds = {**self.builds, build.name: build}
        return Builds(builds={name: builds[name] for name in sorted(set(by_page.values()))}, pages=by_page)


def recorded() -> Builds:
    return Builds.model_validate_json(RECORD.read_text(encoding="utf-8"))


def this_build() -> Build:
    """Return the record of the programs that are there now."""
    tools = {name: _output(name, "--version").splitlines()[0] for name in ("rustc", "cc", "ld")}
    tools["libc.a"] = _sha256(Path(_output("cc", "-print-file-name=libc.a").strip()))
    return Build(tools=tools, programs={name: _sha256(native_program(name)) for name in (AGENT, WORKLOADS, LENS)})


def record(page: str) -> None:
    """Note that ``page`` was measured with the programs that are there now."""
    RECORD.write_text(recorded().with_page(page, this_build()).model_dump_json(indent=2) + "\n", encoding="utf-8")


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
