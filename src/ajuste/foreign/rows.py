"""The rows of a CSV file, with the lines that they end on."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from ajuste.model.error import Place, RequestError


def rows_of(text: str, separator: str, file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the line on which it ends. Raises RequestError where quoting is broken."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            if row and (row[0].strip() or any(map(str.strip, row))):
                yield reader.line_num, row
    except csv.Error as error:
        raise RequestError(f"no valid CSV: {error}", place=Place(file, reader.line_num)) from None
