"""Adoption: a proved winner stays in force after a live experiment, once it has passed a probation with guards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ajuste.catalogue.loader import catalogue
from ajuste.executor.host.adoption import (
    AdoptedValue,
    Adoption,
    BootFile,
    HeldPlan,
    adopt,
    adoptions,
    old_values,
    undo_command,
)
from ajuste.executor.host.availability import current_values
from ajuste.executor.host.host import HostExecutor
from ajuste.executor.host.journals import OldValue
from ajuste.machine.files import make_directory, write_text
from ajuste.machine.session import boot_id
from ajuste.model.error import AjusteError
from ajuste.model.event import Failed, Written
from ajuste.model.live import duration
from ajuste.model.plan import Plan
from ajuste.model.results import Results
from ajuste.model.tunable import same_value
from ajuste.model.verdict import Verdict
from ajuste.model.wording import listed
from ajuste.run.outcome import results_of
from ajuste.store.head import Run
from ajuste.store.store import Store
from ajuste.study.resolved import ResolvedStudy
from ajuste_live.conduct import Conductor, watch_command
from ajuste_live.results import breaches_by_name, judge_live
from ajuste_live.state import ON_PROBATION
from ajuste_live.unit import systemctl
from ajuste_profiles.export import Export, ExportFile, ExportSetting, setting_sysctl
from ajuste_profiles.formats import renderers
from ajuste_profiles.winner import configuration_export

MARGIN_SECONDS: Final = 60.0
"""Seconds for which values are held beyond the probation: the watch must not end first."""
_RESTORING_SECONDS: Final = 30.0


@dataclass(frozen=True)
class AdoptionWish:
    """The seconds of the probation, and the directory of the files for the next boots (None: the system's)."""

    probation_s: float
    directory: Path | None = None


@dataclass(frozen=True)
class AdoptionOutcome:
    """The outcome in words; ``failed`` if the winner was tried and did not stay."""

    words: str
    failed: bool = False


class NotProvedError(Exception):
    """Signals that no configuration may stay; the message has the reason."""


def proved_winner(verdicts: Iterable[Verdict], broken: Mapping[str, str]) -> str:
    """Return the one configuration that may stay, by the verdicts on all deciding metrics. Raises NotProvedError.

    It must be the only one that improves a metric, be equivalent in all others, and not have ``broken`` a guard.
    """
    by_configuration: dict[str, dict[str, str]] = {}
    reversed_ones: list[str] = []
    for verdict in verdicts:
        by_configuration.setdefault(verdict.configuration, {})[verdict.metric] = verdict.verdict
        reversed_ones += [f"{verdict.configuration}: {verdict.reason}"] * verdict.reverses
    better = [name for name, words in by_configuration.items() if "improves" in words.values()]
    if not better:
        raise NotProvedError(listed(reversed_ones) or "no configuration is proved to be better than the baseline")
    if len(better) > 1:
        raise NotProvedError(f"{listed(better)} improve: compare them with each other")
    name = better[0]
    if name in broken:
        raise NotProvedError(f"{name} broke a guard: {broken[name]}")
    others = [
        f"{metric} {word}" for metric, word in by_configuration[name].items() if word not in ("improves", "equivalent")
    ]
    if others:
        raise NotProvedError(f"{name} improves, but not everywhere: {listed(others)}")
    return name


def adopt_winner(
    conductor: Conductor, host: HostExecutor, run: Run, store: Store, wish: AdoptionWish
) -> AdoptionOutcome:
    """Put the winner in force, and leave it there after the probation. Raises RunError if the agent of the values is
    lost; the old values are restored then.
    """
    if adopted := next(
        (adoption for adoption in adoptions() if adoption.run == run.id and adoption.is_of_this_boot), None
    ):
        return _adopted(adopted)  # Ajuste was killed right after adopting it.
    try:
        if conductor.hooks.wants_end():
            raise NotProvedError("the experiment was stopped")
        judged = judge_live(conductor.study, conductor.trials)
        verdicts = [verdict for metric in judged for verdict in metric.verdicts]
        name = proved_winner(verdicts, breaches_by_name(conductor.trials))
    except NotProvedError as reason:
        return AdoptionOutcome(f"Nothing was adopted: {reason}.")
    conductor.hooks.state(configuration=name, doing=ON_PROBATION, slices=len(conductor.trials))
    conductor.hooks.tell(f"{name} is on probation for {duration(wish.probation_s)}, with the guards on")
    results = results_of(store.find_run(run.id), store)  # Takes a while, so not while values are held without guards.
    length_s = wish.probation_s + MARGIN_SECONDS
    plan = Plan(
        id="adoption",
        writes=conductor.study.find(name).writes,
        workload=watch_command(conductor.watch, conductor.heart, length_s),
        timeout_ns=round((length_s + MARGIN_SECONDS) * 1e9),
    )
    with host.holding(plan) as held:
        written, journal, why = _probation(conductor, held, name, wish.probation_s)
        why = why or _changed(written)
        if journal is None or why:
            words = f"{name} was not adopted: {why}. The old values are restored."
            return AdoptionOutcome(words, failed=not conductor.hooks.wants_end())
        export = _export(conductor.study, results, written, name)
        old = old_values(journal)
        values = _values(written, old)
        files = _files(export, values, wish)
        adoption = Adoption(
            run=run.id,
            study=run.study,
            configuration=name,
            boot=boot_id(),
            adopted=datetime.now(UTC).isoformat(timespec="seconds"),
            probation_s=wish.probation_s,
            journal=journal.name,
            values=values,
            old=old,
            evidence=export.evidence,
            files=tuple(
                BootFile(path=str(path), sha256=hashlib.sha256(file.text.encode()).hexdigest())
                for path, file in files.items()
            ),
            unit=next((path.name for path in files if path.suffix == ".service" and wish.directory is None), ""),
        )
        adopt(adoption)
    return _adopted(adoption, _write(files, adoption))


def _adopted(adoption: Adoption, problem: str = "") -> AdoptionOutcome:
    summary = f"it kept the guards for {duration(adoption.probation_s)} and stays in force"
    words = f"Adopted {adoption.settings}: {summary}. It is {problem or adoption.at_boot}. Undo with {adoption.undo}."
    return AdoptionOutcome(words)


def _probation(
    conductor: Conductor, held: HeldPlan, name: str, seconds: float
) -> tuple[tuple[Written, ...], Path | None, str]:
    # Returns what was written, and the journal of the values that are left in force or the reason why they are not.
    # Guards compare with slices of the baseline, so they are checked in stretches as long as slices.
    count = max(1, round(seconds / conductor.study.live_design.slice_s))
    written: tuple[Written, ...] = ()
    journal = None
    for number in range(1, count + 1):
        with conductor.monitor(name, seconds / count, held.kill_unresponsive) as monitor:
            if number == 1:
                written = held.begin()
            last = held.ended_within(seconds / count)
            if number == count and last is None and monitor.watched.ended is None:
                journal = held.leave_in_force()  # Within the beats: without them the agent restores.
        ended = monitor.watched.ended  # The last look may have ended after the stretch.
        if ended is not None or last is not None:
            last = last if last is not None or journal is not None else held.ended_within(_RESTORING_SECONDS)
            failures = [event.message for event in last or () if isinstance(event, Failed)]
            why = ended.words if ended else "; ".join(failures) or "the guards were not checked in time"
            return written, journal, why
    return written, journal, ""


def _changed(written: Sequence[Written]) -> str:
    # Somebody may have changed a value, or the agent may have begun to restore.
    with HostExecutor() as reader:
        now = current_values(reader, [catalogue().find_tunable(event.tunable) for event in written])
    values = [(event, now[event.tunable].value) for event in written]
    return listed(
        [
            f"{event.tunable} is {value} instead of {event.after}"
            for event, value in values
            if value is None or not same_value(value, event.after)
        ]
    )


def _values(written: Sequence[Written], steps: Sequence[OldValue]) -> tuple[AdoptedValue, ...]:
    return tuple(
        AdoptedValue(
            tunable=event.tunable,
            before=event.before,
            value=event.after,
            places=tuple(step.location for step in steps if step.tunable == event.tunable),
        )
        for event in written
    )


# Files for the next boots, by the exporter: sysctls in a file of sysctl.d, all else in a unit.


def _export(study: ResolvedStudy, results: Results, written: Sequence[Written], name: str) -> Export:
    export = configuration_export(results, study, written, name, whole=True)
    adopted = f"Adopted {datetime.now(UTC):%Y-%m-%d %H:%M} UTC. To undo: {undo_command(results.run)}"
    # The name sorts by time: of two files with the same sysctl the last one counts.
    stamp = f"ajuste-{datetime.now(UTC):%Y%m%d-%H%M%S}-{export.name.removeprefix('ajuste-')}"
    return replace(export, name=stamp, evidence=(*export.evidence, adopted))


def _files(export: Export, values: Sequence[AdoptedValue], wish: AdoptionWish) -> dict[Path, ExportFile]:
    sysctls = tuple(setting for setting in export.settings if setting_sysctl(setting))
    others = tuple(setting for setting in export.settings if not setting_sysctl(setting))
    files = [
        *renderers()["sysctl.d"](replace(export, settings=sysctls)).files,
        *renderers()["systemd"](replace(export, settings=others)).files,
    ]
    adopted_places = {place for value in values for place in value.places}
    earlier = " ".join(adoption.unit for adoption in adoptions() if adoption.unit and adopted_places & adoption.places)
    if earlier:  # Of two units with the same setting, the later one counts.
        files = [replace(file, text=file.text.replace("\nAfter=", f"\nAfter={earlier} ", 1)) for file in files]
    places = [wish.directory.absolute() / file.name if wish.directory else Path(file.place) for file in files]
    return dict(zip(places, files, strict=True))


def places_at_boot(study: ResolvedStudy, wish: AdoptionWish) -> set[str]:
    """Return the files that an adopted winner would get, with DATE instead of the time."""
    places: set[str] = set()
    for configuration in study.configurations:
        settings = tuple(
            ExportSetting(write.tunable, write.location, write.value, write.value) for write in configuration.writes
        )
        export = Export(f"ajuste-DATE-{study.study.name}", configuration.configuration.name, (), settings)
        places |= set(map(str, _files(export, (), wish)))
    return places


def _write(files: dict[Path, ExportFile], adoption: Adoption) -> str:
    # Returns the problem, as the adoption itself is done.
    try:
        for path, file in files.items():
            make_directory(path.parent, 0o755)
            write_text(path, file.text, mode=file.mode, on_disk=True)
        if adoption.unit:
            systemctl("enable", adoption.unit)
    except (OSError, AjusteError) as failure:
        return f"not set at boot ({failure})"
    return ""
