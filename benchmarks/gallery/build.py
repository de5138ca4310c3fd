"""Native programs with which the gallery was measured: ``docs/gallery/build.json``.

Every figure and digest of a guest depends on each byte of these programs, so a change in them asks for a whole new
gallery. Only the same tools make the same bytes, and so the record names them.
"""

from __future__ import annotations

import hashlib
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


def recorded() -> Build:
    return Build.model_validate_json(RECORD.read_text(encoding="utf-8"))


def this_build() -> Build:
    """Return the record of the programs that are there now."""
    tools = {name: _output(name, "--version").splitlines()[0] for name in ("rustc", "cc", "ld")}
    tools["libc.a"] = _sha256(Path(_output("cc", "-print-file-name=libc.a").strip()))
    return Build(tools=tools, programs={name: _sha256(native_program(name)) for name in (AGENT, WORKLOADS, LENS)})


def record() -> None:
    RECORD.write_text(this_build().model_dump_json(indent=2) + "\n", encoding="utf-8")


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
