"""A static site of many runs: a page that lists and searches them, and the report of each. It needs no server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markupsafe import Markup

from ajuste.machine.files import file_sha256, make_directory, remove_file, replace_file
from ajuste.model.error import RequestError
from ajuste.report.document import Report
from ajuste.report.html import content_policy, page_asset, page_environment, page_style, write_report

INDEX: Final = "index.html"
RECORD: Final = "ajuste-site.json"
"""Name of a site's record of its own files: their checksums, so that no other file is ever replaced or removed."""
_FORMAT: Final = "ajuste site"
_LARGEST_RECORD: Final = 64 << 20
_ANOTHER: Final = "choose a new directory"


@dataclass(frozen=True)
class SiteEntry:
    """A run as the list shows it. ``contents`` names what its page is made of."""

    run: str
    study: str
    title: str
    answer: str
    created: str
    kernel: str
    workload: str
    tags: tuple[str, ...]
    contents: str

    @property
    def page(self) -> str:
        """The file of its report, relative to the list."""
        return f"runs/{self.run}.html"


@dataclass(frozen=True)
class SiteFiles:
    """The number of pages of runs written, and the files of runs that are no longer wanted."""

    runs: int
    removed: tuple[str, ...]


class StaticSite:
    """A directory for a site: new, empty, or one that is a site already. Raises RequestError for any other, and for a
    site whose files have changed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._earlier = self._known()
        for name, checksum in self._earlier.items():
            file = directory / name
            if file.is_symlink() or (file.exists() and file_sha256(file) != checksum):
                raise RequestError(f"{file} was changed since ajuste site wrote it", hint=f"remove it, or {_ANOTHER}")

    def write(self, entries: Sequence[SiteEntry], reports: Iterable[Report]) -> SiteFiles:
        """Write the list and the report of each entry; remove pages of other runs, which were there before."""
        wanted = [INDEX, *(entry.page for entry in entries)]
        for name in set(wanted) - set(self._earlier):
            if (self._directory / name).exists():
                raise RequestError(f"{self._directory / name} is not a file of this site", hint=_ANOTHER)
        try:
            make_directory(self._directory / "runs", 0o755)
            files: dict[str, str] = {}
            for entry, report in zip(entries, reports, strict=True):
                file = self._directory / entry.page
                write_report(report, file, entry.contents, mode=0o666)  # It is to be published.
                files[entry.page] = file_sha256(file)
                self._keep({**self._earlier, **files})  # Whatever happens, it is known whose files these are.
            index = self._directory / INDEX
            replace_file(index, index_page(entries).encode())
            files[INDEX] = file_sha256(index)
            removed = sorted(set(self._earlier) - set(files))
            for name in removed:
                remove_file(self._directory / name)
            self._keep(files)
        except OSError as error:
            raise RequestError(f"{error.filename}: {error.strerror}", hint="choose a DIR that you can write") from error
        return SiteFiles(len(entries), tuple(removed))

    def _keep(self, files: Mapping[str, str]) -> None:
        document = {"format": _FORMAT, "version": 1, "files": dict(sorted(files.items()))}
        replace_file(self._directory / RECORD, f"{json.dumps(document, indent=1)}\n".encode())

    def _known(self) -> dict[str, str]:
        directory, record = self._directory, self._directory / RECORD
        if not directory.exists() or (directory.is_dir() and not any(directory.iterdir())):
            return {}
        runs = directory / "runs"
        if not record.is_file() or record.is_symlink() or runs.is_symlink():
            raise RequestError(f"{directory} is not empty and no site of Ajuste", hint=_ANOTHER)
        try:
            if record.stat().st_size > _LARGEST_RECORD:
                raise ValueError("too large")
            document = json.loads(record.read_text(encoding="utf-8"))
            files = {str(name): str(checksum) for name, checksum in document["files"].items()}
            if document["format"] != _FORMAT or document["version"] != 1 or not all(map(_is_site_file, files)):
                raise ValueError("another format")
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise RequestError(f"{record} is not what ajuste site writes", hint=_ANOTHER) from error
        return files


def _is_site_file(name: str) -> bool:
    # Names that lead elsewhere are none.
    parts = name.split("/")
    return name == INDEX or (len(parts) == 2 and parts[0] == "runs" and parts[1].endswith(".html"))


def index_page(entries: Sequence[SiteEntry]) -> str:
    """Return the list of runs, with a search that needs no server. All of it is shown as text."""
    scripts = {"theme": page_asset("theme.js"), "site": page_asset("site.js")}
    return (
        page_environment()
        .get_template("site.html.j2")
        .render(
            entries=entries,
            style=Markup(page_style()),  # noqa: S704 - a file of this package
            scripts=scripts,
            policy=content_policy([script.encode() for script in scripts.values()]),
        )
    )
