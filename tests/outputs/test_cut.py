"""Cuts of output that is long, or no text: only a part is kept, and the rest is counted; it is read whole."""

from __future__ import annotations

import hashlib
import json

import pytest

from ajuste.model.event import Output, parse_event
from ajuste.model.plan import Command, Plan
from ajuste.model.trial import Observation, Slot
from ajuste.outputs.pattern import Pattern
from ajuste.outputs.trial_status import LONGEST_OTHER, LONGEST_TEXT, TrialReading, trial
from played import said_of

PLAN = Plan(id="b0p0", workload=Command(argv=("job",)))
SLOT = Slot(block=0, position=0, configuration="-", seed=1)
MATCHES = (Pattern(metric="rate", pattern="rate ([0-9]+)", stream="stdout"),)


def stored(text: str, *, keep_output: bool = False) -> tuple[Output, str, dict[str, float]]:
    """Return what the store gets of a workload that printed ``text``: the event, all lines, and the metrics."""
    events = [parse_event(line) for line in said_of(PLAN.id).splitlines()]
    printed = Output(at_ns=1, role="workload", index=0, stream="stdout", text=text)
    events = [*events[:-1], printed, events[-1].model_copy(update={"events": len(events)})]
    lines = "".join(f"{event.model_dump_json()}\n" for event in events)
    reading = TrialReading(patterns=MATCHES, keep_output=keep_output)
    judged = trial(SLOT, 0, PLAN, Observation(lines=lines, events=tuple(events)), reading)
    outputs = [parse_event(line) for line in judged.events.splitlines() if '"output"' in line]
    (output,) = [event for event in outputs if isinstance(event, Output)]
    return output, judged.events, judged.metrics


def test_a_long_text_keeps_both_ends_and_is_read_whole() -> None:
    text = "begin\n" + "x" * 100_000 + "\nrate 7\n" + "y" * 100_000 + "\nend\n"
    output, _, metrics = stored(text)
    assert metrics["rate"] == 7, "the reader sees what is not kept"
    assert output.text.startswith("begin\nxxx")
    assert output.text.endswith("yyy\nend\n")
    assert output.dropped_bytes == len(text) - LONGEST_TEXT
    whole = hashlib.sha256(text.encode()).hexdigest()
    assert f"[{output.dropped_bytes:,} bytes left out; SHA-256 of what was read: {whole}]" in output.text


@pytest.mark.parametrize("text", ["\ufffd\x01{}" * 5000 + "rate 7", "plain" * 1000 + "\0"])
def test_of_what_is_no_text_only_the_beginning_is_kept(text: str) -> None:
    output, lines, _ = stored(text)
    assert output.text.startswith(text[:LONGEST_OTHER] + "\n[")
    assert output.dropped_bytes == len(text) - LONGEST_OTHER, "what is no UTF-8 counts one byte each"
    assert len(lines) < 12_000


@pytest.mark.parametrize(
    "text", ["", "rate 7\n" * 5000, "caf\ufffd " * 3 + "latin-1 in a log\n" * 200, "\x1b[31mred\n" * 500]
)
def test_ordinary_output_is_kept_as_it_was(text: str) -> None:
    output, _, _ = stored(text)
    assert (output.text, output.dropped_bytes) == (text, 0)


def test_all_is_kept_where_that_is_wanted() -> None:
    text = "\0" * 300_000
    output, _, _ = stored(text, keep_output=True)
    assert (output.text, output.dropped_bytes) == (text, 0)


def test_output_that_differs_only_where_it_was_cut_has_another_digest() -> None:
    with_b, with_c = ("a" * 100_000 + letter + "a" * 100_000 for letter in "bc")
    first, second = stored(with_b)[1], stored(with_c)[1]
    assert first != second
    assert len(json.dumps(first)) < 80_000
