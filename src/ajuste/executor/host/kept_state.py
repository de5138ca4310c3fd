"""The machine as it was before a run changed anything, and what of it is otherwise now.

One small file a run, in the state directory of the home. ``ajuste restore --verify`` compares with the last one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from ajuste.catalogue.loader import Catalogue
from ajuste.executor.executor import Executor
from ajuste.executor.host.availability import current_values
from ajuste.executor.host.caller import Completion
from ajuste.executor.host.machine import instances_here, of_this_machine
from ajuste.machine.files import make_directory, replace_file
from ajuste.machine.home import Home
from ajuste.machine.session import boot_id
from ajuste.model.base import ClosedModel
from ajuste.model.error import RequestError, RunError
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import Location, Write
from ajuste.model.tunable import Tunable, same_value

MOST_KEPT: Final = 8
_NAME = re.compile(r"([0-9]{8})-[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}\.json")
_PART = re.compile(rf"\.{_NAME.pattern}\.[0-9]+(-[0-9]+)?")


class KeptState(ClosedModel):
    """``values`` of all tunables that could be read, by name; ``written`` are those of them that the run writes, and
    that the kernel changes along.
    """

    version: Literal[1] = 1
    boot: str
    run: str
    kept: str
    values: dict[str, str]
    written: tuple[str, ...]


@dataclass(frozen=True)
class StateDifference:
    """``now`` is ``None`` where the value cannot be read any more. ``by_ajuste``: a run of this boot wrote it."""

    tunable: str
    before: str
    now: str | None
    by_ajuste: bool


@dataclass(frozen=True)
class Verification:
    """What is otherwise than before the run ``since``, of ``checked`` tunables."""

    since: KeptState
    checked: int
    differences: tuple[StateDifference, ...]


def kept_states(home: Home) -> Path:
    """Where they are."""
    return home.state / "before-runs"


def keep_state(home: Home, run: str, writes: Sequence[Write], target: Executor, catalogue: Catalogue) -> None:
    """Read all tunables of the machine that ``target`` is and keep their values, if ``run`` has none of this boot yet.

    Nothing may have been written. Raises OSError where it cannot be kept.
    """
    directory = kept_states(home)
    files = _files(directory)
    if any(kept.run == run for kept in _of_this_boot(files)):
        return
    values, places = _read(target, catalogue)
    completion = Completion(catalogue, KernelVersion.parse(target.hello.kernel))
    changed: set[Location] = set()
    for write in map(completion.completed, writes):
        changed.update((write.location, *write.companions))
    state = KeptState(
        boot=boot_id(),
        run=run,
        kept=datetime.now(UTC).isoformat(timespec="seconds"),
        values=values,
        written=tuple(name for name in values if places[name] in changed),
    )
    make_directory(directory)
    for part in [path for path in directory.iterdir() if _PART.fullmatch(path.name)]:
        part.unlink(missing_ok=True)  # of a process that was killed: only one has the machine
    number = int(files[-1].name[:8]) + 1 if files else 1
    replace_file(directory / f"{number:08}-{run}.json", state.model_dump_json().encode(), mode=0o600, on_disk=True)
    for old in _files(directory)[:-MOST_KEPT]:
        old.unlink(missing_ok=True)


def verify(home: Home, target: Executor, catalogue: Catalogue) -> Verification:
    """Compare the machine that ``target`` is with the state before the last run of this boot.

    Raises RequestError where there is none, RunError where none can be read.
    """
    files = _files(kept_states(home))
    if not files:
        raise RequestError(
            f"there is no state to compare with: no run of this home ({home.state}) has changed this machine",
            hint="run a study that writes tunables on this machine first; that saves the state",
        )
    kept = _of_this_boot(files)
    if not kept:
        if not any(map(_parsed, files)):
            raise RunError(f"cannot read the saved state: {files[-1]}")
        raise RequestError(
            "the saved state is from an earlier boot; the reboot has undone all changes",
            hint="compare again after the next run that writes tunables",
        )
    since = kept[-1]
    written = {name for one in kept for name in one.written}
    now, _ = _read(target, catalogue, list(since.values))
    return Verification(
        since,
        len(since.values),
        tuple(
            StateDifference(name, before, now.get(name), name in written)
            for name, before in since.values.items()
            if name not in now or not same_value(before, now[name])
        ),
    )


def keeper(home: Home, run: str, writes: Sequence[Write], catalogue: Catalogue) -> Callable[[Executor], None]:
    """``keep_state`` for a target that is still to be entered; nothing is kept of a run that writes nothing."""

    def keep(target: Executor) -> None:
        if writes:
            keep_state(home, run, writes, target, of_this_machine(catalogue))

    return keep


def _read(
    target: Executor, catalogue: Catalogue, names: Sequence[str] | None = None
) -> tuple[dict[str, str], dict[str, Location]]:
    """The values of the tunables that can be read, and where each is."""
    version = KernelVersion.parse(target.hello.kernel)
    tunables = _all(catalogue, version) if names is None else _named(catalogue, names)
    found = current_values(target, tunables)
    values = {name: one.value for name, one in found.items() if one.value is not None}
    places = {one.name: catalogue.locate(one, version) for one in tunables if one.name in values}
    return values, places  # type: ignore[return-value] # what has a value is a place of the machine


def _all(catalogue: Catalogue, version: KernelVersion) -> list[Tunable]:
    found = []
    for tunable in catalogue.tunables.values():
        if not tunable.parts:
            found.append(tunable)
        found += [catalogue.instance(tunable, one) for one in instances_here(catalogue, tunable, version)]
    return found


def _named(catalogue: Catalogue, names: Sequence[str]) -> list[Tunable]:
    found = []
    for name in names:
        try:
            found.append(catalogue.find_tunable(name))
        except RequestError:  # Of another version of Ajuste.
            continue
    return found


def _files(directory: Path) -> list[Path]:
    """Oldest first."""
    try:
        return sorted(path for path in directory.iterdir() if _NAME.fullmatch(path.name))
    except FileNotFoundError:
        return []


def _of_this_boot(files: Sequence[Path]) -> list[KeptState]:
    return [kept for kept in map(_parsed, files) if kept is not None and kept.boot == boot_id()]


def _parsed(path: Path) -> KeptState | None:
    try:
        return KeptState.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
