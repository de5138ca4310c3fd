"""How the workload of a trial ended, and what it said last: from the agent's lines as they were kept."""

from __future__ import annotations

from ajuste.model.event import Exited, Output, parse_event
from ajuste.model.trial import Trial

LAST_LINES = 3
LONGEST = 200
"""Characters of a line that are shown."""


def is_broken(trial: Trial) -> bool:
    """Whether nothing was measured, or the workload itself failed: it exited with another code than 0 or was killed,
    but not at its time limit.
    """
    if trial.status != "flagged":
        return trial.status == "failed"
    ends = [e for e in _events(trial) if isinstance(e, Exited) and e.role == "workload" and not e.timed_out]
    return any(end.signal is not None or bool(end.exit_code) for end in ends)


def last_words(trial: Trial) -> str:
    """The last lines that the workload wrote, its complaints before its output; empty if it said nothing."""
    said = {"stderr": "", "stdout": ""}
    for event in _events(trial):
        if isinstance(event, Output) and event.role == "workload":
            said[event.stream] += event.text
    text = said["stderr"].strip() or said["stdout"].strip()
    lines = [line.strip() for line in text.splitlines()[-LAST_LINES:]]
    return " / ".join(line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines)


def _events(trial: Trial) -> list[object]:
    return [parse_event(line.encode()) for line in trial.events.split("\n") if line]
