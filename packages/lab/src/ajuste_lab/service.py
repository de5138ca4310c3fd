"""The lab's operations for pages, programs by HTTP and agents: look, plan, start, stop, keep."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import tomlkit

from ajuste.catalogue.loader import catalogue
from ajuste.kernel.spec import kernel_kind, parse_study_spec
from ajuste.machine.files import make_directory
from ajuste.machine.home import Home, as_root
from ajuste.model.capability import Asked, Rule
from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.report.plan import PlannedStudy
from ajuste.run.outcome import results_of
from ajuste.store.head import Head, valid_tags
from ajuste.store.location import lock_name
from ajuste.store.store import Run, Store
from ajuste.store.upkeep import forget
from ajuste.study.named import require_allowed
from ajuste.study.problem import StudySource, error
from ajuste.study.read import beyond_limits, checked_study, parse_study, read_toml
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.schema import Study
from ajuste_lab.following import RunFollower
from ajuste_lab.jobs import AJUSTE, Job, Jobs
from ajuste_share.sharing import Imported, import_bundle

MOST_STUDY_BYTES: Final = 256 * 1024
STUDY_FILE: Final = "study.toml"


class LabService:
    """The lab of one store and one machine. Safe to use from several threads; it raises only AjusteError.

    Nothing of the host is written unless ``allow_host``: studies run in guests.
    """

    def __init__(self, home: Home, *, allow_host: bool = False, command: Sequence[str] = AJUSTE) -> None:
        if allow_host and os.geteuid() != 0:
            raise RequestError(
                "--allow-host requires root: with it, clients change settings of this machine",
                hint=f"run {as_root()}\nor omit --allow-host to measure in guests",
            )
        self.home = home
        self.allow_host = allow_host
        self.jobs = Jobs(home, command)
        self.store = Store(home.store_url)
        self._follower = RunFollower(home.store_url)
        self._lock = threading.Lock()
        self._importing = threading.Lock()
        self._heads: list[Head] | None = None

    def close(self) -> None:
        """Close the store; jobs go on."""
        self.store.__exit__(None, None, None)
        self._follower.__exit__(None, None, None)

    # Looking.

    def runs(self) -> list[Head]:
        """Return the heads of all runs, the one begun last first. They are read again once anything was written."""
        with self._lock:
            if self._follower.changed() or self._heads is None:
                self._heads = self.store.runs()
            return list(self._heads)

    def head(self, run: str) -> Head:
        """Return the head of the run with that id. Raises RequestError."""
        head = next((head for head in self.runs() if head.id == run), None)
        if head is None:
            raise RequestError(f"run {run[:80]!r} not found in the store", hint="list runs with ajuste report")
        return head

    def run(self, text: str) -> Run:
        """Return a run by its id, or the newest of a study. Raises RequestError."""
        return self.store.find_run(text[:200])

    def results(self, run: Run) -> Results:
        """Return the results of a run, also while it goes on."""
        return results_of(run, self.store)

    def is_going_on(self, run: Run | Head) -> bool:
        """Return whether any process is measuring ``run``."""
        if run.stopped:
            return False
        return _is_locked(self.home.state / lock_name(run.fingerprint, run.seed))

    # Planning and starting.

    def checked(self, document: Mapping[str, Any], rights: Asked | None = None) -> tuple[Study, str]:
        """Return the study in ``document``, as a study file has it, and the text of that file.

        Raises:
            RequestError: The study is wrong, or contains what ``rights`` (default: of the lab page) do not allow.
        """
        plain = _plain(document)
        if problems := beyond_limits(plain):
            raise error(problems, None)
        text = tomlkit.dumps(plain)
        if len(text) > MOST_STUDY_BYTES:
            raise RequestError(f"the study has {len(text):,} characters; expected at most {MOST_STUDY_BYTES:,}")
        options: frozenset[Rule] = frozenset({"--allow-host"}) if self.allow_host else frozenset()
        rights = rights or Asked("page", options=options)
        source = StudySource(Path(STUDY_FILE), text)
        # The first check comes before any file that the study names is opened; the kinds of its kernels are known only
        # afterwards.
        require_allowed(parse_study(plain, source), rights, catalogue(), lambda _: "kernel package")
        study = checked_study(plain, source, catalogue(), parse_kernel=parse_study_spec)
        require_allowed(study, rights, catalogue(), kernel_kind)
        return study, text

    def document(self, run: Run) -> dict[str, Any]:
        """Return the study of a run as a study file has it; to run it resumes the run, or repeats it."""
        return ResolvedStudy.model_validate_json(run.resolved).study.document()

    def study_text(self, document: Mapping[str, Any]) -> str:
        """Return the study file with ``document``."""
        return tomlkit.dumps(_plain(document))

    def read(self, text: str) -> dict[str, Any]:
        """Return the document in the text of a study file, within its limits. Raises RequestError with the line."""
        if len(text) > MOST_STUDY_BYTES:
            raise RequestError(f"the study has {len(text):,} characters; expected at most {MOST_STUDY_BYTES:,}")
        with self._study_file(text) as file:
            return read_toml(file, "study", "see `ajuste help study-fields`, or ajuste schema")[0]

    def output_of(self, words: Sequence[str]) -> str:
        """Return what ``ajuste WORDS`` prints; WORDS must change nothing. Raises RequestError if it fails."""
        make_directory(self.jobs.directory)
        return self.jobs.output_of(words, self.jobs.directory)

    def plan(self, document: Mapping[str, Any], rights: Asked | None = None) -> PlannedStudy:
        """Return every write, command and trial of a study; nothing is done. Raises RequestError."""
        _, text = self.checked(document, rights)
        with self._study_file(text) as file:
            words = ["plan", str(file), "--json"]
            return PlannedStudy.model_validate_json(self.jobs.output_of(words, file.parent, rights=rights))

    @contextmanager
    def _study_file(self, text: str) -> Iterator[Path]:
        # A temporary file: errors in it are reported without its path.
        directory = self.jobs.new_directory()
        file = directory / STUDY_FILE
        try:
            file.write_text(text, encoding="utf-8")
            yield file
        except RequestError as problem:
            prefix = f"{directory}{os.sep}"
            hint = None if problem.hint is None else problem.hint.replace(prefix, "")
            raise RequestError(str(problem).replace(prefix, ""), hint=hint) from None
        finally:
            file.unlink(missing_ok=True)
            directory.rmdir()

    def start(
        self,
        document: Mapping[str, Any],
        *,
        fresh: bool = False,
        max_minutes: float | None = None,
        rights: Asked | None = None,
    ) -> Job:
        """Run a study as a child process, for at most ``max_minutes``. Raises RequestError for one that cannot run."""
        study, text = self.checked(document, rights)
        directory = self.jobs.new_directory()
        file = directory / STUDY_FILE
        file.write_text(text, encoding="utf-8")
        options = ["--fresh"] if fresh else []
        if max_minutes is not None:
            options += ["--max-time", f"{60 * max_minutes:g}s"]
        words = ["run", str(file), *options, "--quiet", "--json"]
        return self.jobs.start(study.name, words, directory, rights=rights, minutes=max_minutes)

    # Keeping in order.

    def import_bundle(self, file: Path, name: str) -> list[Imported]:
        """Import the runs of a bundle, all or none. Raises RequestError, which calls ``file`` by its ``name``."""
        if not self._importing.acquire(blocking=False):
            raise RequestError("another bundle is being imported", hint="wait until it is done, then try again")
        try:
            return import_bundle(file, self.store)
        except RequestError as problem:
            raise RequestError(problem.message.replace(str(file), name), hint=problem.hint) from None
        finally:
            self._importing.release()

    def set_tags(self, run: str, tags: Iterable[str]) -> list[str]:
        """Replace the tags of a run. Raises RequestError."""
        wanted = valid_tags(tags)
        self.store.tag(self.head(run), wanted)
        return wanted

    def delete(self, runs: Iterable[str]) -> None:
        """Delete runs. Raises RequestError for one that is measured now."""
        forget([self.head(run) for run in runs], self.store, self.home)


def _plain(document: Mapping[str, Any]) -> dict[str, Any]:
    # A copy without objects of any library.
    plain: dict[str, Any] = json.loads(json.dumps(document))
    return plain


def _is_locked(file: Path) -> bool:
    # Read from /proc and not tried with flock(2): a process that wants the lock at that moment would be refused.
    #
    # Source: proc_locks(5): `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF`. The device is not compared: some
    # file systems tell stat(2) another one.
    try:
        inode = file.stat().st_ino
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    return any("FLOCK" in line and "->" not in line and f":{inode} " in line for line in lines)
