"""Placing of a profile's lines: tunables of the catalogue with levels, for one machine; and the lines left out.

Pure: what the machine has and what its values are is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ajuste.catalogue.level import OFF_WORDS, ON_WORDS
from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.profile.meanings import ENERGY_BIAS, LeftOutError, Unmapped, Wish
from ajuste.profile.profile import Profile, ProfileLine


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
                raise LeftOutError(now.problem or "cannot be read")
            level = _level(wish, now.value, catalogue, version)
        except LeftOutError as reason:
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
        raise LeftOutError("depends on the idle states of the machine's processor")
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
