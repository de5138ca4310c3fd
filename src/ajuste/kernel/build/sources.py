"""How a person names sources: ``debian:6.1``, a directory, or ``git:DIR@REVISION``."""

from __future__ import annotations

from pathlib import Path

from ajuste.home import Home
from ajuste.kernel.build.directory import directory_source
from ajuste.kernel.build.origin import Origin, Say, digest_of
from ajuste.kernel.build.packaged import packaged_source
from ajuste.kernel.build.revision import revision_source
from ajuste.kernel.source import kernel_sources
from ajuste.kernel.spec import PackagedKernel, parse_spec
from ajuste.model.error import RequestError

FORMS = "debian:6.1, a directory, or git:DIR@REVISION"


def open_source(text: str, home: Home, say: Say, *, refresh: bool = False) -> Origin:
    """Raises RequestError for sources that there are not, RunError where fetching fails."""
    kind, colon, rest = text.partition(":")
    if "\0" in text or not text:
        raise RequestError(f"--source {text!r}: expected {FORMS}")
    if colon and kind == "git":
        directory, _, revision = (rest, "", "") if Path(rest).expanduser().is_dir() else rest.partition("@")
        return revision_source(Path(directory), revision or "HEAD")
    if colon and kind in kernel_sources():
        wanted = parse_spec(text)
        assert isinstance(wanted, PackagedKernel), "a source of the catalogue was named"
        return packaged_source(wanted, home, say, refresh=refresh)
    known = home.cache / "build" / f"known-{digest_of([str(Path(text).expanduser().absolute())])[:16]}.json"
    return directory_source(Path(text), known, say)
