"""Bundles: runs as one compressed file for another store, with a checksum of the whole.

Lines of JSON, compressed with Zstandard: a header; for each run its study, its trials, its recordings and
its answers; and last the SHA-256 of all lines before. A bundle may come from a stranger: everything has a limit, and
each line must be exactly what this program would write. docs/reference/bundle.md describes it for other programs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, TypeVar

from pydantic import AfterValidator, ConfigDict, Field

from ajuste.design.stopping import Why
from ajuste.model.base import BaseModel
from ajuste.model.caller import open_given
from ajuste.model.error import RequestError
from ajuste.model.explanation import Recorded
from ajuste.model.results import Results
from ajuste.model.trial import Trial
from ajuste.store.checks import canonical as compact_json
from ajuste.store.location import new_file

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FORMAT: Final = "ajuste bundle"
BUNDLE_VERSION: Final = 1
MOST_RUNS: Final = 1_000
MOST_TRIALS: Final = 1_000_000
"""Maximum number of trials of one run."""
MOST_RECORDED: Final = 10_000
LARGEST_FILE: Final = 256 << 20
LARGEST_CONTENT: Final = 4 << 30
"""Bytes when it is unpacked."""
MOST_UNPACKED: Final = 2_000
"""Bytes that a byte of the file may unpack to, beyond ``SPARE_CONTENT``. Trials that are all alike come to some 300."""
SPARE_CONTENT: Final = 32 << 20
_LEVEL: Final = 15
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')
# What reading and checking a line of JSON raises (pydantic's error is a ValueError).
_WRONG: Final = (ValueError, TypeError, RecursionError)
Model = TypeVar("Model", bound=BaseModel)

_ID: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}(\.\d{1,6})?")
Short = Annotated[str, Field(max_length=100_000)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
COPY_AGAIN: Final = "ask for a new copy, made with ajuste bundle"


def _moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without its zone")
    return text


def _no_id(text: str) -> str:
    if _ID.fullmatch(text):
        raise ValueError("a study called like a run")
    return text


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class BundleHeader(_Line):
    """The first line. Whatever a later version changes, it begins with these two."""

    format: Literal["ajuste bundle"]
    version: Annotated[int, Field(ge=1)]


class BundleContents(BundleHeader):
    """The first line of this version: how many ``runs`` follow."""

    runs: Annotated[int, Field(ge=1, le=MOST_RUNS)]


class BundledRun(_Line):
    """A run that ended, as the store has it (see ``store.store.Run``), with the trials of its base. ``machines`` says
    by block who measured it, if there were several; so many ``trials`` and recordings follow.
    """

    id: Annotated[str, Field(pattern=f"^{_ID.pattern}$")]
    study: Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_no_id)]
    fingerprint: Annotated[str, Field(min_length=1, max_length=200)]
    seed: Annotated[int, Field(ge=0, lt=1 << 63)]
    created: Annotated[str, AfterValidator(_moment)]
    ajuste: Annotated[str, Field(max_length=200)]
    named: Short
    resolved: str
    stopped: Why
    stopped_because: Short
    kernel: Short
    workload: Short
    environment: dict[str, Any]
    machines: dict[Annotated[str, Field(pattern=r"^\d{1,9}$")], Annotated[str, Field(max_length=1_000)]]
    trials: Annotated[int, Field(ge=0, le=MOST_TRIALS)]
    recorded: Annotated[int, Field(ge=0, le=MOST_RECORDED)]
    digest: Sha256


class _Trailer(_Line):
    sha256: Sha256


class Bundled(Protocol):
    """A run to be written."""

    @property
    def head(self) -> BundledRun: ...

    @property
    def trials(self) -> Iterable[Trial]: ...

    @property
    def recorded(self) -> Iterable[Recorded]: ...

    @property
    def results(self) -> Results: ...


def canonical(document: Mapping[str, Any]) -> bytes:
    """Return the one way in which a document is written, as a line."""
    return compact_json(document) + b"\n"


def run_lines(run: Bundled) -> Iterator[bytes]:
    """Yield all lines of a run."""
    yield canonical(run.head.model_dump())
    for trial in run.trials:
        yield canonical(trial.model_dump())
    for recorded in run.recorded:
        yield canonical(recorded.model_dump(mode="json"))
    yield canonical(run.results.model_dump(mode="json"))


def write_bundle(file: Path, runs: Iterable[Bundled], count: int) -> None:
    """Write ``count`` runs to the new ``file``, whole or not at all: the same runs give the same bytes. Raises
    RequestError if it is there already or cannot be written.
    """
    if not file.absolute().parent.is_dir():
        raise RequestError(f"{file}: expected a file in an existing directory")
    try:
        with new_file(file) as part, zstd.ZstdFile(part, "w", level=_LEVEL) as packed:
            digest = hashlib.sha256()
            header = BundleContents(format=FORMAT, version=BUNDLE_VERSION, runs=count)
            lines = (line for run in runs for line in run_lines(run))
            for line in (canonical(header.model_dump()), *lines):
                packed.write(line)
                digest.update(line)
            packed.write(canonical({"sha256": digest.hexdigest()}))
    except OSError as error:
        raise RequestError(f"{file}: {error.strerror or error}", hint="choose a FILE that you can write") from error


class PartLimit(NamedTuple):
    """The limit of a line: its bytes, and its values, each of which takes much more memory than its bytes."""

    size_bytes: int
    values: int


LIMITS: Final[Mapping[type[BaseModel], PartLimit]] = {
    BundleHeader: PartLimit(1 << 10, 100),
    BundledRun: PartLimit(32 << 20, 200_000),
    Trial: PartLimit(64 << 20, 50_000),
    Recorded: PartLimit(64 << 20, 2_000_000),
    Results: PartLimit(64 << 20, 1_000_000),
    _Trailer: PartLimit(1 << 10, 100),
}


def is_beyond(document: bytes, values: int) -> bool:
    """Return whether a JSON document has more than so many values. It is not parsed; a text counts as one value."""
    if len(document) - len(document.translate(None, b",[{")) <= values:
        return False
    plain = _TEXT.sub(b"", document)
    return len(plain) - len(plain.translate(None, b",[{")) > values


class BundleReader:
    """The lines of a bundle in their order. Every method raises RequestError for what is not as it must be."""

    def __init__(self, name: str, packed: zstd.ZstdFile, size_bytes: int) -> None:
        self._name = name
        self._packed = packed
        self._left = min(LARGEST_CONTENT, SPARE_CONTENT + MOST_UNPACKED * size_bytes)
        self._found = hashlib.sha256()
        self._number = 0
        header = self._header()
        self.runs = header.runs

    def run(self) -> BundledRun:
        """Read the head of the next run."""
        return self._next(BundledRun)

    def trials(self, run: BundledRun) -> Iterator[Trial]:
        """Read the trials of the run, in the order of the design."""
        return (self._next(Trial) for _ in range(run.trials))

    def recorded(self, run: BundledRun) -> Iterator[Recorded]:
        """Read the recordings of the run."""
        return (self._document(Recorded) for _ in range(run.recorded))

    def results(self) -> Results:
        """Read the results of the run."""
        return self._document(Results)

    def end(self) -> None:
        """Check, after all runs, that nothing is missing, added or changed."""
        expected = self._found.hexdigest()
        if self._next(_Trailer).sha256 != expected:
            raise RequestError(f"{self._name} is damaged or forged: its checksum differs", hint=COPY_AGAIN)
        if self._line(_Trailer, may_end=True):
            raise self._wrong("stands behind the end")

    def _header(self) -> BundleContents:
        line = self._line(BundleHeader)
        try:
            document = json.loads(line)
            known = BundleHeader.model_validate({name: document[name] for name in BundleHeader.model_fields})
        except (*_WRONG, LookupError) as error:
            raise RequestError(
                f"{self._name} is not a bundle of Ajuste", hint="make one with ajuste bundle RUN -o FILE.ajuste"
            ) from error
        if known.version > BUNDLE_VERSION:
            raise RequestError(
                f"{self._name} has version {known.version} of the format; this Ajuste reads up to {BUNDLE_VERSION}",
                hint="update Ajuste",
            )
        return self._read(BundleContents, line)

    def _document(self, model: type[Model]) -> Model:
        line = self._line(model)
        try:
            return model.model_validate_json(line)
        except _WRONG as error:
            raise self._wrong("is not as expected") from error

    def _next(self, model: type[Model]) -> Model:
        return self._read(model, self._line(model))

    def _read(self, model: type[Model], line: bytes) -> Model:
        try:
            document = model.model_validate(json.loads(line))
            if canonical(document.model_dump(exclude_unset=True)) == line:
                return document
        except _WRONG as error:
            raise self._wrong("is not as expected") from error
        raise self._wrong("is not as expected")

    def _line(self, part: type[BaseModel], *, may_end: bool = False) -> bytes:
        # The next line, which is a `part` of its size at most.
        limit = LIMITS[part]
        most = min(limit.size_bytes, self._left)
        try:
            line: bytes = self._packed.readline(most + 1)
        except (zstd.ZstdError, EOFError, OSError) as error:
            what = "is not a bundle of Ajuste" if not self._number else "is damaged: it does not unpack"
            raise RequestError(f"{self._name} {what}", hint=COPY_AGAIN) from error
        if len(line) > most:
            raise self._too_large(f"{most:,} bytes")
        if not line.endswith(b"\n") and not (may_end and not line):
            raise RequestError(f"{self._name} is damaged: its end is missing", hint=COPY_AGAIN)
        if is_beyond(line, limit.values):
            raise self._too_large(f"{limit.values:,} values")
        self._left -= len(line)
        self._number += 1
        self._found.update(line)
        return line

    def _too_large(self, most: str) -> RequestError:
        return RequestError(f"{self._name} is too large: line {self._number + 1} has more than {most}", hint=COPY_AGAIN)

    def _wrong(self, what: str) -> RequestError:
        return RequestError(f"{self._name} is malformed: line {self._number} {what}", hint=COPY_AGAIN)


@contextmanager
def open_bundle(file: Path) -> Iterator[BundleReader]:
    """Open a bundle for reading. Raises RequestError."""
    try:
        with open_given(file) as opened:
            if os.fstat(opened.fileno()).st_size > LARGEST_FILE:
                raise RequestError(f"{file} is too large: a bundle has up to {LARGEST_FILE >> 20} MiB")
            with zstd.ZstdFile(opened) as packed:
                yield BundleReader(str(file), packed, os.fstat(opened.fileno()).st_size)
    except OSError as error:
        raise RequestError(f"{file}: {error.strerror or error}", hint="name a bundle, FILE.ajuste") from error
