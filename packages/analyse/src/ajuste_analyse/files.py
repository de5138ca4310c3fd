"""Files of results: all of them as one table, whatever format each is in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import Final

from ajuste.model.caller import as_caller, open_given
from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable, Summarised
from ajuste.model.metric import Metric
from ajuste.outputs.format import (
    DocumentFormat,
    ResultSource,
    TextFormat,
    parse_document,
    utf8,
)
from ajuste.outputs.programs import document_formats, text_formats
from ajuste_analyse import comma_separated
from ajuste_analyse.joining import apart, joined
from ajuste_stats.terms import Direction

# The formats that are known, and which of them a file is in.


TEXTS: Final[tuple[TextFormat, ...]] = (
    *text_formats(),
    TextFormat("csv", "CSV", lambda text: True, comma_separated.read),
)
"""Asked in this order; the last takes what no other knows."""
DOCUMENTS: Final[tuple[DocumentFormat, ...]] = document_formats()
NAMES: Final = ("csv", *sorted({*(text.name for text in TEXTS), *(doc.name for doc in DOCUMENTS)} - {"csv"}))
"""Values of ``--format``."""
KNOWN: Final = f"give CSV, or a file of another known format: {', '.join(NAMES[1:])}"


def read_source(source: ResultSource, chosen: str | None = None) -> MeasuredTable:
    """Read a file in the ``chosen`` format, or else in the one that it seems to be in. Raises RequestError."""
    place = Place(source.file)
    if not source.text.strip():
        raise RequestError("the file is empty", place=place, hint=KNOWN)
    if chosen is not None and chosen not in NAMES:
        raise RequestError(f"--format {chosen}: format not found; expected one of {', '.join(NAMES)}")
    documents = [kind for kind in DOCUMENTS if chosen in (None, kind.name)]
    texts = [kind for kind in TEXTS if chosen in (None, kind.name)]
    is_document = source.text.lstrip()[:1] in ("{", "[")
    for text in texts:
        if text.recognise(source.text) and not (text.name == "csv" and chosen is None and is_document):
            return text.read(source)
    if documents:
        return _document(source, documents)
    raise RequestError(f"this is not the output of {texts[-1].title}", place=place, hint=KNOWN)


def _document(source: ResultSource, documents: Sequence[DocumentFormat]) -> MeasuredTable:
    document = parse_document(source.text, source.file)
    for kind in documents:
        if kind.recognise(document):
            return kind.read(document, source.name, source.file)
    if len(documents) == 1:
        raise RequestError(f"this is not {documents[0].title}", place=Place(source.file), hint=KNOWN)
    raise RequestError("unknown JSON document", place=Place(source.file), hint=KNOWN)


LARGEST_BYTES: Final = 256 << 20
_MARKS: Final = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


@dataclass(frozen=True)
class FileRequest:
    """A request about files: their ``format`` where it cannot be recognised, which metrics are better ``lower`` or
    ``higher``, which are compared by ``differences`` although they are positive (names, also several with commas), and
    the N of ``perf stat -r N`` where the file does not say it.
    """

    format: str | None = None
    lower: Collection[str] = ()
    higher: Collection[str] = ()
    differences: Collection[str] = ()
    runs: int | None = None


def read_files(files: Sequence[Path], names: Sequence[str] = (), request: FileRequest | None = None) -> MeasuredTable:
    """Return all ``files`` as one table; a directory or a pattern such as ``before/*.json`` is a group of files. Each
    that does not name its configurations itself is one, called by ``names`` in the order of the files, or else after
    the file. Files of a group, or of one name, are measurements of the same; what several others have in common has
    their names before it.

    Raises RequestError with file and line for whatever cannot be read as it is.
    """
    if names and len(names) != len(files):
        raise RequestError(
            f"--name: found {len(names)} names for {len(files)} files; expected one for each file",
            hint="give --name once for each file, or not at all",
        )
    if not all(name.strip() for name in names):
        raise RequestError("--name: found an empty name; expected a name for each file")
    wanted = request or FileRequest()
    if wanted.runs is not None and wanted.runs < 2:
        raise RequestError(f"--runs {wanted.runs}: expected at least 2", place=Place(files[0]))
    chosen = [utf8(name.strip()) for name in names] or [utf8(name) for name in _names(files)]
    groups: dict[str, list[Path]] = {}
    for path, name in zip(files, chosen, strict=True):
        groups.setdefault(name, []).extend(matching_files(path))
    tables: list[tuple[str, MeasuredTable]] = []
    for name, paths in groups.items():
        sources = (ResultSource(_text(file), name, file, wanted.runs) for file in paths)
        tables.append((name, joined((source.file, read_source(source, wanted.format)) for source in sources)))
    samples = [sample for _, table in tables for sample in table.samples.values()]
    if wanted.runs is not None and not any(isinstance(s, Summarised) and s.n == wanted.runs for s in samples):
        raise RequestError(
            f"--runs {wanted.runs}: no file has a mean of so many runs; expected output of perf stat -r or of lkp",
            hint="omit --runs",
        )
    firsts = [paths[0] for paths in groups.values()]
    return _directed(joined(zip(firsts, apart(tables), strict=True)), wanted)


def matching_files(wanted: Path) -> list[Path]:
    """Return the files that a person means, sorted by name: a file, those in a directory or those that match a pattern.
    Raises RequestError where there is none.
    """
    try:
        with as_caller():
            if wanted.is_dir():
                paths = [path for path in sorted(wanted.iterdir()) if not path.name.startswith(".")]
            elif has_magic(str(wanted)) and not wanted.exists():
                paths = [Path(path) for path in sorted(glob(str(wanted), recursive=True))]  # noqa: PTH207 - also absolute ones
            else:
                return [wanted]
            files = [path for path in paths if path.is_file()]
    except OSError as error:
        raise RequestError(error.strerror or str(error), place=Place(wanted)) from None
    if not files:
        raise RequestError("has no files; expected at least one", place=Place(wanted))
    return files


def _label(path: Path) -> Path:
    if path.exists() or not has_magic(str(path)):
        return path.resolve() if path.name in ("", "..") else path
    plain = [part for part in path.parts if not has_magic(part)]
    return Path(plain[-1]) if plain else path


def _text(file: Path) -> str:
    try:
        with open_given(file) as opened:
            data = opened.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise RequestError(
                f"is larger than {LARGEST_BYTES >> 20} MiB; expected at most {LARGEST_BYTES >> 20} MiB",
                place=Place(file),
            )
    except OSError as error:
        raise RequestError(error.strerror or str(error), place=Place(file)) from None
    except ValueError as error:  # a NUL in the name
        raise RequestError(str(error), place=Place(file)) from None
    return _decoded(data, file)


def _decoded(data: bytes, file: Path) -> str:
    encoding = _MARKS.get(data[:2])
    try:
        text = data.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = f"byte {data[error.start]:#04x} is not UTF-8" if encoding is None else f"is not complete {encoding}"
        raise RequestError(wrong, place=Place(file, line), hint="convert it: iconv -t UTF-8") from None
    if "\0" in text:
        place = Place(file, text.count("\n", 0, text.index("\0")) + 1)
        raise RequestError("has a NUL byte; expected text in UTF-8, or in UTF-16 with a byte order mark", place=place)
    return text


def _names(files: Sequence[Path]) -> list[str]:
    labels = [_label(file) for file in files]
    parts = zip(*(file.parts for file in files), strict=False) if files != labels else ()
    candidates = (
        [label.stem for label in labels],
        [label.name for label in labels],
        [str(label) for label in labels],
        *(list(part) for part in parts if not any(map(has_magic, part))),
        [str(file) for file in files],
    )
    for names in candidates:
        if len(set(names)) == len(names):
            return names
    raise RequestError("a file is given twice; expected different files", hint="give each its own name with --name")


def split_names(words: Collection[str], table: MeasuredTable) -> tuple[str, ...]:
    """Split the names of metrics that a person gave: each a metric of the table as it is, or several with commas."""
    known = {metric.name for metric in table.metrics}
    parts = (part for word in words for part in ([word] if word in known else word.split(",")))
    return tuple(part.strip() for part in parts if part.strip())


def _directed(table: MeasuredTable, words: FileRequest) -> MeasuredTable:
    known = [metric.name for metric in table.metrics]
    request = replace(
        words,
        lower=split_names(words.lower, table),
        higher=split_names(words.higher, table),
        differences=split_names(words.differences, table),
    )
    for option, names in (
        ("--lower", request.lower),
        ("--higher", request.higher),
        ("--difference", request.differences),
    ):
        for name in names:
            if name not in known:
                raise RequestError(f"{option} {name}: metric not found; expected one of {', '.join(known[:20])}")
    both = set(request.lower) & set(request.higher)
    if both:
        raise RequestError(f"{min(both)} is in --lower and --higher, which are mutually exclusive")
    return replace(table, metrics=tuple(_as_requested(metric, request) for metric in table.metrics))


def _as_requested(metric: Metric, request: FileRequest) -> Metric:
    direction: Direction = metric.direction
    if metric.name in request.lower:
        direction = "lower"
    elif metric.name in request.higher:
        direction = "higher"
    scale = "difference" if metric.name in request.differences else metric.scale
    return metric.model_copy(update={"direction": direction, "scale": scale})
