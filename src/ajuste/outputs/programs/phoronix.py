"""Phoronix Test Suite's composite.xml: each run of a test (``RawString``), or its ``Value``; each identifier is a
configuration.

Source: phoronix-test-suite, pts-core/objects/pts_result_file_writer.php: PhoronixTestSuite/Result/Data/Entry with
Identifier, Value and RawString, where the values of the runs are separated by colons.

The parser is expat. It refuses whatever declares an entity or a document type, so nothing is expanded or fetched.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NoReturn
from xml.parsers import expat

from ajuste.model.error import Place, RequestError
from ajuste.model.measurements import MeasuredTable
from ajuste.model.metric import Direction, Metric
from ajuste.outputs.collector import LOOKED_AT, Collector, number_at, utf8
from ajuste.outputs.format import ResultSource, TextFormat

FORMAT: Final = "Phoronix Test Suite XML"
_ROOT: Final = re.compile(r"<PhoronixTestSuite[\s>]")
_BETTER: Final[dict[str, Direction]] = {"LIB": "lower", "HIB": "higher"}
_UNITS: Final = {"seconds": "s", "second": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_MOST_DEEP: Final = 64
_ENTRY: Final = ("PhoronixTestSuite", "Result", "Data", "Entry")
_RESULT: Final = ("PhoronixTestSuite", "Result")


def recognise(text: str) -> bool:
    """Whether a text is of this kind."""
    return text.lstrip().startswith("<") and _ROOT.search(text[:LOOKED_AT]) is not None


def read(source: ResultSource) -> MeasuredTable:
    """Each identifier is a configuration, each test with its description a metric; a single identifier is the
    configuration of that file.
    """
    reading = _Reading(source.file)
    reading.feed(source.text)
    found = Collector(FORMAT, source.file)
    several = len({identifier for identifier, *_ in reading.values}) > 1
    for identifier, metric, value, line in reading.values:
        found.add(identifier if several else source.name, metric, value, line=line)
    if reading.without:
        found.notes.append(f"{utf8(source.file.name)}: left out {reading.without} results without a number.")
    return found.table()


class _Reading:
    """What was read of a document so far: the way to the current element, and the texts of its result and entry."""

    def __init__(self, file: Path) -> None:
        self.values: list[tuple[str, Metric, float, int]] = []
        self.without = 0
        self._file = file
        self._way: list[str] = []
        self._text: list[str] = []
        self._result: dict[str, str] = {}
        self._entry: dict[str, str] = {}
        self._parser = expat.ParserCreate("utf-8")  # as it is handed over, whatever the file declares
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text.append
        self._parser.StartDoctypeDeclHandler = self._declared
        self._parser.EntityDeclHandler = self._declared
        self._parser.ExternalEntityRefHandler = self._declared

    def feed(self, text: str) -> None:
        try:
            self._parser.Parse(text.encode("utf-8", "backslashreplace"), True)  # noqa: FBT003 - expat takes it by its place
        except expat.ExpatError as error:
            raise RequestError(
                f"not valid XML: {expat.ErrorString(error.code)}",
                place=Place(self._file, error.lineno),
                hint="give one complete document in UTF-8",
            ) from None

    def _refuse(self, found: str, expected: str) -> NoReturn:
        place = Place(self._file, self._parser.CurrentLineNumber)
        raise RequestError(f"{found}; expected {expected}", place=place)

    def _declared(self, *_: object) -> NoReturn:
        self._refuse("found a document type or an entity declaration", "elements and texts only")

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._way.append(name)
        if len(self._way) > _MOST_DEEP:
            self._refuse("the elements are nested too deeply", f"at most {_MOST_DEEP} levels")
        self._text.clear()
        if tuple(self._way) == _RESULT:
            self._result = {}
        elif tuple(self._way) == _ENTRY:
            self._entry = {}

    def _end(self, name: str) -> None:
        text = "".join(self._text).strip()
        self._text.clear()
        parent = tuple(self._way[:-1])
        if parent == _RESULT:
            self._result[name] = text
        elif parent == _ENTRY:
            self._entry[name] = text
        elif tuple(self._way) == _ENTRY:
            self._add_entry()
        self._way.pop()

    def _add_entry(self) -> None:
        identifier = self._entry.get("Identifier", "")
        if not identifier:
            self._refuse("found an entry without Identifier", "a name")
        texts = [part for part in self._entry.get("RawString", "").split(":") if part.strip()]
        texts = texts or [self._entry.get("Value", "")]
        if not any(texts):
            self.without += 1
            return
        line = self._parser.CurrentLineNumber
        for text in texts:
            value = number_at(text, "Value or RawString", Place(self._file, line))
            self.values.append((identifier, self._metric(), value, line))

    def _metric(self) -> Metric:
        title = self._result.get("Title", "")
        if not title:
            self._refuse("found a result without Title", "its test")
        scale = self._result.get("Scale", "")
        described = self._result.get("Description", "")
        name = f"{title} ({described})" if described else title
        return Metric(
            name=name,
            title=name,
            unit=_UNITS.get(scale.lower(), scale),
            direction=_BETTER.get(self._result.get("Proportion", ""), "none"),
        )


TEXTS: Final = (TextFormat("phoronix", FORMAT, recognise, read),)
