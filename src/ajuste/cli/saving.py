"""A study as a study file, for ``--save`` and for runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import String, StringType, Table, Trivia

from ajuste.machine.files import write_text
from ajuste.model.caller import open_given
from ajuste.model.error import RequestError
from ajuste.model.wording import shell_line
from ajuste.study.site import is_study_file


def check_save(path: Path | None, option: str = "--save") -> None:
    """Raise RequestError unless a study can be written to ``path``."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        why = "Is a directory" if path.is_dir() else "No such file or directory"
        raise RequestError(f"{option} {path}: {why}", hint="choose a file that you can write")


def save_study(
    document: Mapping[str, Any], path: Path, command: str, option: str = "--save", *, force: bool = False
) -> None:
    """Write ``document`` as a study file to ``path``. Raises RequestError, without ``force`` also where it replaces
    another study.
    """
    text = study_text(_absolute(document), command)
    try:
        if not force and path.is_file() and not _is_same_study(path, text):
            raise RequestError(
                f"{path} exists; nothing was written", hint="use --force to overwrite it, or choose another file"
            )
        write_text(path, text)
    except OSError as failure:
        raise RequestError(f"{option} {path}: {failure.strerror}", hint="choose a file that you can write") from None


def _is_same_study(path: Path, text: str) -> bool:
    # Apart from the first line, whose command may differ: one with --dry-run does not keep the real one from saving.
    with open_given(path) as file:
        return file.read().partition(b"\n")[2] == text.encode().partition(b"\n")[2]


def study_text(document: Mapping[str, Any], command: str = "") -> str:
    """Return the text of a study file: the ``command`` that it equals, if any, in a comment, then the document."""
    text = tomlkit.document()
    if command:
        line = "".join(c if c.isprintable() else "?" for c in shell_line(command))
        text.add(tomlkit.comment(f"Does the same as: {line}"))
    for key, value in document.items():
        text.add(key, _item(value))
    return tomlkit.dumps(text)


def _item(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _table(value)
    if isinstance(value, list) and value and all(isinstance(element, Mapping) for element in value):
        tables = tomlkit.aot()
        for element in value:
            tables.append(_table(element))
        return tables
    if isinstance(value, str) and "\n" in value and "\r" not in value:
        if _is_literal(value):  # A patch on lines of its own applies as it stands; the first line feed is none of it.
            return String(StringType.MLL, value, f"\n{value}", Trivia())
        return tomlkit.string(value, multiline=True)
    return value


def _is_literal(text: str) -> bool:
    plain = text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()
    return plain and "'''" not in text and not text.endswith("'")


def _table(values: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    for key, value in values.items():
        table.add(key, _item(value))
    return table


def _absolute(document: Mapping[str, Any]) -> dict[str, Any]:
    # Programs get absolute paths, because the study file can be anywhere.

    def command(words: list[str]) -> list[str]:
        return [str(Path(words[0]).absolute()), *words[1:]] if is_study_file(words[0]) else words

    workload = dict(document["workload"])
    for name in ("command", "setup", "prepare", "cleanup"):
        if name in workload:
            workload[name] = command(workload[name])
    for name in ("variant", "background"):
        tables = [dict(table) for table in workload.get(name, ())]
        for table in tables:
            if "command" in table:
                table["command"] = command(table["command"])
        if tables:
            workload[name] = tables
    if "service" in workload:
        workload["service"] = [
            {field: command(value) if isinstance(value, list) else value for field, value in table.items()}
            for table in workload["service"]
        ]
    return {**document, "workload": workload}
