"""Contents of a study file for guests: patches of kernels, and BPF schedulers, as programs or with their sources.

Nothing is built unless the table of capabilities allows it.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from pathlib import Path

from ajuste.analysis.condition import renamed
from ajuste.kernel.builder import kernel_builder
from ajuste.kernel.spec import is_to_build, specs_to_build
from ajuste.machine.files import file_sha256, hold, make_directory, replace_file
from ajuste.machine.home import Home
from ajuste.model.caller import open_given
from ajuste.model.capability import Asked
from ajuste.model.error import Place, RequestError
from ajuste.model.kernel import KernelImage
from ajuste.model.wording import Say
from ajuste.run.testbed import Contained
from ajuste.study.overrides import with_kernels
from ajuste.study.schema import SchedulerTable, Study
from ajuste.study.site import study_directory
from ajuste_guest.kernel.config import kernel_options
from ajuste_guest.kernel.schedulers import ELF, path_within, read_schedulers, require_loadable


def with_patches(study: Study, home: Home) -> Study:
    """Return ``study`` with the patches of its kernels as files, the form of ``kernel.spec``. Raises RequestError for a
    patch that the study does not contain.
    """
    texts = {patch.name: patch.text for patch in study.patches}
    names = {}
    for text, spec in specs_to_build(study.kernels).items():
        if lacking := next((str(patch) for patch in spec.patches if str(patch) not in texts), None):
            raise RequestError(
                f"the study does not contain the patch {lacking}; expected a [[patch]] with this name",
                hint="write one with ajuste reproduce RUN -o FILE",
                place=study.kernel_place(text),
            )
        files = []
        for patch in spec.patches:
            content = texts[str(patch)].encode()
            files.append(contained_folder(hashlib.sha256(content).hexdigest(), home) / patch)
            put_file(content, files[-1])
        names[text] = str(spec.model_copy(update={"patches": tuple(files)}))
    expect = renamed(study.expect, names) if study.expect else None
    return with_kernels(study, names).model_copy(update={"patches": (), "expect": expect})


def with_schedulers(
    study: Study, home: Home, rights: Asked, say: Say, paths: Sequence[Path] = (), within: Path | None = None
) -> Contained:
    """Return ``study`` with the programs of its BPF schedulers in the cache: from ``paths`` (in the directory
    ``within``), from the study's own directory, or built.

    Raises RequestError for a program that may not be built, is not found or has another hash, RunError if building
    fails.
    """
    programs = {scheduler.name: scheduler for scheduler in read_schedulers(paths, within)}
    tables = {table.name: table for table in study.schedulers}
    for name in programs:
        tables.setdefault(name, SchedulerTable(name=name, program=name))
    ready, notes = [], []
    for table in tables.values():
        place = study.place("scheduler", study.schedulers.index(table)) if table in study.schedulers else None
        if table.build is not None and table.name not in programs:
            rights.require("kernel source", shlex.join(table.build), f"scheduler {table.name}")
        if supplied := programs.get(table.name):
            digest = keep_program(read_program(supplied.file, table.name, None), table.name, home)
        elif table.build is not None:
            kernel = next((spec for spec in study.kernels if not is_to_build(spec)), None)
            digest = kernel_builder().build_scheduler(table, kernel, home, say)
        elif table.sha256 and is_cached(table.sha256, table.name, home):
            digest = table.sha256
        else:
            digest = _of_file(table, study_directory(study), home, place)
        if table.sha256 not in (None, digest):
            notes.append(f"{table.name} has the hash {digest[:12]}, not {table.sha256[:12]}")
        ready.append(table.model_copy(update={"sha256": digest}))
    return Contained(study.model_copy(update={"schedulers": tuple(ready)}), tuple(notes))


def with_programs(image: KernelImage, study: Study, home: Home) -> KernelImage:
    """Return the kernel with the schedulers of ``study`` beside its own. Raises RequestError for a kernel that cannot
    load them, or a scheduler that is not in the cache.
    """
    if not study.schedulers:
        return image
    stored = [contained_folder(table.sha256 or "", home) / table.name for table in study.schedulers]
    for table in study.schedulers:
        if not table.sha256 or not is_cached(table.sha256, table.name, home):
            raise RequestError(
                f"the program of {table.name} is not in the cache",
                hint="run the study again: ajuste run FILE" + (" --build" if table.build else ""),
            )
    require_loadable(read_schedulers(stored, cached=True), kernel_options(image), image.spec)
    others = sorted(image.schedulers.iterdir()) if image.schedulers else []
    files = {file.name: file for file in (*others, *stored)}
    digest = hashlib.sha256(
        "".join(f"{name} {file_sha256(file)}\n" for name, file in files.items()).encode()
    ).hexdigest()
    # Named by its content, so that processes may write the same folder at once.
    folder = contained_folder(digest, home)
    for name, file in files.items():
        if not (folder / name).is_file():
            put_file(file.read_bytes(), folder / name)
    return image.model_copy(update={"schedulers": folder})


def contained_folder(digest: str, home: Home) -> Path:
    """Return the directory of the cache for contents of that digest."""
    return home.cache / "contained" / digest


def put_file(content: bytes, file: Path) -> None:
    """Write a file of the cache, with its directory."""
    make_directory(file.parent)
    replace_file(file, content, mode=0o700)
    hold(file.parent)


def keep_program(content: bytes, name: str, home: Home) -> str:
    """Put the program of the scheduler ``name`` into the cache and return its hash."""
    digest = hashlib.sha256(content).hexdigest()
    put_file(content, contained_folder(digest, home) / name)
    return digest


def is_cached(digest: str, name: str, home: Home) -> bool:
    """Return whether the cache has the program of the scheduler ``name``, intact."""
    file = contained_folder(digest, home) / name
    if not file.is_file() or file_sha256(file) != digest:
        return False
    hold(file.parent)
    return True


def _of_file(table: SchedulerTable, directory: Path, home: Home, place: Place | None) -> str:
    if table.program is None:
        raise RequestError(
            f"{table.name} is not contained in the file, only its hash",
            hint=f"give its program, of SHA-256 {table.sha256}: --scheduler DIR/{table.name}",
            place=place,
        )
    file = path_within(directory, table.program, place)
    if not file.is_file():
        raise RequestError(
            f"the program {table.program} of {table.name} not found in {directory}",
            hint=f"build it, or give it with --scheduler DIR/{table.name}",
            place=place,
        )
    content = read_program(file, table.name, place)
    digest = hashlib.sha256(content).hexdigest()
    if table.sha256 not in (None, digest):
        raise RequestError(
            f"{table.program} has the SHA-256 {digest}; expected {table.sha256}",
            hint=f"add --scheduler DIR/{table.name} to test this program instead",
            place=place,
        )
    return keep_program(content, table.name, home)


def read_program(file: Path, name: str, place: Place | None) -> bytes:
    """Return the content of a scheduler's program. Raises RequestError for a file that is none."""
    with open_given(file) as opened:
        content = opened.read()
    if not content.startswith(ELF):
        raise RequestError(
            f"{file.name} is not an ELF file; expected the program of {name}", place=place, of_candidate=True
        )
    return content
