"""Where the sources of a kernel come from: what files there are, and their content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

from ajuste.model.error import RequestError

Manifest = Mapping[str, str]
"""Every file by its path within the tree: what it is, in a word that changes with its content. Symbolic links begin
with ``l``, programs with ``x``, other files with ``f``."""

LINK: Final = "l"
PROGRAM: Final = "x"
PLAIN: Final = "f"

_NUMBERS: Final = re.compile(rb"^(VERSION|PATCHLEVEL|SUBLEVEL)[ \t]*=[ \t]*(\d+)[ \t]*$", re.MULTILINE)
_PARTS: Final = ("Makefile", "Kconfig", "arch/x86/Makefile")


class SourceOrigin(Protocol):
    """``title`` is how a person would say it, ``place`` stands for all its versions, ``digest`` for exactly this
    content.
    """

    @property
    def title(self) -> str: ...

    @property
    def place(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def manifest(self) -> Manifest: ...

    def read(self, path: str) -> bytes:
        """The content of a file of the manifest; of a link what it points to."""

    def write(self, paths: Iterable[str], into: Path) -> None:
        """Put files of the manifest below ``into``, where nothing is in their place and all directories are."""


def version_of(origin: SourceOrigin) -> str:
    """The kernel's version, such as ``6.1.192``. Raises RequestError for what is no source of a kernel."""
    for part in _PARTS:
        if part not in origin.manifest:
            raise RequestError(
                f"{origin.title} is not a Linux kernel source: {part} not found",
                hint="give the directory with the kernel's Makefile and Kconfig",
            )
    numbers = {name.decode(): value.decode() for name, value in _NUMBERS.findall(origin.read("Makefile"))}
    if not {"VERSION", "PATCHLEVEL"} <= numbers.keys():
        raise RequestError(
            f"{origin.title} is not a Linux kernel source: its Makefile has no VERSION",
            hint="give the directory with the kernel's Makefile and Kconfig",
        )
    return ".".join(numbers[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if name in numbers)


def digest_of(parts: Iterable[str]) -> str:
    """SHA-256 over several texts, which cannot be taken for others that are joined in another way."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogateescape")
        total.update(b"%d:" % len(data) + data)
    return total.hexdigest()


def manifest_digest(manifest: Manifest) -> str:
    return digest_of(text for item in sorted(manifest.items()) for text in item)
