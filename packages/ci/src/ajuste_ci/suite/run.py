"""A suite: one run for each member with the same configurations, and the record that joins them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import find_program
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.results import Results
from ajuste.run.experiment import conduct, goes_on, prepare, progress_of
from ajuste.run.outcome import results_of
from ajuste.run.testbed import Experiment, RunOptions
from ajuste.study.command_line.request import Request
from ajuste.study.schema import Study
from ajuste_ci.suite.file import MemberTable, Suite, guest_programs, member_study, shares
from ajuste_ci.suite.model import PREFIX, SuiteEntry, SuiteRecord, SuiteResult
from ajuste_ci.suite.result import suite_result

if TYPE_CHECKING:
    from ajuste.store.store import Store

KEEP_GOING: Final = "--keep-going"


@dataclass(frozen=True)
class SuiteRequest:
    """The ``members`` of ``suite`` under the configurations of ``request``. ``keep_going`` leaves out those that cannot
    be measured; ``fresh`` reuses no runs.
    """

    suite: Suite
    members: tuple[MemberTable, ...]
    request: Request
    keep_going: bool = False
    fresh: bool = False


@dataclass
class SuiteRun:
    """Carries out a request. ``named`` is the command as typed; ``quiet`` hides progress."""

    request: SuiteRequest
    catalogue: Catalogue
    options: RunOptions
    named: str
    quiet: bool = False
    _ready: dict[str, Experiment] = field(default_factory=dict, init=False)
    _left_out: dict[str, AjusteError] = field(default_factory=dict, init=False)
    _record: SuiteRecord | None = field(default=None, init=False)

    def on_kernels(self, names: Mapping[str, str]) -> SuiteRun:
        """Return the same request with other ``names`` of kernels, by their names here."""
        request = replace(self.request, request=self.request.request.with_kernels(names))
        return SuiteRun(request, self.catalogue, self.options, self.named, self.quiet)

    @cached_property
    def studies(self) -> dict[str, Study]:
        """The checked study of each member. Raises RequestError with the errors of all members, unless with
        ``keep_going`` some are left.
        """
        request = self.request
        together = shares(request.suite, request.members, request.request)
        beside = [
            program for program in guest_programs(request.suite, self.catalogue) if find_program(program) is not None
        ]
        studies: dict[str, Study] = {}
        for member in request.members:
            try:
                studies[member.name] = member_study(
                    request.suite,
                    member,
                    request.request,
                    together,
                    self.catalogue,
                    beside=beside,
                    parse_kernel=parse_spec,
                )
            except RequestError as failure:
                self._left_out[member.name] = failure
        self._require(studies)
        return studies

    def check(self) -> None:
        """Fetch the kernels and find the programs of all members. Raises RequestError for members that cannot be
        measured, unless with ``keep_going`` some are left.
        """
        for name, study in self.studies.items():
            try:
                self._ready[name] = prepare(study, self.catalogue, self.options)
            except RequestError as failure:
                self._left_out[name] = failure
        self._require(self._ready)

    def _require(self, usable: dict[str, Study] | dict[str, Experiment]) -> None:
        if not self._left_out or (usable and self.request.keep_going):
            return
        [(name, first), *others] = self._left_out.items()
        if not usable and all(failure.message == first.message for _, failure in others):
            raise first
        messages = [
            f"member {name}: {first.message}",
            *(f"member {name}: {failure.message}" for name, failure in others),
        ]
        ways = list(dict.fromkeys(failure.hint for failure in self._left_out.values() if failure.hint))
        if usable:
            ways.append(f"leave out what is missing with {KEEP_GOING}")
        way = ", or ".join(ways) or None
        raise RequestError("\n".join(messages), hint=way, place=first.place)

    def carry_out(self) -> SuiteResult:
        """Measure all members, and store each run at once. Raises RunError if a member fails, unless with
        ``keep_going``.
        """
        from ajuste.store.store import Store

        with Store(self.options.home.store_url) as store:
            interrupted = self._interrupted(store)
            record = self._begin(interrupted)
            before = (
                {entry.name for entry in interrupted.entries if entry.run and not entry.failed}
                if interrupted
                else set()
            )
            for place, (name, experiment) in enumerate(self._ready.items(), 1):
                self.options.say(f"member {place} of {len(self._ready)}: {name}")
                entry = self._measured(name, experiment, store, again=name in before)
                # At once, so that an interrupted suite resumes behind this member.
                record = self._keep(record.with_entry(entry), store)
                if entry.failed and not self.request.keep_going:
                    hint = f"ajuste report {entry.run} --trials shows each trial" if entry.run else None
                    raise RunError(f"member {name} failed: {entry.reason}", hint=hint)
            record = self._keep(record.model_copy(update={"finished": True}), store)
            return stored_result(record, store)

    def so_far(self) -> SuiteResult | None:
        """Return the results so far; None if nothing was measured."""
        from ajuste.store.store import Store

        if self._record is None or not any(entry.run and not entry.failed for entry in self._record.entries):
            return None
        with Store(self.options.home.store_url) as store:
            return stored_result(self._record, store)

    @property
    def failed(self) -> tuple[str, ...]:
        """The members that failed during measuring."""
        return tuple(entry.name for entry in self._record.entries if entry.failed) if self._record else ()

    def _measured(self, name: str, experiment: Experiment, store: Store, *, again: bool) -> SuiteEntry:
        # `again`: an interrupted suite has a run of it, which is reused whatever its clock.
        fresh = self.request.fresh or not (again or goes_on(experiment, store))
        study = experiment.resolved.study
        try:
            with progress_of(study, self.catalogue, quiet=self.quiet) as progress:
                options = replace(self.options, say=progress.say)
                run = conduct(experiment, store, progress, options, named=self.named, fresh=fresh)
        except RunError as failure:
            return SuiteEntry(name=name, reason=failure.message, failed=True)
        if run.stopped == "failed":
            return SuiteEntry(name=name, run=run.id, reason=run.stopped_because, failed=True)
        return SuiteEntry(name=name, run=run.id)

    # The record.

    def _begin(self, interrupted: SuiteRecord | None) -> SuiteRecord:
        table = self.request.suite.table
        now = datetime.now(UTC)
        record = interrupted or SuiteRecord(
            id=f"{PREFIX}{table.name}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
            name=table.name,
            title=table.title or table.name,
            question=self._question,
            named=self.named,
            created=now.isoformat(timespec="seconds"),
            level=shares(self.request.suite, self.request.members, self.request.request).confidence,
        )
        entries = (self._entry(member.name, record) for member in self.request.members)
        return record.model_copy(update={"entries": tuple(entries)})

    def _entry(self, name: str, record: SuiteRecord) -> SuiteEntry:
        if name in self._left_out:
            return SuiteEntry(name=name, reason=self._left_out[name].message)
        return next((entry for entry in record.entries if entry.name == name and entry.run), SuiteEntry(name=name))

    def _keep(self, record: SuiteRecord, store: Store) -> SuiteRecord:
        self._record = record
        store.keep_suite(record.id, record.model_dump_json())
        return record

    def _interrupted(self, store: Store) -> SuiteRecord | None:
        # Only the last suite of a name can be resumed.
        last = next(records(store, self.request.suite.table.name), None)
        if self.request.fresh or last is None or last.finished or last.question != self._question:
            return None
        return last

    @property
    def _question(self) -> str:
        text = "\n".join(
            f"{name} {experiment.fingerprint} {experiment.resolved.study.model_dump_json()}"
            for name, experiment in self._ready.items()
        )
        return hashlib.sha256(text.encode()).hexdigest()


def records(store: Store, name: str = "") -> Iterator[SuiteRecord]:
    """Yield the records of the suite ``name``, or of all, newest first. Raises RunError for a damaged store."""
    stored = map(SuiteRecord.model_validate_json, store.suites())
    yield from sorted(
        (record for record in stored if name in ("", record.name)),
        key=lambda record: (record.created, record.id),
        reverse=True,
    )


def find_record(store: Store, text: str) -> SuiteRecord | None:
    """Return the suite with the id ``text``, or the latest of this name (``suite-NAME``)."""
    if not text.startswith(PREFIX):
        return None
    return next((record for record in records(store) if text in (record.id, f"{PREFIX}{record.name}")), None)


def stored_result(record: SuiteRecord, store: Store) -> SuiteResult:
    """Return the results of a suite from the store; the reason of a missing run is in its entry."""
    results: dict[str, Results] = {}
    for entry in record.entries:
        if not entry.run or entry.failed:
            continue
        try:
            run = store.find_run(entry.run)
        except RequestError as failure:
            record = record.with_entry(entry.model_copy(update={"reason": failure.message}))
            continue
        results[entry.name] = results_of(run, store)
    return suite_result(record, results)
