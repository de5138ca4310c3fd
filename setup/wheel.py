"""What the wheel carries besides Python: native programs, man pages, completions.

Hatchling calls it (pyproject.toml). It compiles nothing: ``make dist`` does, and then builds the wheel.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = ("ajuste-agent", "ajuste-workloads", "ajuste-service", "ajuste-watch")
LIBRARIES = ("libajuste_lens.so",)
"""What QEMU loads: of QEMU's own machine, and linked to the libraries that it has anyway."""
SYMBOLS = tuple(f"{name}.symbols" for name in PROGRAMS)
"""The names of the programs' functions, which are built without them (setup/symbols)."""
TRIPLES = {62: "x86_64", 183: "aarch64"}
"""``e_machine`` of ELF files, and the machine's name in the wheel's tag."""
MANUAL = ("tutorial", "how-to", "reference", "explanation", "glossary.md", "install.md")
"""What `ajuste help` shows, in docs."""
INTERPRETER = 3
"""The type of a program header that names the dynamic linker: a static program has none."""


class Carried(BuildHookInterface[Any]):
    """The build hook of the wheel. An editable installation finds all of this in the source tree."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say which files the wheel has besides the package, and for which machine it is."""
        if version == "editable":
            return
        root = Path(self.root)
        programs = [_programs_of(root) / name for name in PROGRAMS]
        libraries = [_programs_of(root) / name for name in LIBRARIES]
        symbols = [_programs_of(root) / name for name in SYMBOLS]
        share = root / "target" / "share"
        for needed in (*programs, *libraries, *symbols, share):
            if not needed.exists():
                raise FileNotFoundError(f"{needed} not found: build the wheel with make dist")
        machines = {_machine(program) for program in programs}
        if len(machines) > 1:
            raise ValueError(f"{programs[0].parent} has programs for several machines: {', '.join(sorted(machines))}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_17_{machines.pop()}"
        build_data["shared_data"][str(share)] = "share"
        carried = {str(program): f"ajuste/native/{program.name}" for program in (*programs, *libraries, *symbols)}
        carried |= {str(root / "docs" / name): f"ajuste/manual/{name}" for name in MANUAL}
        carried[str(self._record(root, [*programs, *libraries]))] = "ajuste/native/build.json"
        build_data["force_include"].update(carried)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the record of the build, which the wheel has now."""
        if version != "editable":
            self._directory.cleanup()

    def _record(self, root: Path, programs: list[Path]) -> Path:
        self._directory = tempfile.TemporaryDirectory(prefix="ajuste-wheel-")
        record = Path(self._directory.name) / "build.json"
        facts = {
            "commit": _git(root, "rev-parse", "HEAD"),
            "modified": bool(_git(root, "status", "--porcelain", "--untracked-files=no")),
            "programs": {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in programs},
        }
        record.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        return record


def _programs_of(root: Path) -> Path:
    chosen = os.environ.get("AJUSTE_NATIVE")
    return Path(chosen) if chosen else root / "target" / "x86_64-unknown-linux-gnu" / "release"


def _machine(program: Path) -> str:
    """For which machine a program is. Raises ValueError for one that needs shared libraries."""
    content = program.read_bytes()
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{program} is not a 64-bit little-endian ELF file")
    machine, headers, size, count = *struct.unpack_from("<H12xQ", content, 18), *struct.unpack_from("<HH", content, 54)
    types = [struct.unpack_from("<I", content, headers + place * size)[0] for place in range(count)]
    if INTERPRETER in types or machine not in TRIPLES:
        raise ValueError(f"{program} is not a static program for {' or '.join(TRIPLES.values())}")
    return TRIPLES[machine]


def _git(root: Path, *words: str) -> str:
    """What git says; nothing outside of a repository."""
    try:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
