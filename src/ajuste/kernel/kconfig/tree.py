"""The Kconfig tree of a kernel's source, read by a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from ajuste.catalogue.programs import install_hint
from ajuste.kernel.kconfig.config_file import ConfigFile
from ajuste.kernel.kconfig.message import KconfigAnswer, KconfigQuestion, KconfigReading, OptionExplanation
from ajuste.model.error import RequestError, RunError

LONGEST_S: Final = 300.0
"""Reading runs some two hundred tests of the compiler: 5 s on a machine of today, minutes on one that is very busy."""

_ANSWERS: Final = TypeAdapter(tuple[KconfigAnswer, ...])
_MAKE_VARIABLE: Final = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)\s*=[ \t]*(\S*)", re.MULTILINE)
_MOST_SAID: Final = 600


def explain(source: Path, config: ConfigFile, wanted: Mapping[str, str | None]) -> dict[str, OptionExplanation]:
    """Why each option that ``wanted`` names has the value that ``config`` gives it under the rules of ``source``, and
    not the value that was wanted (None: whatever it is).

    Raises RequestError where ``source`` is no kernel or a program for reading it is missing, RunError where reading it
    fails.
    """
    return ask(source, [KconfigQuestion(config=as_values(config), explain=dict(wanted))])[0].explanations


def ask(source: Path, asked: list[KconfigQuestion], *, longest_s: float = LONGEST_S) -> tuple[KconfigAnswer, ...]:
    """An answer for each, with one reading of the tree. Raises as ``explain``."""
    environment = _environment(source)
    request = KconfigReading(asked=tuple(asked)).model_dump_json().encode()
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-m", "ajuste.kernel.kconfig.child"],
            input=request,
            capture_output=True,
            check=False,
            cwd=source,
            env=environment,
            timeout=longest_s,
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"reading the Kconfig files of {source} took longer than {longest_s:g} s") from error
    if child.returncode:
        said = child.stderr.decode(errors="replace").strip()[-_MOST_SAID:]
        raise RunError(f"cannot read the Kconfig files of {source}: {said or f'exit code {child.returncode}'}")
    try:
        return _ANSWERS.validate_json(child.stdout)
    except ValidationError as error:
        raise RunError(f"reading the Kconfig files of {source} gave no answer") from error


def as_values(config: ConfigFile) -> dict[str, str]:
    """The configuration as ``Asked`` has it."""
    return {name: setting.text for name, setting in config.settings.items() if setting.kind != "absent"}


def source_version(source: Path) -> str:
    """The version that a kernel's source has, e.g. ``6.1.192``. Raises RequestError where it is no kernel."""
    try:
        makefile = (source / "Makefile").read_text(errors="replace")
    except OSError:
        makefile = ""
    parts: dict[str, str] = dict(_MAKE_VARIABLE.findall(makefile))
    if not {"VERSION", "PATCHLEVEL"} <= parts.keys() or not (source / "Kconfig").is_file():
        raise RequestError(f"{source} is not a Linux kernel source", hint="give a directory with Makefile and Kconfig")
    numbers = [parts[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if parts.get(name)]
    return ".".join(numbers) + parts.get("EXTRAVERSION", "")


def _environment(source: Path) -> dict[str, str]:
    """What Kconfig expects of the make that usually calls it. Source: the kernel's Makefile and
    scripts/kconfig/Makefile.
    """
    version = source_version(source)
    for program in ("gcc", "ld"):
        if shutil.which(program) is None:
            raise RequestError(
                f"{program} was not found; kernel options depend on the compiler",
                hint=install_hint("gcc", "binutils"),
            )
    first = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "PYTHONDONTWRITEBYTECODE": "1",
        "srctree": str(source.absolute()),
        "abs_srctree": str(source.absolute()),
        "ARCH": "x86",
        "SRCARCH": "x86",
        "SUBARCH": "x86",
        "KERNELVERSION": version,
        "CC": "gcc",
        "CC_VERSION_TEXT": first,
        "HOSTCC": "gcc",
        "HOSTCXX": "g++",
        "LD": "ld",
        "AR": "ar",
        "NM": "nm",
        "OBJCOPY": "objcopy",
        "RUSTC": "rustc",
        "RUSTC_OR_CLIPPY": "rustc",
        "BINDGEN": "bindgen",
        "PAHOLE": "pahole",
        "CONFIG_SHELL": "/bin/sh",
    }
