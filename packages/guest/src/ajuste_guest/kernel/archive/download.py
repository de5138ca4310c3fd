"""Files over HTTP, or of a mirror on this disk, and an archive's lists of packages.

Nothing is kept that is longer or another than expected.

What speaks HTTP is loaded when it is needed: most commands take what they need from the cache.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import re
import sqlite3
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.resources import files
from io import BufferedReader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import ValidationError

from ajuste.machine.files import replaced
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError
from ajuste.model.wording import Ongoing, Say

if TYPE_CHECKING:
    from http.client import HTTPException, HTTPMessage
    from urllib import request

    from pysequoia import Cert


SCHEMES: Final = ("https", "http", "file")
_TIMEOUT_S: Final = 30.0
_SAY_EVERY_S: Final = 0.25
# Before that the pace is not known.
_PACE_S: Final = 2.0
_ATTEMPTS: Final = 3
_PATIENCE_S: Final = 120.0
# Bytes a second that a mirror must give by then: one that drips would never end.
_LEAST_PACE: Final = 500
_CHUNK_BYTES: Final = 1 << 18
_PARTIAL: Final = 206
_GONE: Final = (404, 410)

MOST_BYTES: Final = 10_000_000
"""Limit of a signed list, apt's Acquire::MaxReleaseFileSize."""

_LISTS: Final = "main/binary-amd64/Packages"

# Of the compressions that Python reads, best first.
_ENDINGS: Final = (".xz", ".gz", "")

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9+.-]{0,199}")
_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+:~-]{0,199}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

# A field with the lines that go on with it.
_FIELD: Final = re.compile(
    r"^(Package|Version|Size|Installed-Size|Pre-Depends|Depends|Provides|Conflicts|Breaks|Essential|Filename|SHA256):"
    r"[ \t]*(.*(?:\n[ \t].*)*)",
    re.IGNORECASE | re.MULTILINE,
)

LAYOUT: Final = 2
"""Version of the files' layout. Files of another one are fetched again."""

_TABLES: Final = """
create table listed (about text);
create table package (
    name text, version text, size_bytes integer, installed_bytes integer, depends text, path text, sha256 text,
    provides text, conflicts text, essential integer
);
create table provided (virtual text, name text);
"""

_PROVIDED: Final = re.compile(r"(?:^|,)\s*([a-z0-9][a-z0-9+.-]*)")


class DownloadError(Exception):
    """The reason why a file is not available, in words."""


class Gone(DownloadError):
    """A file that the mirror answers not to have."""


class Differs(DownloadError):
    """A file that is not what was expected."""


class Unreachable(DownloadError):
    """A mirror that does not answer, or breaks off."""


class UnknownIssuer(Unreachable):
    """A mirror whose certificate is not signed by anybody this machine knows."""


@dataclass(frozen=True)
class ListedFile:
    """A file by its entry in a signed list. ``sha256`` in hexadecimal digits."""

    size_bytes: int
    sha256: str


class DownloadProgress:
    """A download's progress: how many of ``size_bytes`` have arrived, and how long the rest takes. Reading
    afterwards takes its part of the time where ``is_read``.
    """

    def __init__(
        self,
        what: str,
        size_bytes: int,
        say: Say,
        *,
        is_read: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._size_bytes = size_bytes
        self._say = say
        self._work = size_bytes * (2 if is_read else 1)
        self._clock = clock
        self._began_s = self._said_s = clock()
        self._arrived = 0
        self._read = 0

    def arrived(self, size_bytes: int) -> None:
        """Count ``size_bytes`` more, negative where the mirror begins anew."""
        self._arrived += size_bytes
        self._tell()

    def read(self, size_bytes: int) -> None:
        self._read += size_bytes
        self._tell()

    def _tell(self) -> None:
        now_s = self._clock()
        if now_s - self._said_s < _SAY_EVERY_S:
            return
        self._said_s = now_s
        text = f"{self._what}: {self._arrived / 1e6:.1f} of {self._size_bytes / 1e6:.1f} MB"
        done = self._arrived + self._read
        if done > 0 and (took_s := now_s - self._began_s) >= _PACE_S:
            left_s = took_s / done * max(0, self._work - done)
            text += f" · about {left_s:.0f} s left" if left_s < 100 else f" · about {left_s / 60:.0f} min left"
        self._say(Ongoing(text))


class Downloader:
    """A reader of mirrors. ``proxies`` by scheme, instead of those that the environment names."""

    def __init__(self, proxies: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        from urllib import request

        self._clock = clock
        self._opener = request.OpenerDirector()
        for handler in (
            request.ProxyHandler({**request.getproxies(), **proxies}),
            request.HTTPHandler(),
            request.HTTPSHandler(),
            request.FileHandler(),
            request.HTTPErrorProcessor(),
            request.HTTPDefaultErrorHandler(),
            _redirects(),
        ):
            self._opener.add_handler(handler)

    def read(self, url: str, most_bytes: int) -> bytes:
        """Return a whole small file. Raises DownloadError."""
        content = bytearray()
        for start, chunk in self._chunks(url, most_bytes):
            del content[start:]
            content += chunk
            if len(content) > most_bytes:
                raise Differs(f"{redact_password(url)} has more than {most_bytes} bytes")
        return bytes(content)

    def save(self, url: str, into: Path, expected: ListedFile, arrived: Callable[[int], None] = lambda _: None) -> None:
        """Write a file that is what was ``expected``, or nothing. Raises DownloadError."""
        try:
            with into.open("xb") as file:
                digest = hashlib.sha256()
                for start, chunk in self._chunks(url, expected.size_bytes):
                    if start != file.tell():
                        arrived(-file.tell())
                        file.seek(0)
                        file.truncate()
                        digest = hashlib.sha256()
                    file.write(chunk)
                    digest.update(chunk)
                    arrived(len(chunk))
                size_bytes = file.tell()
            if size_bytes != expected.size_bytes:
                more = "or more " if size_bytes > expected.size_bytes else ""
                raise Differs(
                    f"{redact_password(url)} has {size_bytes} {more}bytes; expected {expected.size_bytes}, as listed"
                )
            if digest.hexdigest() != expected.sha256:
                raise Differs(f"{redact_password(url)} is not the listed file (its SHA-256 differs)")
        except BaseException:
            into.unlink(missing_ok=True)
            raise

    def _chunks(self, url: str, most_bytes: int) -> Iterator[tuple[int, bytes]]:
        # Parts of a file with their places, up to one byte beyond `most_bytes`. Where the mirror breaks off, it is
        # asked for the rest, and begins from 0 if it does not know of such requests.
        from http.client import HTTPException

        at = 0
        broken: OSError | HTTPException | None = None
        for _ in range(_ATTEMPTS):
            began_s = self._clock()
            with self._answer(url, at) as answer:
                first = at = at if getattr(answer, "status", 0) == _PARTIAL else 0
                try:
                    while at <= most_bytes and (chunk := answer.read1(min(_CHUNK_BYTES, most_bytes + 1 - at))):
                        yield at, chunk
                        at += len(chunk)
                        took_s = self._clock() - began_s
                        if took_s > _PATIENCE_S and at - first < took_s * _LEAST_PACE:
                            raise Unreachable(
                                f"{redact_password(url)}: the mirror gave {at - first} bytes in {took_s:.0f} s"
                            )
                except (OSError, HTTPException) as error:
                    broken = error
                else:
                    # What is still to come, where the mirror has announced the size.
                    if at > most_bytes or not getattr(answer, "length", 0):
                        return
        raise Unreachable(
            f"{redact_password(url)}: the mirror broke off after {at} bytes" + (f" ({broken})" if broken else "")
        )

    def _answer(self, url: str, at: int) -> BufferedReader:
        from http.client import HTTPException
        from ssl import SSLCertVerificationError
        from urllib.error import HTTPError, URLError

        http_request = _request(url)
        if at:
            http_request.add_header("Range", f"bytes={at}-")
        try:
            answer: BufferedReader = self._opener.open(http_request, timeout=_TIMEOUT_S)
        except HTTPError as error:
            error.close()
            text = f"{redact_password(url)}: the mirror answers {error.code} {error.reason}"
            if error.code in _GONE:
                raise Gone(text) from None
            raise DownloadError(text) from None
        except URLError as error:
            if isinstance(error.reason, FileNotFoundError):
                raise Gone(f"{redact_password(url)} not found") from None
            known = not isinstance(error.reason, SSLCertVerificationError)
            why = getattr(error.reason, "strerror", None) or error.reason
            raise (Unreachable if known else UnknownIssuer)(f"{redact_password(url)}: {why}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise Unreachable(f"{redact_password(url)}: {error or type(error).__name__}") from None
        return answer


def _redirects() -> request.HTTPRedirectHandler:
    # From HTTPS only to HTTPS, and never to a file of this machine.
    from urllib import request
    from urllib.error import URLError

    class Redirects(request.HTTPRedirectHandler):
        def redirect_request(
            self, req: request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
        ) -> request.Request | None:
            scheme = urlsplit(newurl).scheme
            if scheme != "https" and (req.type == "https" or scheme != "http"):
                raise URLError(f"the mirror redirects to {redact_password(newurl)}, which is not {req.type.upper()}")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    return Redirects()


def redact_password(url: str) -> str:
    """Return an address without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _request(url: str) -> request.Request:
    # User and password are for the mirror alone, and not for where it redirects to.
    from urllib import request

    http_request = request.Request(redact_password(url), headers={"User-Agent": "ajuste"})  # noqa: S310 - the caller knows its scheme
    login = urlsplit(url).netloc.rpartition("@")[0]
    if login:
        http_request.add_unredirected_header("Authorization", f"Basic {b64encode(unquote(login).encode()).decode()}")
    return http_request


# A suite of an archive: its description, signed by who may sign it (`InRelease`), and its package lists.
#
# The packages' records are in a file that finds each by its name.


class RejectedRelease(DownloadError):
    """A description that is not signed by a known key, or not of what was asked for, or no longer valid."""


@dataclass(frozen=True)
class Release:
    """A suite by its own description. ``lists`` are the forms of its package lists, by their endings (``.xz``), best
    first; ``plain`` is what each of them unpacks to.
    """

    date: datetime
    valid_until: datetime | None
    by_hash: bool
    lists: dict[str, ListedFile]
    plain: ListedFile

    def path(self, ending: str) -> str:
        """Return where the lists in the form ``ending`` are, below the suite's directory."""
        if self.by_hash:
            return f"{_LISTS.rpartition('/')[0]}/by-hash/SHA256/{self.lists[ending].sha256}"
        return _LISTS + ending


def read_keys(shipped: str, others: Sequence[Path], chosen: str = "") -> list[Cert]:
    """Return the catalogue's keys, those of the ``others`` that this machine has, and the file that the person has
    ``chosen``. Raises RequestError for a chosen one that cannot be read.
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
    """Read the description of ``suite`` in ``content``, as far as one of the ``keys`` has signed it. Raises
    RejectedRelease.
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
        listed = {entry["name"]: ListedFile(int(entry["size"]), entry["sha256"]) for entry in described["SHA256"]}
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
    """Raise RejectedRelease for a description past its Valid-Until."""
    if release.valid_until and release.valid_until < now:
        raise RejectedRelease(f"the lists of {suite} on the mirror expired on {release.valid_until:%Y-%m-%d}")


def _date(text: str) -> datetime:
    read = parsedate_to_datetime(text)
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@dataclass(frozen=True)
class Package:
    """A version of a package, and the suites that have it. ``path`` is its file within the archive; ``conflicts`` is
    also what it breaks. What is ``essential`` every system has, and no package says that it requires it.
    """

    name: str
    version: str
    size_bytes: int
    installed_bytes: int
    depends: str
    path: str
    sha256: str
    provides: str = ""
    conflicts: str = ""
    essential: bool = False
    suites: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Listed(BaseModel):
    """The identity of lists: ``date`` is the suite's own, ``sha256`` that of their plain form."""

    date: datetime
    sha256: str


def unpack_list(packed: Path, ending: str, plain: ListedFile) -> str:
    """Return the text of package lists in the form ``ending`` (``.xz``). Raises Differs unless it is the signed
    ``plain`` one.
    """
    try:
        with _opened_list(packed, ending) as file:
            content = file.read(plain.size_bytes + 1)
    except (lzma.LZMAError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Differs(f"the package lists cannot be unpacked: {error}") from None
    if len(content) != plain.size_bytes or hashlib.sha256(content).hexdigest() != plain.sha256:
        raise Differs("the package lists unpack to something else than is listed")
    return content.decode("utf-8", "replace")


def _opened_list(packed: Path, ending: str) -> IO[bytes]:
    match ending:
        case ".xz":
            return lzma.open(packed)
        case ".gz":
            return cast("IO[bytes]", gzip.open(packed))
    return packed.open("rb")


def read_packages(text: str) -> Iterator[Package]:
    """Read the packages of a ``Packages`` file, without those with an invalid name, version, size or checksum. Much
    quicker than a reader of every field: a suite has 70,000. Source: deb-control(5).
    """
    for stanza in re.split(r"\n(?:[ \t]*\n)+", text):
        fields = {name.lower(): value for name, value in _FIELD.findall(stanza)}
        name, version, sha256 = (fields.get(field, "").strip() for field in ("package", "version", "sha256"))
        if not (_NAME.fullmatch(name) and _VERSION.fullmatch(version) and _SHA256.fullmatch(sha256)):
            continue
        size_bytes, installed_kib = _number(fields.get("size", "")), _number(fields.get("installed-size", "0"))
        if size_bytes is None or installed_kib is None:
            continue
        yield Package(
            name=name,
            version=version,
            size_bytes=size_bytes,
            installed_bytes=1024 * installed_kib,
            depends=_relations(fields, "pre-depends", "depends"),
            path=fields.get("filename", "").strip(),
            sha256=sha256,
            provides=_relations(fields, "provides"),
            conflicts=_relations(fields, "conflicts", "breaks"),
            essential=fields.get("essential", "").strip() == "yes",
        )


def _relations(fields: Mapping[str, str], *names: str) -> str:
    return ", ".join(filter(None, (" ".join(fields.get(name, "").split()) for name in names)))


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 15 else None


def write_list(file: Path, listed: Listed, packages: Iterable[Package]) -> None:
    """Write the ``packages`` of a suite to ``file``, in one step. Raises sqlite3.Error."""
    with replaced(file, mode=0o666) as made:
        _write(made, listed, packages)


def _write(made: Path, listed: Listed, packages: Iterable[Package]) -> None:
    with closing(sqlite3.connect(made)) as database:
        # A file that was not written to its end is never put in place.
        database.execute("pragma journal_mode = off")
        database.execute("pragma synchronous = off")
        database.execute(f"pragma user_version = {LAYOUT}")
        database.executescript(_TABLES)
        database.execute("insert into listed values (?)", (listed.model_dump_json(),))
        for package in packages:
            database.execute("insert into package values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(package)[:-1])
            provided = ((virtual, package.name) for virtual in _PROVIDED.findall(package.provides))
            database.executemany("insert into provided values (?, ?)", provided)
        database.execute("create index by_name on package (name)")
        database.execute("create index by_virtual on provided (virtual)")
        database.commit()


def read_listed(file: Path) -> Listed | None:
    """Return what the lists in ``file`` are, None where they cannot be read."""
    try:
        with closing(_opened(file)) as database:
            row = database.execute("select about from listed").fetchone()
            (layout,) = database.execute("pragma user_version").fetchone()
        return Listed.model_validate_json(row[0]) if row and layout == LAYOUT else None
    except (sqlite3.Error, ValidationError, OSError):
        return None


def find_names(file: Path, prefix: str) -> set[str]:
    """Return the names of packages that begin with ``prefix``. Raises sqlite3.Error for a damaged file."""
    with closing(_opened(file)) as database:
        rows = database.execute(
            "select distinct name from package where name >= ? and name < ?", (prefix, f"{prefix}\U0010ffff")
        )
        return {name for (name,) in rows}


def find_packages(file: Path, names: Iterable[str], suite: str) -> list[Package]:
    """Return all versions of packages called one of ``names``. Raises sqlite3.Error for a damaged file."""
    packages = []
    with closing(_opened(file)) as database:
        for name in names:
            rows = database.execute("select * from package where name = ?", (name,))
            packages += [replace(Package(*row), suites=(suite,)) for row in rows]
    return packages


def find_providers(file: Path, virtual: str) -> set[str]:
    """Return the names of packages that provide ``virtual``. Raises sqlite3.Error for a damaged file."""
    with closing(_opened(file)) as database:
        return {name for (name,) in database.execute("select name from provided where virtual = ?", (virtual,))}


def find_essential(file: Path) -> set[str]:
    """Return the names of packages that every system has. Raises sqlite3.Error for a damaged file."""
    with closing(_opened(file)) as database:
        return {name for (name,) in database.execute("select name from package where essential")}


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
