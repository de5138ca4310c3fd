"""Signed descriptions of suites (``InRelease``), by the keys of who may sign them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ajuste.kernel.archive.download import DownloadError, Expected
from ajuste.model.error import RequestError

if TYPE_CHECKING:
    from pysequoia import Cert

MOST_BYTES: Final = 10_000_000
"""As apt's Acquire::MaxReleaseFileSize."""

_LISTS: Final = "main/binary-amd64/Packages"
_ENDINGS: Final = (".xz", ".gz", "")
"""Of the compressions that Python reads, best first."""


class RejectedRelease(DownloadError):
    """A description that is not signed by a known key, or not of what was asked for, or no longer valid."""


@dataclass(frozen=True)
class Release:
    """What a suite says of itself. ``lists`` are the forms of its package lists, by their endings (``.xz``), best
    first; ``plain`` is what each of them unpacks to.
    """

    date: datetime
    valid_until: datetime | None
    by_hash: bool
    lists: dict[str, Expected]
    plain: Expected

    def path(self, ending: str) -> str:
        """Where the lists in the form ``ending`` are, from the suite's directory on."""
        if self.by_hash:
            return f"{_LISTS.rpartition('/')[0]}/by-hash/SHA256/{self.lists[ending].sha256}"
        return _LISTS + ending


def read_keys(shipped: str, others: Sequence[Path], chosen: str = "") -> list[Cert]:
    """Those that Ajuste has in its catalogue, those of the ``others`` that are on this machine, and the file that the
    person has ``chosen``. Raises RequestError for a chosen one that cannot be read.
    """
    from pysequoia import Cert

    keys = Cert.split_bytes((files("ajuste.catalogue") / "kernels" / shipped).read_bytes())
    for file in others:
        try:
            keys += Cert.split_bytes(file.read_bytes())
        except (OSError, RuntimeError):
            continue  # Newer keys, if the machine has any: it has none that are needed.
    if chosen:
        try:
            keys += Cert.split_bytes(Path(chosen).expanduser().read_bytes())
        except (OSError, RuntimeError) as error:
            raise RequestError(
                f"cannot read the keys of the mirror in {chosen}: {_first_line(error)}",
                hint="set AJUSTE_MIRROR_KEYS to a file of OpenPGP keys, such as gpg --export makes",
            ) from None
    return keys


def read_release(content: bytes, suite: str, keys: Sequence[Cert]) -> Release:
    """The description of ``suite`` in ``content``. Only what one of the ``keys`` has signed is read.

    Raises RejectedRelease.
    """
    from debian.deb822 import Release as Deb822Release
    from pysequoia import verify

    try:
        signed = verify(content, lambda _: list(keys)).bytes
    except RuntimeError as error:
        raise RejectedRelease(
            f"the list of {suite} is not signed by a key of the archive: {_first_line(error)}"
        ) from None
    try:
        described = Deb822Release(signed)
        named = {described.get("Suite"), described.get("Codename")}
        if suite not in named:
            raise RejectedRelease(f"the mirror has the suite {described.get('Codename')} in the place of {suite}")
        listed = {one["name"]: Expected(int(one["size"]), one["sha256"]) for one in described["SHA256"]}
        return Release(
            date=_date(described["Date"]),
            valid_until=_date(described["Valid-Until"]) if "Valid-Until" in described else None,
            by_hash=described.get("Acquire-By-Hash") == "yes",
            lists={ending: listed[_LISTS + ending] for ending in _ENDINGS if _LISTS + ending in listed},
            plain=listed[_LISTS],
        )
    except (KeyError, ValueError, TypeError) as error:
        raise RejectedRelease(f"the description of {suite} is not as expected: {error!r}") from None


def require_valid(release: Release, suite: str, now: datetime) -> None:
    """Raises RejectedRelease for one that was to be replaced by now. Source: the field Valid-Until."""
    if release.valid_until and release.valid_until < now:
        raise RejectedRelease(f"the lists of {suite} on the mirror expired on {release.valid_until:%Y-%m-%d}")


def _date(text: str) -> datetime:
    read = parsedate_to_datetime(text)
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
