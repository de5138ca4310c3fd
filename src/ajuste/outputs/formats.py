"""The formats that are known, and which of them a file is in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import Table
from ajuste.outputs import (
    comma_separated,
    google_benchmark,
    hackbench,
    hyperfine,
    linpack,
    own_trials,
    perf_json,
    perf_lines,
    perf_text,
    pyperf,
)
from ajuste.outputs import fio_files as fio
from ajuste.outputs.document import DocumentNode, parse_document


@dataclass(frozen=True)
class ResultSource:
    """A file: its content, the name of its configuration if it names none itself, and the N of ``perf stat -r N``
    where the person said it.
    """

    text: str
    name: str
    file: Path
    runs: int | None = None


@dataclass(frozen=True)
class Format:
    """``recognise`` tells from the text whether a file is of this format, ``read`` raises RequestError."""

    name: str
    title: str
    recognise: Callable[[str], bool]
    read: Callable[[ResultSource], Table]


@dataclass(frozen=True)
class DocumentFormat:
    """As ``Format``, for one JSON document."""

    name: str
    title: str
    recognise: Callable[[DocumentNode], bool]
    read: Callable[[DocumentNode, str, Path], Table]


TEXTS: Final[tuple[Format, ...]] = (
    Format("perf", "perf stat -j", perf_json.recognise, lambda s: perf_json.read(s.text, s.name, s.file, s.runs)),
    Format("perf", "perf stat", perf_text.recognise, lambda s: perf_text.read(s.text, s.name, s.file, s.runs)),
    Format("perf", "perf stat -x", perf_lines.recognise, lambda s: perf_lines.read(s.text, s.name, s.file, s.runs)),
    Format("fio", "fio", fio.recognise_beside_text, lambda s: fio.read_beside_text(s.text, s.name, s.file)),
    Format("linpack", "LINPACK's table", linpack.recognise, lambda s: linpack.read(s.text, s.name, s.file)),
    Format("hackbench", "hackbench", hackbench.recognise, lambda s: hackbench.read(s.text, s.name, s.file)),
    Format("ajuste", "Ajuste's own CSV", own_trials.recognise, lambda s: own_trials.read(s.text, s.name, s.file)),
    Format("csv", "CSV", lambda text: True, lambda s: comma_separated.read(s.text, s.name, s.file)),
)
"""Asked in this order; the last takes what no other knows."""
DOCUMENTS: Final[tuple[DocumentFormat, ...]] = (
    DocumentFormat("hyperfine", "hyperfine --export-json", hyperfine.recognise, hyperfine.read),
    DocumentFormat("fio", "fio --output-format=json", fio.recognise, fio.read),
    DocumentFormat("google-benchmark", "Google Benchmark's JSON", google_benchmark.recognise, google_benchmark.read),
    DocumentFormat("pyperf", "pyperf's JSON", pyperf.recognise, pyperf.read),
)
NAMES: Final = tuple(dict.fromkeys((*(one.name for one in reversed(TEXTS)), *(one.name for one in DOCUMENTS))))
"""What ``--format`` takes."""
KNOWN: Final = (
    "give CSV, the JSON of hyperfine, fio, pyperf and Google Benchmark, perf stat (text, -j or -x), a LINPACK "
    "table, hackbench"
)


def read_source(source: ResultSource, chosen: str | None = None) -> Table:
    """The table of a file in the ``chosen`` format, or else in that which it seems to be in. Raises RequestError."""
    place = Place(source.file)
    if not source.text.strip():
        raise RequestError("the file is empty", place=place, hint=KNOWN)
    if chosen is not None and chosen not in NAMES:
        raise RequestError(f"--format {chosen}: format not found; expected one of {', '.join(NAMES)}")
    documents = [one for one in DOCUMENTS if chosen in (None, one.name)]
    texts = [one for one in TEXTS if chosen in (None, one.name)]
    for text in texts:
        if text.recognise(source.text) and not (text.name == "csv" and chosen is None and _is_document(source.text)):
            return text.read(source)
    if documents:
        return _document(source, documents)
    raise RequestError(f"this is not the output of {texts[-1].title}", place=place, hint=KNOWN)


def _is_document(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _document(source: ResultSource, documents: list[DocumentFormat]) -> Table:
    document = parse_document(source.text, source.file)
    for one in documents:
        if one.recognise(document):
            return one.read(document, source.name, source.file)
    if len(documents) == 1:
        raise RequestError(f"this is not {documents[0].title}", place=Place(source.file), hint=KNOWN)
    raise RequestError("unknown JSON document", place=Place(source.file), hint=KNOWN)
