"""Files of results: which format each is in, and all of them as one table."""

from __future__ import annotations

import stat
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ajuste.foreign import (
    comma_separated,
    fio,
    google_benchmark,
    hackbench,
    hyperfine,
    linpack,
    perf_json,
    perf_text,
    pyperf,
)
from ajuste.foreign.document import Node, parse_document
from ajuste.foreign.perf import require_runs
from ajuste.foreign.table import Table, joined
from ajuste.model.error import Place, RequestError
from ajuste.model.metric import Direction, Metric

LARGEST_BYTES: Final = 256 << 20

_DOCUMENTS: Final[tuple[tuple[Callable[[Node], bool], Callable[[Node, str, Path], Table]], ...]] = (
    (hyperfine.recognise, hyperfine.read),
    (fio.recognise, fio.read),
    (google_benchmark.recognise, google_benchmark.read),
    (pyperf.recognise, pyperf.read),
)
_TEXTS: Final[tuple[tuple[Callable[[str], bool], Callable[[str, str, Path], Table]], ...]] = (
    (linpack.recognise, linpack.read),
    (hackbench.recognise, hackbench.read),
)
FORMATS: Final = (
    "CSV, the JSON of hyperfine, fio, pyperf and Google Benchmark, perf stat (text or -j), a LINPACK table, hackbench"
)


@dataclass(frozen=True)
class Asked:
    """What a person says of the files. ``runs`` is the N of ``perf stat -r N`` where the file does not say it."""

    lower: Collection[str] = ()
    higher: Collection[str] = ()
    runs: int | None = None


def read_files(files: Sequence[Path], names: Sequence[str] = (), asked: Asked | None = None) -> Table:
    """All ``files`` as one table. Each that does not name its configurations itself is one, called by ``names`` in the
    order of the files, or else after the file.

    Raises RequestError with file and line for whatever cannot be read as it is.
    """
    if names and len(names) != len(files):
        raise RequestError(
            f"{len(names)} names for {len(files)} files", hint="give --name once for each file, or never"
        )
    chosen = list(names) or _names(files)
    wanted = asked or Asked()
    for file in files:
        require_runs(wanted.runs, file)
    return _directed(joined(read_file(file, name, wanted) for file, name in zip(files, chosen, strict=True)), wanted)


def read_file(file: Path, name: str, asked: Asked) -> Table:
    """One file, whatever its format. Raises RequestError."""
    return read_text(_text(file), name, file, asked)


def read_text(text: str, name: str, file: Path, asked: Asked) -> Table:
    """The content of one file, whatever its format. Raises RequestError."""
    if not text.strip():
        raise RequestError("the file is empty", place=Place(file), hint=f"known are {FORMATS}")
    if perf_json.recognise(text):
        return perf_json.read(text, name, file, asked.runs)
    if text.lstrip()[:1] in ("{", "["):
        return _document(parse_document(text, file), name, file)
    if perf_text.recognise(text):
        return perf_text.read(text, name, file, asked.runs)
    for recognise, read in _TEXTS:
        if recognise(text):
            return read(text, name, file)
    return comma_separated.read(text, name, file)


def _document(document: Node, name: str, file: Path) -> Table:
    for recognise, read in _DOCUMENTS:
        if recognise(document):
            return read(document, name, file)
    raise RequestError("a JSON document of an unknown kind", place=Place(file), hint=f"known are {FORMATS}")


def _text(file: Path) -> str:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            raise RequestError("is no ordinary file", place=Place(file))
        if found.st_size > LARGEST_BYTES:
            raise RequestError(f"has more than {LARGEST_BYTES >> 20} MiB", place=Place(file))
        data = file.read_bytes()
    except OSError as error:
        raise RequestError(error.strerror or str(error), place=Place(file)) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RequestError(
            f"byte {data[error.start]:#04x} is no UTF-8", place=Place(file, line), hint="convert it: iconv -t UTF-8"
        ) from None


def _names(files: Sequence[Path]) -> list[str]:
    """The files' names without their endings; with them, or with their folders, where they would be equal."""
    for name in (lambda file: file.stem, lambda file: file.name, str):
        names = [str(name(file)) for file in files]
        if len(set(names)) == len(names):
            return names
    raise RequestError("a file is named twice", hint="give each a name of its own with --name")


def _directed(table: Table, asked: Asked) -> Table:
    """The table with what the person said of its metrics."""
    known = [metric.name for metric in table.metrics]
    for option, names in (("--lower", asked.lower), ("--higher", asked.higher)):
        for name in names:
            if name not in known:
                raise RequestError(f"{option} {name}: there is no such metric; there are {', '.join(known)}")
    both = set(asked.lower) & set(asked.higher)
    if both:
        raise RequestError(f"{min(both)} is named by --lower and by --higher")
    return replace(table, metrics=tuple(_with_direction(metric, asked) for metric in table.metrics))


def _with_direction(metric: Metric, asked: Asked) -> Metric:
    direction: Direction = metric.direction
    if metric.name in asked.lower:
        direction = "lower"
    elif metric.name in asked.higher:
        direction = "higher"
    return metric.model_copy(update={"direction": direction})
