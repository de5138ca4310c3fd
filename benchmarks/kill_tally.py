"""Outcomes of experiments whose processes were killed: counted, and as a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import chain, combinations

PARTS = {
    "compare": ("agent", "guardian", "orchestrator"),
    "daemons": ("agent", "guardian", "orchestrator"),
    "live": ("agent", "guardian", "watch", "orchestrator"),
    "servers": ("agent", "guardian", "watch", "orchestrator"),
}
"""The processes of each command."""
NOBODY = "nobody"
"""Name of the kills in which only the disk was spoiled."""


def subsets(command: str) -> tuple[tuple[str, ...], ...]:
    """Return each part alone, and each set of them together."""
    parts = PARTS[command]
    return tuple(chain.from_iterable(combinations(parts, size) for size in range(1, len(parts) + 1)))


@dataclass
class Tally:
    """Outcomes of the kills of one kind. All but the first four must be 0."""

    kills: int = 0
    faults: int = 0
    """Number of times that the disk was spoiled before."""
    caught_changed: int = 0
    """Number of times that values were still changed when all who were killed were dead."""
    restored_by_hand: int = 0
    """Number of times that `ajuste restore` was needed."""
    values_left: int = 0
    journals_lost: int = 0
    journals_left: int = 0
    processes_left: int = 0
    wrong_ends: int = 0


@dataclass
class Outcome:
    """``trials_lost`` and ``trials_doubled`` are of all ``studies`` that were taken to their ends."""

    tallies: dict[str, Tally]
    studies: int = 0
    trials: int = 0
    trials_lost: int = 0
    trials_doubled: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(tally.kills for tally in self.tallies.values())

    @property
    def clean(self) -> bool:
        tallies = self.tallies.values()
        bad = (t.values_left + t.journals_lost + t.journals_left + t.processes_left + t.wrong_ends for t in tallies)
        return not any(bad) and not self.trials_lost and not self.trials_doubled and self.studies > 0


def table(outcome: Outcome) -> str:
    columns = ("killed", *(name.replace("_", " ") for name in Tally.__dataclass_fields__))
    rows = [(parts, *asdict(tally).values()) for parts, tally in outcome.tallies.items()]
    sums = (
        "all",
        *(sum(column) for column in zip(*(asdict(t).values() for t in outcome.tallies.values()), strict=True)),
    )
    lines = [f"| {' | '.join(map(str, row))} |" for row in (columns, ["---"] * len(columns), *rows, sums)]
    trials = (
        f"{outcome.studies} studies, {outcome.trials} trials, {outcome.trials_lost} lost, "
        f"{outcome.trials_doubled} doubled"
    )
    return "\n".join([*lines, "", trials, *outcome.notes, "clean" if outcome.clean else "NOT CLEAN"])
