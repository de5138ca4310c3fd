"""Inputs that decide the figures of a page: studies, kernels, programs and the emulator, each with a digest.

Nothing is fetched: what is not on this machine, such as a kernel that is not in the cache, is left out.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import OwnKernel, PackagedKernel, parse_spec
from ajuste.machine.home import AGENT, WORKLOADS, Home, find_program, native_program
from ajuste.model.error import AjusteError
from ajuste.model.kernel import KernelImage
from ajuste.study.builtin import builtin_files, find_study
from ajuste.study.read import read_study
from ajuste.study.schema import Study
from ajuste_guest.executor.qemu import choose_emulator
from ajuste_guest.kernel.cache import cached_entries
from ajuste_guest.kernel.fetch import is_meant
from ajuste_guest.kernel.qemu import cached_qemu
from ajuste_kernels.building.built import find_built
from benchmarks.gallery.code import Function, code, functions
from benchmarks.gallery.pages import GALLERY, Page

_TREE: Final = GALLERY.parents[1]
_PROSE: Final = ("title", "question", "notes")
_KERNEL: Final = re.compile(r"(?:debian|mine):\S+")


@dataclass
class _Parts:
    """Names of what takes part in the commands of a page."""

    kernels: set[str] = field(default_factory=set)
    workloads: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)
    machines: set[str] = field(default_factory=set)


def inputs(page: Page, home: Home) -> dict[str, str]:
    """Return the inputs of ``page`` as they are now."""
    by_name: dict[str, str] = {}
    emulators: set[str] = set()
    parts = _Parts()
    for words in (*page.before, *(run.command for run in page.run), *(command.command for command in page.show)):
        study = _study(words)
        by_name[f"command {shlex.join(words)}"] = _digest([list(words), *_documents(words, study)])
        if study is not None and (version := _emulator(study, home)):
            emulators.add(version)
        _collect(words, study, parts)
    if emulators:
        by_name["QEMU"] = ", ".join(sorted(emulators))
    for spec in parts.kernels:
        if image := _kernel(spec, home):
            by_name[f"kernel {spec}"] = f"{image.package or image.release} {image.sha256[:16]}"
    for kind in parts.workloads:
        subcommand = catalogue().workloads[kind].arguments[0]
        by_name[f"workload {kind}"] = code(_functions(WORKLOADS), f"ajuste_workloads::{subcommand}::")
    for program in parts.programs:
        if path := find_program(program):
            by_name[f"program {program}"] = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    for machine in parts.machines:
        file = builtin_files("machines")[machine]
        by_name[f"machine {machine}"] = _digest(tomllib.loads(file.read_text(encoding="utf-8")))
    return dict(sorted(by_name.items()))


def agent() -> str:
    """Return a digest of the code of the agent, which runs in every guest but is not what a page asks about."""
    return code(_functions(AGENT))


def _study(words: tuple[str, ...]) -> Study | None:
    if words[0] != "run":
        return None
    name = words[1]
    return read_study(_TREE / name if name.endswith(".toml") else find_study(name), parse_kernel=parse_spec)


def _documents(words: tuple[str, ...], study: Study | None) -> Iterator[Any]:
    # What the words name, without prose: a study, a suite, patches.
    if study is not None:
        yield {name: value for name, value in study.document().items() if name not in _PROSE}
    if words[0] == "suite":
        yield tomllib.loads(builtin_files("suites")[words[1]].read_text(encoding="utf-8"))
    for word in words:
        if word.endswith(".patch"):
            yield (_TREE / word).read_text(encoding="utf-8")


def _collect(words: tuple[str, ...], study: Study | None, parts: _Parts) -> None:
    options = dict(pairwise(words))
    named = {spec for word in words for spec in word.split(",") if _KERNEL.fullmatch(spec)} - {options.get("--source")}
    if study is None:
        parts.kernels |= named
        _commands([words[words.index("--") + 1 :] if "--" in words else (), options.get("--background", "")], parts)
        return
    parts.kernels |= named or set(study.kernels)
    table = study.document()["workload"]
    _commands((value for key, value in _leaves(table) if key in {"kind", "command"}), parts)
    model = options.get("--machine") or (study.document().get("target", {}).get("machine") or {}).get("model")
    if model in builtin_files("machines"):
        parts.machines.add(model)


def _commands(commands: Iterable[Any], parts: _Parts) -> None:
    # A workload's name with its parameters, or a command line, which may be a script that starts bundled workloads.
    known = catalogue().workloads
    for command in commands:
        words = command.split() if isinstance(command, str) else list(command)
        if not words:
            continue
        parts.workloads |= {kind for kind in re.findall(rf"{WORKLOADS} ([\w-]+)", " ".join(words)) if kind in known}
        kind = known.get(words[0])
        if kind is None:
            scripted = re.findall(r"[\w-]+", " ".join(words[1:]))
            parts.programs |= {words[0], *(kind.program for kind in known.values() if kind.program in scripted)}
        elif kind.program == WORKLOADS:
            parts.workloads.add(kind.name)
        else:
            parts.programs |= {kind.program, *kind.needs}
    parts.programs.discard(WORKLOADS)


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from _leaves(inner, key)
    else:
        yield key, value


def _kernel(spec: str, home: Home) -> KernelImage | None:
    wanted = parse_spec(spec)
    if isinstance(wanted, OwnKernel):
        try:
            return find_built(wanted.name, home).image
        except AjusteError:
            return None
    if not isinstance(wanted, PackagedKernel):
        return None
    return next((entry.image for entry in cached_entries(home) if is_meant(wanted, entry)), None)


def _emulator(study: Study, home: Home) -> str | None:
    target = study.target
    if target.on_host:
        return None
    paced = target.time == "modelled"
    if (target.cpus > 1 or paced or target.topology is not None) and cached_qemu(home) is None:
        return None
    try:
        return choose_emulator(
            target.clock, target.cpus, home, lambda _: None, topology=target.topology, paced=paced
        ).version
    except AjusteError:
        return None


@cache
def _functions(name: str) -> dict[str, Function]:
    program = native_program(name)
    return functions(program.with_name(f"{name}.whole"))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
