"""The Kconfig tree of a kernel's source, read by a process of its own: what it is asked, and what it answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from ajuste.catalogue.programs import install_hint
from ajuste.machine.files import require_trusted
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError, RunError
from ajuste_guest.kernel.config import ConfigFile

Cause = Literal["asked", "dependency", "selected", "choice", "hidden", "default", "range", "unknown"]
"""``asked``: the configuration says so and may; ``dependency``: a ``depends on`` (or the condition of a prompt) is
not met; ``selected``: other options force it on; ``choice``: of a group another one is taken; ``hidden``: it has no
prompt, so it can only follow from others; ``default``: nobody chose a value; ``range``: a number beyond its limits;
``unknown``: this kernel has no such option."""

LONGEST_S: Final = 300.0
"""Limit of one reading. It runs some two hundred tests of the compiler: 5 s on a machine of today, minutes on one that
is very busy."""

_MAKE_VARIABLE: Final = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)\s*=[ \t]*(\S*)", re.MULTILINE)
_LONGEST_MESSAGE: Final = 600


class KconfigQuestion(BaseModel):
    """A question about one configuration, ``config``: the value of each option as text, ``n`` where it is off.

    ``explain`` has for each option in question the value that was wanted, if any; ``describe`` further options that are
    only to be described; ``defaults`` those whose value without the configuration's word is wanted; ``values`` asks for
    the value of all.
    """

    config: dict[str, str]
    explain: dict[str, str | None] = {}
    describe: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()
    values: bool = False


class KconfigReading(BaseModel):
    """A request to the reader of Kconfig files: questions, answered in their order with one reading of the tree."""

    asked: tuple[KconfigQuestion, ...]


class KconfigAnswer(BaseModel):
    """The answer to a question. ``options`` has those that the kernel has. ``values`` is what the whole configuration
    comes to once Kconfig has applied its rules.
    """

    explanations: dict[str, OptionExplanation] = {}
    options: dict[str, KconfigOption] = {}
    values: dict[str, str] = {}
    defaults: dict[str, str] = {}


# Why an option of a kernel has its value.


class KconfigOption(BaseModel):
    """An option by a kernel's Kconfig: ``title`` is its prompt, ``help`` the first sentence of its help,
    ``menus`` the menus around it, outermost first, ``file`` where it is defined, below the source.
    """

    name: str
    kind: Literal["bool", "tristate", "string", "int", "hex"]
    title: str = ""
    help: str = ""
    menus: tuple[str, ...] = ()
    file: str = ""
    line: int = 0

    @property
    def directory(self) -> str:
        """Return the most probable directory of its code, such as ``net/mptcp``."""
        return self.file.rpartition("/")[0]


class OptionExplanation(BaseModel):
    """The reason why the option ``name`` has its ``value``, as ``sentence`` says; ``wanted`` is the value it was
    compared with, if any.

    ``deciding`` are the options that it follows from, most direct first: what is not met of its dependencies, what
    selects it, what is taken instead. ``because`` says of those that were not simply asked for why they are so.
    ``nearest`` are names like that of an unknown option.
    """

    name: str
    value: str
    wanted: str | None = None
    cause: Cause
    sentence: str
    deciding: tuple[str, ...] = ()
    because: tuple[OptionExplanation, ...] = ()
    nearest: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """Return the whole chain, from the option to what decides."""
        yield self.sentence
        for cause in self.because:
            yield from cause.sentences()

    def hint(self) -> str:
        """Return the chain in one text, for an error."""
        return "\n".join(dict.fromkeys(self.sentences()))


_ANSWERS: Final = TypeAdapter(tuple[KconfigAnswer, ...])


def explain(source: Path, config: ConfigFile, wanted: Mapping[str, str | None]) -> dict[str, OptionExplanation]:
    """Explain why each option that ``wanted`` names has the value that ``config`` gives it under the rules of
    ``source``, and not the wanted one (None: any). Raises RequestError where ``source`` is no kernel or a program for
    reading it is missing, RunError where reading it fails.
    """
    return ask(source, [KconfigQuestion(config=as_values(config), explain=dict(wanted))])[0].explanations


def ask(source: Path, questions: list[KconfigQuestion], *, longest_s: float = LONGEST_S) -> tuple[KconfigAnswer, ...]:
    """Answer all questions with one reading of the tree. Raises as ``explain``."""
    require_sources_of_root(source)
    environment = _environment(source)
    request = KconfigReading(asked=tuple(questions)).model_dump_json().encode()
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-m", "ajuste_kernels.kconfig_reader"],
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
        complaint = child.stderr.decode(errors="replace").strip()[-_LONGEST_MESSAGE:]
        raise RunError(f"cannot read the Kconfig files of {source}: {complaint or f'exit code {child.returncode}'}")
    try:
        return _ANSWERS.validate_json(child.stdout)
    except ValidationError as error:
        raise RunError(f"reading the Kconfig files of {source} gave no answer") from error


def as_values(config: ConfigFile) -> dict[str, str]:
    """Return the configuration as ``KconfigQuestion`` has it."""
    return {name: setting.text for name, setting in config.settings.items() if setting.kind != "absent"}


def require_sources_of_root(source: Path) -> None:
    """Raise RequestError where root would use sources that another user can change: their files run commands."""
    if os.geteuid() != 0:
        return
    try:
        for path in (source, source / "Makefile", source / "Kconfig"):
            require_trusted(path.resolve(), environment={})
    except RequestError:
        raise RequestError(
            f"as root, nothing is run from {source}, which another user can change",
            hint="run it without sudo, or from a copy that belongs to root",
        ) from None


def source_version(source: Path) -> str:
    """Return the version of a kernel's source, such as ``6.1.192``. Raises RequestError where it is no kernel."""
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
    # What Kconfig expects of make. Source: the kernel's Makefile and scripts/kconfig/Makefile.
    version = source_version(source)
    for program in ("gcc", "ld"):
        if shutil.which(program) is None:
            raise RequestError(
                f"{program} was not found; kernel options depend on the compiler",
                hint=install_hint("gcc", "binutils"),
            )
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
        "CC_VERSION_TEXT": _first_line("gcc", "--version"),
        "HOSTCC": "gcc",
        "HOSTCXX": "g++",
        "LD": "ld",
        "AR": "ar",
        "NM": "nm",
        "OBJCOPY": "objcopy",
        "RUSTC": "rustc",
        "RUSTC_VERSION_TEXT": _first_line("rustc", "--version"),
        "RUSTC_OR_CLIPPY": "rustc",
        "BINDGEN": "bindgen",
        "PAHOLE": "pahole",
        "PAHOLE_VERSION": _first_line(str(source.absolute() / "scripts/pahole-version.sh"), "pahole"),
        "CONFIG_SHELL": "/bin/sh",
    }


def _first_line(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition("\n")[0]
    except OSError:
        return ""
