"""A suite: one run for each member, all of the same configurations, and the record of which belong together."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ajuste.analysis.suite import suite_result
from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import parse_spec
from ajuste.machine.home import find_program
from ajuste.model.error import AjusteError, RequestError, RunError
from ajuste.model.results import Results
from ajuste.model.suite import PREFIX, SuiteEntry, SuiteRecord, SuiteResult
from ajuste.run.experiment import conduct, goes_on, prepare, progress_of
from ajuste.run.outcome import results_of
from ajuste.run.testbed import Experiment, RunOptions
from ajuste.study.command_line.request import Request
from ajuste.study.schema import Study
from ajuste.study.suite import MemberTable, Suite, guest_programs, member_study, shares

if TYPE_CHECKING:
    from ajuste.store.store import Store

KEEP_GOING: Final = "--keep-going"


@dataclass(frozen=True)
class SuiteRequest:
    """The ``members`` of ``suite`` under the configurations of ``request``. ``keep_going`` leaves out what cannot be
    measured; ``fresh`` takes nothing from the store.
    """

    suite: Suite
    members: tuple[MemberTable, ...]
    request: Request
    keep_going: bool = False
    fresh: bool = False


@dataclass
class SuiteRun:
    """Carries out a request. ``named`` is the command as it was typed; ``quiet`` shows no progress."""

    request: SuiteRequest
    catalogue: Catalogue
    means: RunOptions
    named: str
    quiet: bool = False
    _ready: dict[str, Experiment] = field(default_factory=dict, init=False)
    _left_out: dict[str, AjusteError] = field(default_factory=dict, init=False)
    _record: SuiteRecord | None = field(default=None, init=False)

    def on_kernels(self, names: Mapping[str, str]) -> SuiteRun:
        """The same with each kernel called as in ``names``, by what it is called here."""
        request = replace(self.request, request=self.request.request.with_kernels(names))
        return SuiteRun(request, self.catalogue, self.means, self.named, self.quiet)

    @cached_property
    def studies(self) -> dict[str, Study]:
        """That of each member, checked. What is wrong with one is known of all before anything starts. Raises
        RequestError unless the others go on.
        """
        request = self.request
        together = shares(request.suite, request.members, request.request)
        beside = [one for one in guest_programs(request.suite, self.catalogue) if find_program(one) is not None]
        found: dict[str, Study] = {}
        for member in request.members:
            try:
                found[member.name] = member_study(
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
        self._require(found)
        return found

    def check(self) -> None:
        """Fetch the kernels and find the programs of all members. Raises RequestError for what cannot be measured,
        unless the others go on.
        """
        for name, study in self.studies.items():
            try:
                self._ready[name] = prepare(study, self.catalogue, self.means)
            except RequestError as failure:
                self._left_out[name] = failure
        self._require(self._ready)

    def _require(self, found: dict[str, Study] | dict[str, Experiment]) -> None:
        if not self._left_out or (found and self.request.keep_going):
            return
        [(name, first), *others] = self._left_out.items()
        if not found and all(one.message == first.message for _, one in others):
            raise first
        said = [f"member {name}: {first.message}", *(f"member {name}: {one.message}" for name, one in others)]
        ways = list(dict.fromkeys(one.hint for one in self._left_out.values() if one.hint))
        if found:
            ways.append(f"leave out what is missing with {KEEP_GOING}")
        way = ", or ".join(ways) or None
        raise RequestError("\n".join(said), hint=way, place=first.place)

    def carry_out(self) -> SuiteResult:
        """One member after the other. What was measured is kept, whatever happens. Raises RunError for a member that
        failed, unless the others go on.
        """
        from ajuste.store.store import Store

        with Store(self.means.home.store_url) as store:
            kept = self._interrupted(store)
            record = self._begin(kept)
            before = {one.name for one in kept.entries if one.run and not one.failed} if kept else set()
            for place, (name, experiment) in enumerate(self._ready.items(), 1):
                self.means.say(f"member {place} of {len(self._ready)}: {name}")
                entry = self._measured(name, experiment, store, again=name in before)
                record = self._keep(record.with_entry(entry), store)
                if entry.failed and not self.request.keep_going:
                    hint = f"ajuste report {entry.run} --trials shows each trial" if entry.run else None
                    raise RunError(f"member {name} failed: {entry.reason}", hint=hint)
            record = self._keep(record.model_copy(update={"finished": True}), store)
            return stored_result(record, store)

    def so_far(self) -> SuiteResult | None:
        """What is known now, if anything was measured."""
        from ajuste.store.store import Store

        if self._record is None or not any(one.run and not one.failed for one in self._record.entries):
            return None
        with Store(self.means.home.store_url) as store:
            return stored_result(self._record, store)

    @property
    def failed(self) -> tuple[str, ...]:
        """The members that failed while they were measured."""
        return tuple(one.name for one in self._record.entries if one.failed) if self._record else ()

    def _measured(self, name: str, experiment: Experiment, store: Store, *, again: bool) -> SuiteEntry:
        # `again`: what an interrupted suite has of it stays as it is.
        fresh = self.request.fresh or not (again or goes_on(experiment, store))
        study = experiment.resolved.study
        try:
            with progress_of(study, self.catalogue, quiet=self.quiet) as progress:
                means = replace(self.means, say=progress.say)
                run = conduct(experiment, store, progress, means, named=self.named, fresh=fresh)
        except RunError as failure:
            return SuiteEntry(name=name, reason=failure.message, failed=True)
        if run.stopped == "failed":
            return SuiteEntry(name=name, run=run.id, reason=run.stopped_because, failed=True)
        return SuiteEntry(name=name, run=run.id)

    # The record.

    def _begin(self, kept: SuiteRecord | None) -> SuiteRecord:
        table = self.request.suite.table
        now = datetime.now(UTC)
        record = kept or SuiteRecord(
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
        return next((one for one in record.entries if one.name == name and one.run), SuiteEntry(name=name))

    def _keep(self, record: SuiteRecord, store: Store) -> SuiteRecord:
        self._record = record
        store.keep_suite(record.id, record.model_dump_json())
        return record

    def _interrupted(self, store: Store) -> SuiteRecord | None:
        # The same suite, if it is the last of its name and was interrupted.
        last = next(records(store, self.request.suite.table.name), None)
        if self.request.fresh or last is None or last.finished or last.question != self._question:
            return None
        return last

    @property
    def _question(self) -> str:
        text = "\n".join(
            f"{name} {one.fingerprint} {one.resolved.study.model_dump_json()}" for name, one in self._ready.items()
        )
        return hashlib.sha256(text.encode()).hexdigest()


def records(store: Store, name: str = "") -> Iterator[SuiteRecord]:
    """Those of the suite ``name``, or of all, the newest first. Raises RunError for a damaged store."""
    found = map(SuiteRecord.model_validate_json, store.suites())
    yield from sorted(
        (one for one in found if name in ("", one.name)), key=lambda one: (one.created, one.id), reverse=True
    )


def find_record(store: Store, text: str) -> SuiteRecord | None:
    """The suite with the id ``text``, or the last one that is called so (``suite-NAME``)."""
    if not text.startswith(PREFIX):
        return None
    return next((one for one in records(store) if text in (one.id, f"{PREFIX}{one.name}")), None)


def stored_result(record: SuiteRecord, store: Store) -> SuiteResult:
    """What is known of a suite whose runs are in the store; of a run that is gone it says so."""
    found: dict[str, Results] = {}
    for entry in record.entries:
        if not entry.run or entry.failed:
            continue
        try:
            run = store.find_run(entry.run)
        except RequestError as failure:
            record = record.with_entry(entry.model_copy(update={"reason": failure.message}))
            continue
        found[entry.name] = results_of(run, store)
    return suite_result(record, found)
