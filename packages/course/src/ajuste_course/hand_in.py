"""Hand-ins: one file with the workbook and a bundle of its runs, sealed with a digest."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from pydantic import Field, ValidationError

from ajuste.machine.files import replaced
from ajuste.model.base import ClosedModel, first_problem
from ajuste.model.caller import open_given
from ajuste.model.error import RequestError
from ajuste.store.location import new_file
from ajuste.store.store import Store
from ajuste_course.sheet import AskStep, MeasureStep, PredictStep, Sheet
from ajuste_course.workbook import Workbook, now
from ajuste_share.bundle import LARGEST_FILE, write_bundle
from ajuste_share.sharing import StoredRun, to_bundle, unpacked

SUFFIX: Final = ".ajuste"
_ABOUT: Final = "hand-in.json"
_RUNS: Final = "runs.ajuste"
_LARGEST_ABOUT: Final = 4 << 20
_HINT: Final = "make one with ajuste course hand-in SHEET"


class HandIn(ClosedModel):
    """The head of a hand-in: the workbook, when it was made, and the SHA-256 of its runs' bundle; ``digest`` covers
    all of it.
    """

    format: Literal["ajuste hand-in"] = "ajuste hand-in"
    version: Literal[1] = 1
    workbook: Workbook
    made: str = Field(max_length=40)
    ajuste: str = Field(max_length=40)
    runs: str = Field(pattern=r"^([0-9a-f]{64})?$", description="SHA-256 of the bundle; empty without runs.")
    digest: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")

    @property
    def computed(self) -> str:
        """Return the digest that it must have."""
        return hashlib.sha256(self.model_copy(update={"digest": ""}).model_dump_json().encode()).hexdigest()


@dataclass(frozen=True)
class OpenedHandIn:
    """A hand-in with its runs in a temporary store, by the name of the step."""

    file: Path
    about: HandIn
    runs: dict[str, StoredRun]
    different: dict[str, tuple[str, ...]]


def missing(sheet: Sheet, workbook: Workbook) -> list[str]:
    """Return the names of the steps that are not done yet."""
    return [
        *(step.name for step in sheet.kind(PredictStep) if step.name not in workbook.predictions),
        *(step.name for step in sheet.kind(MeasureStep) if step.name not in workbook.runs),
        *(step.name for step in sheet.kind(AskStep) if step.name not in workbook.answers),
    ]


def write_hand_in(file: Path, workbook: Workbook, store: Store, version: str, *, overwrite: bool = False) -> HandIn:
    """Write a hand-in, whole or not at all, to a new file unless it may ``overwrite`` one. Raises RequestError."""
    with TemporaryDirectory(prefix="ajuste-hand-in-") as directory:
        bundle = Path(directory) / _RUNS
        digest = ""
        if workbook.runs:
            runs = to_bundle(list(workbook.runs.values()), store)
            write_bundle(bundle, runs, len(runs))
            digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
        about = HandIn(workbook=workbook, made=now(), ajuste=version, runs=digest)
        about = about.model_copy(update={"digest": about.computed})
        try:
            with replaced(file) if overwrite else new_file(file) as part, zipfile.ZipFile(part, "w") as archive:
                archive.writestr(_ABOUT, about.model_dump_json())
                if digest:
                    archive.write(bundle, _RUNS)
        except OSError as failure:
            raise RequestError(
                f"{file}: {failure.strerror or failure}", hint="choose a FILE that you can write"
            ) from None
    return about


@contextmanager
def open_hand_in(file: Path) -> Iterator[OpenedHandIn]:
    """Open a hand-in, which may come from anybody. Raises RequestError for one that is not whole."""
    with TemporaryDirectory(prefix="ajuste-hand-in-") as directory:
        about, bundle = _read(file, Path(directory))
        if not about.workbook.runs:
            yield OpenedHandIn(file, about, {}, {})
            return
        if bundle is None:
            raise RequestError(f"{file} is half a hand-in: it names runs and has none", hint=_HINT)
        try:
            with unpacked(bundle) as (runs, different):
                by_id = {stored.run.id: stored for stored in runs}
                if lost := next((run for run in about.workbook.runs.values() if run not in by_id), None):
                    raise RequestError(f"{file} is half a hand-in: run {lost} is missing", hint=_HINT)
                named = {step: by_id[run] for step, run in about.workbook.runs.items()}
                yield OpenedHandIn(file, about, named, different)
        except RequestError as failure:
            raise RequestError(failure.message.replace(str(bundle), str(file)), hint=_HINT) from failure


def _read(file: Path, directory: Path) -> tuple[HandIn, Path | None]:
    try:
        with open_given(file) as opened:
            size = opened.seek(0, 2)
            if size > LARGEST_FILE + _LARGEST_ABOUT:
                raise RequestError(f"{file} is too large: a hand-in has up to {LARGEST_FILE >> 20} MiB", hint=_HINT)
            with zipfile.ZipFile(opened) as archive:
                content = _member(archive, _ABOUT, _LARGEST_ABOUT)
                about = HandIn.model_validate_json(content) if content is not None else None
                runs = _member(archive, _RUNS, LARGEST_FILE)
    except OSError as failure:
        raise RequestError(f"{file}: {failure.strerror or failure}", hint="name a hand-in, FILE.ajuste") from None
    except zipfile.BadZipFile:
        raise RequestError(f"{file} is not a hand-in, or only half of one", hint=_HINT) from None
    except (ValueError, ValidationError, EOFError, RuntimeError, NotImplementedError) as failure:
        why = first_problem(failure) if isinstance(failure, ValidationError) else str(failure)
        raise RequestError(f"{file} is malformed: {why}", hint=_HINT) from None
    if about is None:
        raise RequestError(f"{file} is not a hand-in", hint=_HINT)
    if about.digest != about.computed:
        raise RequestError(f"{file} is damaged or was changed: its digest is not that of its content", hint=_HINT)
    if runs is None:
        return about, None
    if hashlib.sha256(runs).hexdigest() != about.runs:
        raise RequestError(
            f"{file} is damaged or was changed: its runs are not those that it was made with", hint=_HINT
        )
    bundle = directory / _RUNS
    bundle.write_bytes(runs)
    return about, bundle


def _member(archive: zipfile.ZipFile, name: str, most: int) -> bytes | None:
    try:
        information = archive.getinfo(name)
    except KeyError:
        return None
    if information.compress_type != zipfile.ZIP_STORED or information.file_size > most:
        raise RequestError(
            f"{name} of the hand-in is compressed or too large; expected at most {most >> 20} MiB", hint=_HINT
        )
    return archive.read(information)
