"""Where Ajuste keeps things: under ``AJUSTE_HOME``, or else in the XDG directories; the store where ``AJUSTE_STORE``
says.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ajuste.machine.files import require_own


@dataclass(frozen=True)
class Home:
    """``data`` is worth keeping (the store, reports), ``cache`` can be fetched or made again, ``state`` is of this
    machine.

    Directories are made by whoever writes into them, with ``machine.files.make_directory``.
    """

    data: Path
    cache: Path
    state: Path
    shared_store: str = ""
    """The URL of a store elsewhere, if one is used."""

    @property
    def store_url(self) -> str:
        """The SQLAlchemy URL of the store."""
        return self.shared_store or f"sqlite:///{self.data / 'store.sqlite'}"

    @property
    def reports(self) -> Path:
        return self.data / "reports"

    @property
    def kernels(self) -> Path:
        return self.cache / "kernels"

    @property
    def booted(self) -> Path:
        """Machines that have booted."""
        return self.cache / "booted"

    @property
    def journals(self) -> Path:
        """What undoes the changes of experiments on this machine, as long as these go on."""
        return self.state / "journals"

    @property
    def cluster_keys(self) -> Path:
        """Where the keys of a cluster are, if nothing else is said."""
        return self.data / "cluster-keys"

    @property
    def sessions(self) -> Path:
        """Temporary directories of running machines: one for each, removed whatever happens."""
        return self.state / "sessions"


def home(environment: Mapping[str, str] = os.environ) -> Home:
    """The home that ``environment`` names. Raises RequestError for one that another user owns or can change.

    Under root with the HOME of another user, as some systems' sudo leaves it, it is root's own: nothing of root's is
    left in that user's directories, and none of their links is followed.
    Source: XDG Base Directory Specification 0.8 for the defaults.
    """
    found = _named_by(environment)
    named = [Path(root)] if (root := environment.get("AJUSTE_HOME")) else []
    for directory in (*named, found.data, found.cache, found.state, found.journals, found.sessions):
        require_own(directory.expanduser(), environment)
    return found


def _named_by(environment: Mapping[str, str]) -> Home:
    root, store = environment.get("AJUSTE_HOME"), environment.get("AJUSTE_STORE", "")
    if root:
        base = Path(root).expanduser().absolute()
        return Home(base / "data", base / "cache", base / "state", store)
    user = Path(environment.get("HOME") or Path.home())
    own = os.geteuid() != 0 or not _is_anothers(user)
    user = user if own else Path(pwd.getpwuid(0).pw_dir)

    def xdg(name: str, default: str) -> Path:
        value = environment.get(name, "") if own else ""
        return (Path(value) if Path(value).is_absolute() else user / default) / "ajuste"

    return Home(
        xdg("XDG_DATA_HOME", ".local/share"),
        xdg("XDG_CACHE_HOME", ".cache"),
        xdg("XDG_STATE_HOME", ".local/state"),
        store,
    )


def _is_anothers(directory: Path) -> bool:
    try:
        return directory.stat().st_uid != os.geteuid()
    except FileNotFoundError:
        return False
    except OSError:
        return True
