"""Placing of a profile's lines: tunables of the catalogue with levels, for one machine; and the lines left out.

Pure: what the machine has and what its values are is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from ajuste.catalogue.level import OFF_WORDS, ON_WORDS
from ajuste.catalogue.loader import Catalogue
from ajuste.catalogue.place import sysctl_path
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.model.tunable import Tunable
from ajuste.profile.profile import ENERGY_BIAS, NOT_SETTINGS, OPTIONS, PAIRED, Profile, ProfileLine, paired_tunable

# Block devices that tuned leaves alone.
_NO_DISK: Final = re.compile(r"(dm-|fd|loop|md|nbd|ram|sr|zram)\d")

Instances = Callable[[Tunable], Sequence[str]]
"""A function from a tunable to its instances on the machine: ``sda``, ``cpu0``."""


@dataclass(frozen=True)
class Wish:
    """A tunable that ``line`` sets, with what it says of the value."""

    line: ProfileLine
    tunable: Tunable
    text: str


@dataclass(frozen=True)
class Unmapped:
    """A line that is left out, with the reason: it completes a sentence that begins with the line."""

    line: ProfileLine
    reason: str


@dataclass(frozen=True)
class PlacedSetting:
    """The setting of one line: ``levels`` by the tunable's name. ``now`` are the present values, where known."""

    line: ProfileLine
    levels: Mapping[str, str]
    now: Mapping[str, str]


@dataclass(frozen=True)
class Placed:
    """``settings`` change something. ``unchanged`` are those that are so already, ``unmapped`` what is omitted."""

    profile: Profile
    settings: tuple[PlacedSetting, ...]
    unchanged: tuple[PlacedSetting, ...]
    unmapped: tuple[Unmapped, ...]

    def without(self, idle: Mapping[str, str], names: Sequence[str]) -> Placed:
        """Return it without the lines that are ``idle`` for a reason; ``names`` are those of the settings, in order."""
        pairs = list(zip(self.settings, names, strict=True))
        left = (Unmapped(setting.line, idle[name]) for setting, name in pairs if name in idle)
        active = tuple(setting for setting, name in pairs if name not in idle)
        return replace(self, settings=active, unmapped=(*self.unmapped, *left))


@dataclass(frozen=True)
class PlacedProfile:
    """A value that was read, or the ``problem``."""

    value: str | None
    problem: str = ""


def wishes(
    profile: Profile, catalogue: Catalogue, version: KernelVersion, instances: Instances
) -> tuple[list[Wish], list[Unmapped]]:
    """Return the tunables of a kernel of ``version`` that the lines mean, and the lines that mean none."""
    wanted: list[Wish] = []
    unmapped: list[Unmapped] = []
    for line in profile.lines:
        try:
            wanted += _of_line(line, catalogue, version, instances)
        except _Left as left:
            unmapped.append(Unmapped(line, str(left)))
    return wanted, unmapped


def place(
    profile: Profile,
    wanted: Sequence[Wish],
    unmapped: Sequence[Unmapped],
    read: Mapping[str, PlacedProfile],
    catalogue: Catalogue,
    version: KernelVersion,
) -> Placed:
    """Place the wishes on a machine whose values are as ``read``, in the order of the lines. Raises RequestError with
    file and line for an invalid value.
    """
    settings: dict[ProfileLine, PlacedSetting] = {}
    left = list(unmapped)
    for wish in wanted:
        name, line = wish.tunable.name, wish.line
        now = read.get(name, PlacedProfile(None, "was not read"))
        try:
            if now.value is None:
                raise _Left(now.problem or "cannot be read")
            level = _level(wish, now.value, catalogue, version)
        except _Left as reason:
            left.append(Unmapped(line, str(reason)))
            continue
        before = settings.get(line, PlacedSetting(line, {}, {}))
        if level is not None:
            settings[line] = PlacedSetting(line, {**before.levels, name: level}, {**before.now, name: now.value})
    settings = _last_settings(settings)
    same = {
        line
        for line, setting in settings.items()
        if all(level.split() == setting.now[name].split() for name, level in setting.levels.items())
    }
    order = {line: place for place, line in enumerate(profile.lines)}
    lines = sorted(settings, key=order.__getitem__)
    return Placed(
        profile,
        tuple(settings[line] for line in lines if line not in same),
        tuple(settings[line] for line in lines if line in same),
        tuple(sorted(dict.fromkeys(left), key=lambda setting: order[setting.line])),
    )


def _last_settings(settings: Mapping[ProfileLine, PlacedSetting]) -> dict[ProfileLine, PlacedSetting]:
    # Two lines may set the same tunable: the later one holds, as it would be written last.
    owner = {name: line for line, setting in settings.items() for name in setting.levels}
    last = {}
    for line, setting in settings.items():
        levels = {name: level for name, level in setting.levels.items() if owner[name] == line}
        if levels:
            last[line] = PlacedSetting(line, levels, {name: setting.now[name] for name in levels})
    return last


class _Left(Exception):
    """The reason why a line is left out."""


def _of_line(line: ProfileLine, catalogue: Catalogue, version: KernelVersion, instances: Instances) -> Iterator[Wish]:
    if line.unless:
        raise _Left(line.unless)
    if line.plugin in NOT_SETTINGS:
        raise _Left(NOT_SETTINGS[line.plugin])
    if line.plugin in ("sysctl", "sysfs"):
        yield from _of_place(line, catalogue, version, instances)
        return
    if line.plugin == "net" and line.option in PAIRED:
        yield from _of_pairs(line, catalogue, version, instances)
        return
    name = OPTIONS.get((line.plugin, line.option))
    if name is None or name not in catalogue.tunables:
        raise _Left("is not in the catalogue")
    for tunable in _instances(line, catalogue.tunables[name], catalogue, version, instances):
        yield Wish(line, tunable, line.value)


def _of_place(line: ProfileLine, catalogue: Catalogue, version: KernelVersion, instances: Instances) -> Iterator[Wish]:
    # A sysctl by its name, or a file of sysfs by a path that may be a pattern.
    path = sysctl_path(line.option) if line.plugin == "sysctl" else line.option
    if any(c in path for c in "*?["):
        yield from _of_pattern(line, path, catalogue, version, instances)
        return
    try:
        tunable = catalogue.find_tunable(path)
    except RequestError:
        raise _Left("is not in the catalogue") from None
    where = _tunable_path(tunable, catalogue, version)
    if where != path:
        raise _Left(f"is not supported by Linux {version}, where {tunable.name} is at {where}")
    yield Wish(line, tunable, line.value)


def _of_pattern(
    line: ProfileLine, pattern: str, catalogue: Catalogue, version: KernelVersion, instances: Instances
) -> Iterator[Wish]:
    is_known = False
    for entry in catalogue.tunables.values():
        where = entry.place_in(version)
        if where is None or not _may_match(where.path, pattern):
            continue
        for tunable in [catalogue.instance(entry, which) for which in instances(entry)] if entry.parts else [entry]:
            location = tunable.place_in(version)
            if location and fnmatchcase(location.path, pattern):
                is_known = True
                yield Wish(line, tunable, line.value)
    if not is_known:
        raise _Left("matches no catalogue setting of this machine")


def _may_match(template: str, pattern: str) -> bool:
    parts, wanted = template.split("/"), pattern.split("/")
    both = zip(parts, wanted, strict=False)
    return len(parts) == len(wanted) and all("{" in part or fnmatchcase(part, other) for part, other in both)


def _of_pairs(line: ProfileLine, catalogue: Catalogue, version: KernelVersion, instances: Instances) -> Iterator[Wish]:
    words = line.value.replace(",", " ").split()
    if len(words) % 2:
        raise RequestError(f"{line.words}: expected pairs of a name and a value", place=line.place)
    for word, value in zip(words[::2], words[1::2], strict=True):
        name = paired_tunable(line.option, word, catalogue.tunables)
        if name is None:
            raise _Left(f"has {word}, which is not in the catalogue")
        for tunable in _instances(line, catalogue.tunables[name], catalogue, version, instances):
            yield Wish(line, tunable, value)


def _instances(
    line: ProfileLine, tunable: Tunable, catalogue: Catalogue, version: KernelVersion, instances: Instances
) -> Iterator[Tunable]:
    _tunable_path(tunable, catalogue, version)
    if not tunable.parts:
        yield tunable
        return
    there = [which for which in instances(tunable) if line.plugin != "disk" or not _NO_DISK.match(which)]
    chosen = [which for which in there if _is_for(line.devices, which.partition("/")[0])]
    if not chosen:
        kind = " of a ".join(catalogue.parts[part].title for part in reversed(tunable.parts))
        other = f", but for {line.devices}" if there else ""
        raise _Left(f"has no effect: no {kind} of this machine has {tunable.name}{other}")
    for which in chosen:
        yield catalogue.instance(tunable, which)


def _is_for(devices: str, name: str) -> bool:
    patterns = re.split(r"\s*[,;\s]\s*", devices.strip()) or ["*"]
    without = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    chosen = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    return any(fnmatchcase(name, wildcard) for wildcard in chosen) and not any(
        fnmatchcase(name, wildcard) for wildcard in without
    )


def _tunable_path(tunable: Tunable, catalogue: Catalogue, version: KernelVersion) -> str:
    where = tunable.place_in(version)
    if where is not None:
        return where.path
    try:
        catalogue.locate(tunable, version)
    except RequestError as failure:
        raise _Left(f"is not supported by this kernel: {failure.message}") from None
    return ""


def _level(wish: Wish, now: str, catalogue: Catalogue, version: KernelVersion) -> str | None:
    text = _compared(wish, now)
    if text is None:
        return now if wish.tunable.type == "integer" else None
    problem: RequestError | None = None
    for choice in _choices(wish, text, now):
        try:
            return catalogue.check_level(wish.tunable, choice, version)
        except RequestError as failure:
            problem = problem or failure
    if problem is None:
        raise _Left("depends on the idle states of the machine's processor")
    raise RequestError(f"{wish.line.words}: {problem.message}", hint=problem.hint, place=wish.line.place)


def _compared(wish: Wish, now: str) -> str | None:
    text = wish.text.strip()
    match = re.fullmatch(r"([<>])\s*(-?[0-9]+)( *s.*)?", text)
    if not match:
        return text
    wanted = int(_kib(match[2] + (match[3] or "")) if wish.tunable.entry == "block.read_ahead_kb" else match[2])
    try:
        there = int(now)
    except ValueError:
        return str(wanted)
    return str(wanted) if (wanted > there if match[1] == ">" else wanted < there) else None


def _choices(wish: Wish, text: str, now: str) -> list[str]:
    # What may be meant, best first: tuned takes the first of `performance|powersave` that there is.
    line = wish.line
    if line.option == "readahead_multiply":
        return [str(int(float(text) * int(now)))] if re.fullmatch(r"[0-9.]+", text) else [text]
    if wish.tunable.entry == "block.read_ahead_kb":
        return [_kib(text)]
    if line.option == "force_latency":
        return [choice for choice in text.split("|") if re.fullmatch(r"[0-9]+", choice)]
    if line.plugin == "cpu":
        return [
            ENERGY_BIAS.get(wanted, wanted) if wish.tunable.entry == "cpu.energy_perf_bias" else wanted
            for wanted in text.split("|")
        ]
    if wish.tunable.type == "boolean" and text.lower() in OFF_WORDS | ON_WORDS:
        return ["1" if text.lower() in ON_WORDS else "0"]
    return [text]


def _kib(text: str) -> str:
    number, _, unit = text.strip().partition(" ")
    return str(int(number) // 2) if unit.strip().startswith("s") and number.isdigit() else number


# What a profile came to, in words.


def profile_notes(placed: Sequence[Placed]) -> tuple[str, ...]:
    """Return for each profile its source, what it sets, what holds already, and what is omitted and why."""
    return tuple(note for profile in placed for note in _notes(profile))


def _notes(placed: Placed) -> list[str]:
    name = placed.profile.name
    sets = "; ".join(map(setting_words, placed.settings)) or "nothing"
    notes = [f"The profile {name}, from {placed.profile.origin}, sets here: {sets}."]
    if placed.unchanged:
        same = "; ".join(setting.line.words for setting in placed.unchanged)
        notes.append(f"Lines of {name} that are already in effect: {same}.")
    if placed.unmapped:
        left = "; ".join(f"{setting.line.words} ({setting.reason.rstrip('.')})" for setting in placed.unmapped)
        notes.append(f"Lines of {name} that are left out: {left}.")
    return notes


def setting_words(setting: PlacedSetting) -> str:
    """Return ``vm.swappiness = 10 (was 60)``, or the number of several tunables."""
    line = setting.line
    if len(setting.levels) != 1:
        return f"{line.words} ({len(setting.levels)} places)"
    ((name, level),) = setting.levels.items()
    now = " ".join(setting.now[name].split())
    return f"{line.name} = {level} (was {now})"
