"""The rows of a CSV file, with the lines that they end on."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ajuste.model.error import Place, RequestError


def rows_of(text: str, separator: str, file: Path) -> tuple[list[list[str]], list[int]]:
    """The rows that are not empty, and their lines. Raises RequestError where quoting is broken."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, lines = [], []
    try:
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()) and any(map(str.strip, row)):
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise RequestError(f"no valid CSV: {error}", place=Place(file, reader.line_num)) from None
    return rows, lines
