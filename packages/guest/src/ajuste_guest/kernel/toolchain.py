"""The compiler that kernels and their modules are built with."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ajuste.catalogue.programs import install_hint
from ajuste.model.error import RequestError

REPRODUCIBLE: Final = MappingProxyType(
    {
        "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
        "KBUILD_BUILD_USER": "ajuste",
        "KBUILD_BUILD_HOST": "ajuste",
        "KBUILD_BUILD_VERSION": "1",
    }
)
"""Variables of make: the same sources and options give the same kernel, no matter who builds it and when."""


def compiler() -> str:
    """Return what compiles and links, with their versions."""
    versions: list[str] = []
    for program in ("gcc", "ld"):
        process = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        versions.append((process.stdout.splitlines() or [program])[0])
    return "; ".join(versions)


def require_none(lacking: Mapping[str, str], what: str) -> None:
    """Raise RequestError if programs or headers, by package, are ``lacking`` for ``what``."""
    if lacking:
        raise RequestError(
            f"building {what} requires {', '.join(sorted(lacking))}, not found on this machine",
            hint=install_hint(*sorted(set(lacking.values()))),
        )
