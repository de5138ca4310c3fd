"""Translations of sheets: gettext files beside them, NAME.LANGUAGE.po, for any language."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from babel.messages.catalog import Catalog
from babel.messages.pofile import PoFileError, read_po, write_po

from ajuste.model.error import Place, RequestError
from ajuste_course.sheet import Sheet, parse_sheet, read_sheet

TRANSLATED: Final = ("title", "summary", "text", "choices", "explanation")
"""Fields of a sheet and its steps that people read."""
_LARGEST: Final = 1 << 20


def languages(sheet_file: Path) -> tuple[str, ...]:
    """Return the languages that a sheet is translated to."""
    return tuple(sorted(file.name.split(".")[-2] for file in sheet_file.parent.glob(f"{sheet_file.stem}.*.po")))


def chosen_language(wanted: str | None, sheet_file: Path, sheet: Sheet) -> str:
    """Return the language of the texts: the one that is ``wanted``, or that of the terminal if the sheet has it.

    Raises RequestError for one that it does not have.
    """
    known = (sheet.language, *languages(sheet_file))
    if wanted is not None:
        if wanted not in known:
            raise RequestError(
                f"--language {wanted}: {sheet.name} has no such translation; expected one of {', '.join(known)}",
                hint=f"write one: ajuste course translate {sheet_file} {wanted}",
            )
        return wanted
    of_terminal = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    language = of_terminal.partition(".")[0].partition("_")[0]
    return language if language in known else sheet.language


def translated(sheet_file: Path, language: str) -> Sheet:
    """Return the sheet with its texts in ``language``; texts without a translation stay. Raises RequestError."""
    sheet = read_sheet(sheet_file)
    if language == sheet.language:
        return sheet
    words = _messages(_translation_file(sheet_file, language))
    document = sheet.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return parse_sheet({"schema": 1, **_with_texts(document, words)})


def messages(sheet: Sheet) -> tuple[str, ...]:
    """Return all texts of a sheet for translators, in their order."""
    document = sheet.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return tuple(dict.fromkeys(text for text in _texts(document) if text))


def update_translation(sheet_file: Path, language: str) -> tuple[Path, int]:
    """Write the translation to ``language`` with all texts of the sheet, those that are translated kept; return the
    file, and how many are not translated. Raises RequestError.
    """
    sheet = read_sheet(sheet_file)
    file = _translation_file(sheet_file, language)
    words = _messages(file) if file.exists() else {}
    _write(file, language, {text: words.get(text, "") for text in messages(sheet)})
    return file, sum(text not in words for text in messages(sheet))


def copy_translations(sheet_file: Path, copy: Path) -> tuple[Path, ...]:
    """Write the translations of a sheet for a ``copy`` that has only some of its texts. Raises RequestError."""
    written = []
    for language in languages(sheet_file):
        words = _messages(_translation_file(sheet_file, language))
        file = _translation_file(copy, language)
        _write(file, language, {text: words.get(text, "") for text in messages(read_sheet(copy))})
        written.append(file)
    return tuple(written)


def _write(file: Path, language: str, words: Mapping[str, str]) -> None:
    catalog = Catalog(locale=language)
    for text, translation in words.items():
        catalog.add(text, translation)
    written = BytesIO()
    write_po(written, catalog, width=100, omit_header=True, no_location=True)
    header = f'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n\n'
    try:
        file.write_bytes(header.encode() + written.getvalue())
    except OSError as failure:
        raise RequestError(
            f"{file}: {failure.strerror or failure}", hint="copy the sheet to a directory of yours"
        ) from None


def _translation_file(sheet_file: Path, language: str) -> Path:
    return sheet_file.with_name(f"{sheet_file.stem}.{language}.po")


def _messages(file: Path) -> Mapping[str, str]:
    try:
        content = file.read_bytes()
        if len(content) > _LARGEST:
            raise RequestError(f"expected at most {_LARGEST} bytes", place=Place(file))
        catalog = read_po(BytesIO(content), abort_invalid=True)
    except OSError as failure:
        raise RequestError(f"cannot read the translation {file}: {failure.strerror}", hint="check the file") from None
    except (PoFileError, ValueError) as failure:
        raise RequestError(f"not a gettext file: {failure}", hint="check it with msgfmt", place=Place(file)) from None
    return {str(message.id): str(message.string) for message in catalog if message.id and message.string}


def _with_texts(document: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    def of(name: str, value: Any) -> Any:
        if name == "step":
            return [_with_texts(step, words) for step in value]
        if name not in TRANSLATED:
            return value
        return words.get(value, value) if isinstance(value, str) else [words.get(each, each) for each in value]

    return {name: of(name, value) for name, value in document.items()}


def _texts(document: Any) -> Iterator[str]:
    # Those of a study, such as its title, are not for the student.
    for name in TRANSLATED:
        value = document.get(name, ())
        yield from (value,) if isinstance(value, str) else value
    for step in document.get("step", ()):
        yield from _texts(step)


@cache
def interface(language: str) -> Mapping[str, str]:
    """Return the sentences of the program itself by their English ones; empty for a language without them."""
    file = Path(__file__).with_name("interface") / f"{language}.po"
    return _messages(file) if file.exists() else {}


def interface_languages() -> tuple[str, ...]:
    """Return the languages of the program's own sentences."""
    return ("en", *sorted(file.stem for file in (Path(__file__).with_name("interface")).glob("*.po")))


def say(language: str, text: str, **values: object) -> str:
    """Return a sentence of the program in ``language``, with its ``values``."""
    return interface(language).get(text, text).format(**values)
