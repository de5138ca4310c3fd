"""How this Ajuste was installed: from where it runs, what its build recorded, and what mends or completes it."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import struct
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from ajuste.model.error import RequestError

PACKAGE: Final = Path(__file__).parents[1]
TREE: Final = PACKAGE.parent.parent
"""The source tree, where the package is part of one."""
NATIVE: Final = PACKAGE / "native"
"""What a wheel carries besides Python: programs, sources of kernel modules, and the record of the build."""
RECORD: Final = NATIVE / "build.json"
OPT: Final = Path("/opt/ajuste")
"""Where the Debian package puts its environment."""
FOR_USER: Final = (".local", "lib", "ajuste")
"""Where setup/install puts it for one user: the last directories of its path."""
FOR_ALL: Final = Path("/usr/local/lib/ajuste")
"""Where setup/install puts it as root, for all users."""

_REINSTALL: Final = "sudo apt-get install --reinstall ./ajuste_VERSION_ARCHITECTURE.deb"

SUDO_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where sudo looks for programs on Debian (``secure_path`` of sudoers(5))."""

Way = Literal["tree", "deb", "pipx", "uv", "pip", "setup/install"]

EXTRAS: Final = MappingProxyType(
    {
        "cluster": ("cryptography", "distributed"),
        "mcp": ("mcp",),
        "notebook": ("pandas", "polars"),
        "perfetto": ("perfetto",),
        "pictures": ("matplotlib",),
        "postgresql": ("psycopg",),
        "search": ("cmaes", "optuna", "pydoe", "sklearn"),
        "serve": ("starlette", "uvicorn"),
    }
)
"""The optional parts, with the modules that only they have."""

# `e_machine` of an ELF file (elf.h), as uname(2) names the machine.
_MACHINES: Final = MappingProxyType({3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"})


def ajuste_version() -> str:
    """Return the installed version; ``unknown`` in a bare tree."""
    from importlib.metadata import PackageNotFoundError, version  # It takes long to load, and few commands say it.

    try:
        return version("ajuste")
    except PackageNotFoundError:
        return "unknown"


def in_tree() -> bool:
    """Return whether it runs from its source tree."""
    return (TREE / "Cargo.toml").is_file()


def way() -> Way:
    """Return which program manages the environment that it runs in."""
    prefix = Path(sys.prefix)
    if in_tree():
        return "tree"
    if prefix == OPT:
        return "deb"
    if (prefix / "pipx_metadata.json").is_file():
        return "pipx"
    if prefix == FOR_ALL or prefix.parts[-3:] == FOR_USER:
        return "setup/install"
    return "uv" if find_spec("pip") is None else "pip"


def command_to_add(extra: str) -> str:
    """Return the command that installs an optional part, without a package index for Ajuste itself."""
    wanted = shlex.quote(f"ajuste[{extra}]")
    return {
        "tree": "make setup",
        "deb": _REINSTALL,
        "pipx": f"pipx runpip ajuste install {wanted}",
        "uv": f"uv pip install --python {shlex.quote(sys.prefix)} {wanted}",
        "pip": f"{shlex.quote(sys.executable)} -m pip install {wanted}",
        "setup/install": f"sh install 'WHEEL[{extra}]'",
    }[way()]


def how_to_mend() -> str:
    """Return the hint for a missing or damaged part of the installation, with the command."""
    if in_tree():
        return "build it with: make setup"
    return (
        "install Ajuste again: "
        + {
            "deb": _REINSTALL,
            "pipx": "pipx install --force WHEEL",
            "uv": f"uv pip install --python {shlex.quote(sys.prefix)} --reinstall WHEEL",
            "pip": f"{shlex.quote(sys.executable)} -m pip install --force-reinstall WHEEL",
            "setup/install": "sh install WHEEL",
        }[way()]
    )


def as_root(words: Sequence[str] | None = None, path: str = SUDO_PATH) -> str:
    """Return the command line that runs ``ajuste`` with ``words`` as root; without them, this very command.

    The program's whole path is given where sudo does not find it by name; sudo passes no environment on.
    """
    program = Path(shutil.which(sys.argv[0]) or sys.argv[0]).absolute()
    by_name = shutil.which("ajuste", path=path)
    name = "ajuste" if by_name is not None and Path(by_name).resolve() == program.resolve() else str(program)
    kept = [f"{key}={os.environ[key]}" for key in ("AJUSTE_HOME", "AJUSTE_NATIVE") if key in os.environ]
    command = shlex.join([*kept, name, *(sys.argv[1:] if words is None else words)])
    if shutil.which("sudo") is None:
        return f"su -c {shlex.quote(command)}"
    return f"sudo {command}"


def require_extra(extra: str) -> None:
    """Raise RequestError if an optional part is not installed, without loading any of it."""
    for module in EXTRAS[extra]:
        if find_spec(module) is None:
            raise _lacking(module, extra)


def lacking(error: ModuleNotFoundError) -> RequestError | None:
    """Return the message for a module that could not be loaded, ``None`` for a fault in the source tree."""
    module = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if module in modules), None)
    if extra is not None:
        return _lacking(module, extra)
    if in_tree() and module in ("", "ajuste"):
        return None
    return RequestError(f"Python module {error.name or error} not found; Ajuste requires it", hint=how_to_mend())


def _lacking(module: str, extra: str) -> RequestError:
    message = f"{module} is not installed; it is an optional part of Ajuste"
    return RequestError(message, hint=f"install it: {command_to_add(extra)}")


def recorded() -> dict[str, Any]:
    """Return what the wheel's build recorded: commit, and SHA-256 of native programs; empty in a source tree."""
    try:
        record = json.loads(RECORD.read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def require_runnable(program: Path) -> None:
    """Raise RequestError for a program of another kind of machine, and for a file that is no whole program."""
    try:
        with program.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise RequestError(f"{program}: {error.strerror}", hint=how_to_mend()) from error
    if head[:2] == b"#!":
        return
    if head[:4] != b"\x7fELF" or len(head) < 20:
        raise RequestError(f"{program} is not a program of Linux", hint=how_to_mend())
    (number,) = struct.unpack(">H" if head[5] == 2 else "<H", head[18:20])
    expected, actual = platform.machine(), _MACHINES.get(number, f"another machine (ELF {number})")
    if actual != expected:
        raise RequestError(
            f"{program} is a program for {actual}; expected one for {expected}, this machine",
            hint=f"install the wheel for {expected}: ajuste-VERSION-py3-none-manylinux_2_17_{expected}.whl",
        )


def c_library() -> str | None:
    """Return the name and version of this machine's C library, such as ``glibc 2.36``, ``None`` if unknown."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def require_c_library(library: Path) -> None:
    """Raise RequestError where a shared ``library`` needs a newer C library than this machine has. All programs are
    static: only what QEMU loads has such a need.
    """
    needed = max(_versions(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes()), default=(0, 0))
    here = c_library()
    if needed > max(_versions(rb"^glibc (\d+)\.(\d+)", (here or "").encode()), default=(0, 0)):
        raise RequestError(
            f"{library.name}, which QEMU loads, requires glibc {needed[0]}.{needed[1]} or later; this machine has "
            f"{here or 'another C library'}",
            hint="name metrics that do not count instructions, or use a newer release of the distribution",
        )


def _versions(pattern: bytes, content: bytes) -> list[tuple[int, int]]:
    return [(int(major), int(minor)) for major, minor in re.findall(pattern, content)]
