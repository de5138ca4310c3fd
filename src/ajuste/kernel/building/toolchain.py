"""The programs and headers that building a kernel takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from ajuste.catalogue.programs import install_hint
from ajuste.kernel.building.configuration import Options
from ajuste.model.error import RequestError

_PROGRAMS: Final = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl-base",
    "xz": "xz-utils",
    "setpriv": "util-linux",
}
_HEADERS: Final = {"gelf.h": "libelf-dev"}

# What only some options take.
_PROGRAMS_FOR: Final = {
    "KERNEL_ZSTD": ("zstd", "zstd"),
    "KERNEL_LZ4": ("lz4", "lz4"),
    "KERNEL_LZO": ("lzop", "lzop"),
    "DEBUG_INFO_BTF": ("pahole", "dwarves"),
}
_HEADERS_FOR: Final = {
    "SYSTEM_TRUSTED_KEYRING": ("openssl/bio.h", "libssl-dev"),
    "MODULE_SIG": ("openssl/bio.h", "libssl-dev"),
}


def require_tools() -> None:
    """What every kernel takes, its configuration too. Raises RequestError that names the packages."""
    lacking = {program: package for program, package in _PROGRAMS.items() if shutil.which(program) is None}
    lacking |= {header: package for header, package in _HEADERS.items() if not _has_header(header)}
    _require_none(lacking)


def require_tools_for(options: Options) -> None:
    """What these options take besides. Raises RequestError that names the packages."""
    lacking = {
        program: package
        for name, (program, package) in _PROGRAMS_FOR.items()
        if options.get(name) == "y" and shutil.which(program) is None
    }
    lacking |= {
        header: package
        for name, (header, package) in _HEADERS_FOR.items()
        if options.get(name) == "y" and not _has_header(header)
    }
    _require_none(lacking)


def compiler() -> str:
    """What compiles and links, with their versions."""
    return "; ".join(_first_line(program) for program in ("gcc", "ld"))


def _first_line(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return (said.stdout.splitlines() or [program])[0]


def _has_header(name: str) -> bool:
    if any((Path(folder) / name).exists() for folder in ("/usr/include", "/usr/local/include")):
        return True
    return any(Path("/usr/include").glob(f"*-linux-gnu/{name}"))


def _require_none(lacking: dict[str, str]) -> None:
    if not lacking:
        return
    raise RequestError(
        f"building a kernel requires {', '.join(sorted(lacking))}, not found on this machine",
        hint=install_hint(*sorted(set(lacking.values()))),
    )
