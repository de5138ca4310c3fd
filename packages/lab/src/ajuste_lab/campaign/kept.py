"""A campaign on disk: its public part, its sealed part, and the ledger.

The ledger is an append-only file of JSON lines; each line has the digest of the line before it.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import re
import secrets
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ajuste.catalogue.loader import Catalogue
from ajuste.design.blocks import SEED_BITS
from ajuste.kernel.spec import parse_study_spec
from ajuste.machine.files import (
    create_file,
    file_sha256,
    make_directory,
    open_directory,
    read_kept,
    remove_file,
    replace_file,
    sync_to_disk,
)
from ajuste.machine.home import Home
from ajuste.model.base import ClosedModel
from ajuste.model.error import RequestError, RunError
from ajuste.store.location import exclusive
from ajuste.study.builtin import find_study
from ajuste.study.problem import nearest
from ajuste.study.read import read_study
from ajuste.study.schema import Study
from ajuste_lab.campaign.model import CAMPAIGN_NAME, Campaign, CampaignEntry, CampaignEvent

LARGEST_BYTES: Final = 64 << 20


class CampaignLedger:
    """The entries of a ledger file, read at once. A writer must hold the campaign's lock."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.entries = _entries_of(file)

    def add(self, event: CampaignEvent, **fields: Any) -> CampaignEntry:
        """Append an entry and sync it to disk."""
        entry = CampaignEntry(
            number=len(self.entries),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            event=event,
            previous=self.entries[-1].digest if self.entries else "",
            **fields,
        )
        entry = entry.model_copy(update={"digest": digest_of(entry)})
        line = f"{entry.model_dump_json(exclude_defaults=True)}\n".encode()
        is_new = not self.file.exists()
        if is_new:
            create_file(self.file).close()
        with open_directory(self.file.parent) as directory:
            descriptor = os.open(directory / self.file.name, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        size = os.fstat(descriptor).st_size
        try:
            # A short write means that the disk is full.
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.file))
            os.fsync(descriptor)
        except OSError:  # Half a line would be damage.
            os.ftruncate(descriptor, size)
            raise
        finally:
            os.close(descriptor)
        if is_new:
            # A new name is on disk only with its directory.
            sync_to_disk(self.file.parent)
        self.entries = [*self.entries, entry]
        return entry


def digest_of(entry: CampaignEntry) -> str:
    """Return the SHA-256 of ``entry`` without its own digest, but with the digest of the line before."""
    text = entry.model_copy(update={"digest": ""}).model_dump_json(exclude_defaults=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _entries_of(file: Path) -> list[CampaignEntry]:
    try:
        if file.stat().st_size > LARGEST_BYTES:
            raise _damaged(file, "is larger than any ledger")
        content = read_kept(file)
    except FileNotFoundError:
        return []
    entries: list[CampaignEntry] = []
    *lines, rest = content.split(b"\n")
    if rest:  # A line is written with its newline at once.
        raise _damaged(file, f"line {len(lines) + 1} was cut off")
    for number, line in enumerate(lines):
        try:
            entry = CampaignEntry.model_validate_json(line)
        except ValidationError:
            raise _damaged(file, f"line {number + 1} is not an entry") from None
        previous = entries[-1].digest if entries else ""
        if (entry.number, entry.previous, entry.digest) != (number, previous, digest_of(entry)):
            raise _damaged(file, f"line {number + 1} was changed, or a line before it is missing")
        entries.append(entry)
    return entries


def _damaged(file: Path, why: str) -> RunError:
    return RunError(
        f"the ledger {file} is damaged: {why}",
        hint="begin a new campaign with ajuste campaign new; the verdicts of this one cannot be trusted",
    )


FOLDER: Final = "campaigns"
STUDY: Final = "study"
"""Name of the directory with the study of a referee."""
_AGAIN: Final = "put its file back as it was, or begin a new campaign"


class SealedPart(ClosedModel):
    """The part hidden from proposers: the secret that seeds derive from, and the confirming studies."""

    secret: str
    hidden: tuple[str, ...] = ()
    hidden_sha256: tuple[str, ...] = ()


class KeptCampaign:
    """A campaign on disk. Raises RunError if it is damaged or was changed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            self.campaign = Campaign.model_validate_json(read_kept(directory / "campaign.json"))
            sealed = read_kept(directory / "sealed.json")
            self._sealed = SealedPart.model_validate_json(sealed)
        except (OSError, ValidationError):
            raise RunError(
                f"the campaign in {directory} is damaged", hint="begin a new one with ajuste campaign new"
            ) from None
        self.ledger = CampaignLedger(directory / "ledger.jsonl")
        first = self.ledger.entries[0].reason if self.ledger.entries else ""
        document = self.campaign.model_dump_json()
        if self.campaign.sealed_sha256 != _sha256(sealed) or first != _sha256(document.encode()):
            raise RunError(
                f"the campaign in {directory} was changed after it began",
                hint="begin a new one with ajuste campaign new",
            )

    @property
    def confirmed(self) -> Path:
        """The store of confirmations, which proposers must not see."""
        return self.directory / "sealed.sqlite"

    @property
    def explored(self) -> Path:
        return self.directory / "explored.sqlite"

    def locked(self) -> AbstractContextManager[None]:
        """Lock the campaign for a proposal. Raises RequestError during another one."""
        return exclusive(self.directory / "lock", f"a proposal of the campaign {self.campaign.name}")

    def seed(self, proposal: int, phase: str, part: int = 0) -> int:
        """Return the seed of a phase of a proposal: without the secret it cannot be guessed."""
        text = f"{proposal}/{phase}/{part}".encode()
        digest = hmac.digest(bytes.fromhex(self._sealed.secret), text, "sha256")
        return int.from_bytes(digest[:8]) >> (64 - SEED_BITS)

    def studies(self, known: Catalogue) -> tuple[Study, ...]:
        """Return the visible study, then the hidden ones. Raises RequestError if one has changed."""
        names = (self.campaign.study, *self._sealed.hidden)
        digests = (self.campaign.study_sha256, *self._sealed.hidden_sha256)
        studies = []
        for place, (name, digest) in enumerate(zip(names, digests, strict=True)):
            what = f"the study {name}" if place == 0 else f"hidden study {place}"
            try:
                study = _read(name, known)
            except RequestError:
                raise RequestError(
                    f"{what} of the campaign {self.campaign.name} is gone or no longer valid",
                    hint="put its file back, or begin a new campaign",
                ) from None
            refereed = self.campaign.refereed
            for file, sealed in (refereed.files if refereed else {}).items():
                copy = self.directory / STUDY / file
                if not copy.is_file() or file_sha256(copy) != sealed:
                    raise RequestError(f"{copy} changed since the campaign {self.campaign.name} began", hint=_AGAIN)
            if study_digest(study) != digest:
                raise RequestError(
                    f"{what} changed since the campaign {self.campaign.name} began",
                    hint=_AGAIN,
                )
            studies.append(study)
        return tuple(studies)


def new_campaign(home: Home, wanted: Campaign, hidden: tuple[str, ...], known: Catalogue) -> KeptCampaign:
    """Store a campaign and begin its ledger. Raises RequestError if the name is taken."""
    directory = campaign_directory(home, wanted.name)
    if (directory / "campaign.json").exists():
        raise RequestError(f"there is a campaign {wanted.name} already", hint="choose another name")
    studies = [_read(name, known) for name in (wanted.study, *hidden)]
    sealed = SealedPart(
        secret=secrets.token_hex(32),
        hidden=tuple(map(_lasting, hidden)),
        hidden_sha256=tuple(map(study_digest, studies[1:])),
    ).model_dump_json()
    campaign = wanted.model_copy(
        update={
            "study": _lasting(wanted.study),
            "study_sha256": study_digest(studies[0]),
            "hidden": len(hidden),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "sealed_sha256": _sha256(sealed.encode()),
        }
    )
    make_directory(directory)
    document = campaign.model_dump_json()
    remove_file(directory / "ledger.jsonl")  # Left by an interrupted call: `campaign.json` is written last.
    CampaignLedger(directory / "ledger.jsonl").add("begun", reason=_sha256(document.encode()))
    # `campaign.json` comes last, since it makes the campaign exist.
    for name, text in (("sealed.json", sealed), ("campaign.json", document)):
        replace_file(directory / name, text.encode(), mode=0o600, on_disk=True)
    return KeptCampaign(directory)


def campaign_directory(home: Home, name: str) -> Path:
    """Return the directory of the campaign ``name``, which need not exist."""
    return home.data / FOLDER / name


def find_campaign(home: Home, name: str) -> KeptCampaign:
    """Return the campaign ``name``. Raises RequestError with the nearest names."""
    names = campaign_names(home)
    if name not in names:
        near = nearest(name[:80], names) or (f"; expected one of {', '.join(names[:10])}" if names else "")
        raise RequestError(
            f"campaign {name[:80]!r} not found{near}", hint="begin one with ajuste campaign new, or list all with show"
        )
    return KeptCampaign(campaign_directory(home, name))


def campaign_names(home: Home) -> list[str]:
    """Return the names of all campaigns."""
    try:
        places = sorted((home.data / FOLDER).iterdir())
    except OSError:
        return []
    return [
        place.name
        for place in places
        if re.fullmatch(CAMPAIGN_NAME, place.name) and (place / "campaign.json").is_file()
    ]


def study_digest(study: Study) -> str:
    """Return the SHA-256 of a study as JSON."""
    return _sha256(study.model_dump_json(by_alias=True).encode())


def _read(name: str, known: Catalogue) -> Study:
    return read_study(find_study(name), known, parse_kernel=parse_study_spec)


def _lasting(name: str) -> str:
    # The campaign is also resumed from other directories.
    return str(Path(name).absolute()) if name.endswith(".toml") or "/" in name else name


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
