"""Placing of a profile's lines: tunables of the catalogue with levels, for one machine; and the lines left out.

Pure: what the machine has and what its values are is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ajuste.catalogue.level import OFF_WORDS, ON_WORDS
from ajuste.catalogue.loader import Catalogue
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste.study.profile import Placed, PlacedSetting, Profile, ProfileLine, Unmapped
from ajuste_profiles.meanings import ENERGY_BIAS, LeftOutError, Wish


@dataclass(frozen=True)
class Reading:
    """A value that was read, or the ``problem``."""

    value: str | None
    problem: str = ""


def place(
    profile: Profile,
    wanted: Sequence[Wish],
    unmapped: Sequence[Unmapped],
    read: Mapping[str, Reading],
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
        now = read.get(name, Reading(None, "was not read"))
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
