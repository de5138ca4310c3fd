"""How quiet this machine was, each time that somebody let the lab measure it (``ajuste doctor``)."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from ajuste.lab.jobs import Jobs
from ajuste.machine.doctor.diagnosis import Diagnosis
from ajuste.machine.files import make_directory
from ajuste.machine.home import Home
from ajuste.model.error import AjusteError

MOST_KEPT: Final = 500


@dataclass(frozen=True)
class QuietCheck:
    """One diagnosis and when it was made."""

    at: datetime
    diagnosis: Diagnosis


class Quietness:
    """The checks of one home, the last of which can be going on."""

    def __init__(self, home: Home, jobs: Jobs) -> None:
        self._file = home.state / "lab" / "quietness.jsonl"
        self._jobs = jobs
        self._lock = threading.Lock()
        self._measuring: threading.Thread | None = None
        self.problem = ""

    @property
    def is_measuring(self) -> bool:
        return self._measuring is not None and self._measuring.is_alive()

    def checks(self) -> list[QuietCheck]:
        """The oldest first."""
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()[-MOST_KEPT:]
        except OSError:
            return []
        found = []
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):
                document = json.loads(line)
                at = datetime.fromisoformat(document["at"])
                found.append(QuietCheck(at, Diagnosis.model_validate(document["diagnosis"])))
        return found

    def measure(self, *, quick: bool = True) -> None:
        """Begin to measure, unless that goes on already."""
        with self._lock:
            if self.is_measuring:
                return
            self.problem = ""
            self._measuring = threading.Thread(target=self._measure, args=(quick,), name="lab quietness", daemon=True)
            self._measuring.start()

    def _measure(self, quick: bool) -> None:
        words = ["doctor", *(["--quick"] if quick else []), "--json"]
        try:
            make_directory(self._file.parent)
            found = json.loads(self._jobs.asked(words, self._file.parent, timeout_s=180))
            line = json.dumps({"at": datetime.now(UTC).isoformat(timespec="seconds"), "diagnosis": found})
            with self._file.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except AjusteError as error:
            self.problem = str(error)
        except (OSError, ValueError) as error:
            self.problem = f"the measurement could not be kept: {error}"
