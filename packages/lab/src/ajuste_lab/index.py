"""The search index of runs: their settings and verdicts, which the store's list does not have.

It is read once from the stored runs, which takes long for thousands, and then cached.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ajuste.machine.files import make_directory, replace_file
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError
from ajuste.store.head import Head
from ajuste_lab.following import RunFollower

_VERSION: Final = 2
# Maximum number of new runs that are read while a page waits; more are read in the background.
_AT_ONCE: Final = 40


@dataclass(frozen=True)
class RunFacts:
    """``check`` is the store's checksum of the run they are of; ``verdicts`` count the words on deciding metrics."""

    check: int
    title: str = ""
    question: str = ""
    settings: tuple[str, ...] = ()
    verdicts: Mapping[str, int] = field(default_factory=dict)


NOTHING_KNOWN: Final = RunFacts(check=-1)


class RunIndex:
    """Safe to use from several threads."""

    def __init__(self, home: Home) -> None:
        self._url = home.store_url
        self._file = home.cache / "lab" / "index.json"
        self._lock = threading.Lock()
        self._known: dict[str, RunFacts] = _read(self._file, self._url)
        self._reading: threading.Thread | None = None

    def of(self, heads: Sequence[Head]) -> dict[str, RunFacts]:
        """Return the facts of the runs indexed so far; a few others are read at once."""
        known = self._known
        missing = [head for head in heads if known.get(head.id, NOTHING_KNOWN).check != head.check]
        if 0 < len(missing) <= _AT_ONCE:
            self._read(missing)
        elif missing and (self._reading is None or not self._reading.is_alive()):
            self._reading = threading.Thread(target=self._read, args=(missing,), name="lab index", daemon=True)
            self._reading.start()
        return dict(self._known)

    @property
    def is_reading(self) -> bool:
        """Return whether indexing still goes on."""
        return self._reading is not None and self._reading.is_alive()

    def _read(self, heads: Sequence[Head]) -> None:
        checks = {head.id: head.check for head in heads}
        with self._lock, suppress(AjusteError), RunFollower(self._url) as follower:
            for run_id, resolved, results in follower.documents(list(checks)):
                try:
                    self._known[run_id] = _facts(checks[run_id], json.loads(resolved), json.loads(results or "{}"))
                except (ValueError, TypeError, AttributeError, KeyError):  # Another Ajuste may keep them otherwise.
                    self._known[run_id] = RunFacts(checks[run_id])
        self._keep()

    def _keep(self) -> None:
        document = {
            "version": _VERSION,
            "store": self._url,
            "runs": {
                name: vars(facts) | {"verdicts": dict(facts.verdicts)} for name, facts in dict(self._known).items()
            },
        }
        with suppress(OSError):  # It is read again.
            make_directory(self._file.parent)
            replace_file(self._file, json.dumps(document).encode())


def _facts(check: int, resolved: Mapping[str, Any], results: Mapping[str, Any]) -> RunFacts:
    study = resolved["study"]
    tables = study.get("factors") or study.get("factor") or ()
    settings: list[str] = []
    for table in tables:
        names = [name for level in (table.get("settings") or {}).values() for name in level]
        settings += names or [str(table["name"])]
    deciding = {metric["name"] for metric in resolved.get("deciding", ())}
    verdicts = [verdict for verdict in results.get("verdicts", ()) if verdict["metric"] in deciding]
    # A gate asks only whether its limit is exceeded.
    decided = [v for v in verdicts if (v["verdict"], v.get("against_limit")) != ("undecided", "within")]
    words = Counter(verdict["verdict"] for verdict in decided)
    title, question = str(study.get("title") or study["name"]), str(study.get("question", ""))
    return RunFacts(check, title[:300], question[:500], tuple(dict.fromkeys(settings)), dict(words))


def _read(file: Path, url: str) -> dict[str, RunFacts]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if (document["version"], document["store"]) != (_VERSION, url):
            return {}
        return {
            str(name): RunFacts(
                int(facts["check"]),
                str(facts["title"]),
                str(facts["question"]),
                tuple(map(str, facts["settings"])),
                {str(word): int(count) for word, count in facts["verdicts"].items()},
            )
            for name, facts in document["runs"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
