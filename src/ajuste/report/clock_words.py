"""What the clock of a run means for its figures, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ajuste.model.results import Results

VIRTUAL: Final = (
    "Measured under the virtual clock: an emulated CPU whose time is the count of its instructions. The figures repeat "
    "to the last digit on any machine. They say what the kernel does, not how fast any hardware is."
)
EMULATED: Final = (
    "Measured on an emulated CPU (QEMU without hardware virtualisation) with the ordinary clock. Compare the "
    "configurations with each other; the figures are not the speed of any hardware."
)


def warnings_of(results: Results) -> tuple[str, ...]:
    """What a reader must know: of the clock, unless one of the notes says it already, then the notes."""
    if results.clock is None:
        return results.notes
    word, warning = ("virtual clock", VIRTUAL) if results.clock == "virtual" else ("emulated", EMULATED)
    needed = results.clock == "virtual" or _is_emulated(results.environment)
    said = any(word in note.lower() and "emulated" in note.lower() for note in results.notes)
    return (warning, *results.notes) if needed and not said else results.notes


def clock_name(results: Results) -> str:
    return "virtual clock" if results.clock == "virtual" else "wall clock"


def _is_emulated(environment: Mapping[str, Any]) -> bool:
    return any(
        "accelerator" in name.lower() and value.strip().lower().startswith("tcg") for name, value in _texts(environment)
    )


def _texts(mapping: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _texts(value)
        else:
            yield str(name), str(value)
