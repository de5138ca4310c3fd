"""What a profile came to, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.profile.placing import Placed, Setting


def notes_of(placed: Sequence[Placed]) -> tuple[str, ...]:
    """For each profile where it is from and what it sets, what is so already, and what is left out and why."""
    return tuple(note for one in placed for note in _notes(one))


def _notes(placed: Placed) -> list[str]:
    name = placed.profile.name
    sets = "; ".join(map(setting_words, placed.settings)) or "nothing"
    notes = [f"The profile {name}, from {placed.profile.origin}, sets here: {sets}."]
    if placed.unchanged:
        same = "; ".join(one.line.words for one in placed.unchanged)
        notes.append(f"Lines of {name} that change nothing, as it is so already: {same}.")
    if placed.unmapped:
        left = "; ".join(f"{one.line.words} ({one.reason.rstrip('.')})" for one in placed.unmapped)
        notes.append(f"Lines of {name} that are left out: {left}.")
    return notes


def setting_words(setting: Setting) -> str:
    """``vm.swappiness = 10 (was 60)``; of several tunables how many there are."""
    line = setting.line
    if len(setting.levels) != 1:
        return f"{line.words} ({len(setting.levels)} places)"
    ((name, level),) = setting.levels.items()
    now = " ".join(setting.now[name].split())
    return f"{line.name} = {level} (was {now})"
