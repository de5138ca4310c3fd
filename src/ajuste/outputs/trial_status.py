"""The status of a trial, from the agent's events: its metrics, and whether it is clean, flagged or failed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ajuste.model.error import Place, RequestError
from ajuste.model.event import (
    Accepted,
    Counter,
    End,
    EventsByKind,
    Exited,
    Failed,
    Loaded,
    Output,
    Paused,
    Restored,
    Started,
    Written,
    parse_event,
)
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation, Slot, Status, Trial
from ajuste.model.tunable import same_value
from ajuste.outputs.base import ParseError, base_metrics, exact_metrics, shares
from ajuste.outputs.format import require_computable
from ajuste.outputs.pattern import SECONDS, Pattern, Pointer, lines_with, pointed, search
from ajuste.outputs.programs import parser
from ajuste.outputs.services import is_report, service_notes, service_problem, service_values, with_advice
from ajuste.outputs.timeline_metrics import Timeline, measure_all

# What the program that loads schedulers complains of; that Ajuste runs it says nothing to a reader.
_OWN_COMPLAINT: Final = re.compile(r"\S*ajuste-workloads ended with exit code [0-9]+: ajuste-workloads: (?P<what>.+)")

# What is kept of what programs print in a trial: of a long text both ends, of what is no text the beginning.


EXITED: Final = "the workload exited with code"
LONGEST_TEXT: Final = 1 << 16
"""Characters of a stream that are kept: half of them of its beginning, half of its end."""
LONGEST_OTHER: Final = 1 << 10
"""Characters that are kept of a stream which is no text."""
_REPLACED: Final = "\ufffd"
_CONTROLS: Final = dict.fromkeys(set(range(32)) - set(map(ord, "\a\b\t\n\v\f\r\x1b")), _REPLACED)
# From so many of its characters on that are no text, a stream is none.
_OTHER_SHARE: Final = 0.05

_PAUSED: Mapping[str, str] = {
    "agent": "Ajuste was stopped",
    "workload": "the workload was stopped from outside",
    "background": "the background load was stopped from outside",
    "machine": "the machine slept",
}

BACKGROUND_END = 9
"""The signal that ends the background load after the workload."""

LARGEST = 2**64
"""A limit that no figure of the kernel reaches."""

NOTHING_KNOWN: Mapping[str, str] = {}
LAST_LINES = 3

LONGEST = 200
"""Characters of a line that are shown."""


def cut_lines(lines: str) -> str:
    """The agent's ``lines`` without output that is too long to keep.

    The rest is counted in its event, and its place has the SHA-256 of the whole: so a digest of the lines is
    still one of all that was printed.
    """
    if len(lines) <= LONGEST_OTHER:
        return lines
    return "\n".join(_cut_line(line) if len(line) > LONGEST_OTHER else line for line in lines.split("\n"))


def _cut_line(line: str) -> str:
    event = parse_event(line)
    if not isinstance(event, Output) or (shorter := cut(event)) is event:
        return line
    return json.dumps(shorter.model_dump(), separators=(",", ":"))


def cut(output: Output) -> Output:
    """Return the output with the rest counted in ``dropped_bytes``: each byte that is not UTF-8 as one."""
    text, longest = output.text, LONGEST_TEXT
    if len(text) > LONGEST_OTHER:
        is_other = "\0" in text or text.translate(_CONTROLS).count(_REPLACED) > _OTHER_SHARE * len(text)
        longest = LONGEST_OTHER if is_other else LONGEST_TEXT
    if len(text) <= longest:
        return output
    end = longest // 2 if longest == LONGEST_TEXT else 0
    begin = longest - end
    left_out = len(text[begin : len(text) - end].replace(_REPLACED, "?").encode(errors="surrogatepass"))
    whole = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    dropped = output.dropped_bytes + left_out
    mark = f"\n[{dropped:,} bytes left out; SHA-256 of what was read: {whole}]\n"
    shortened = text[:begin] + mark + (text[-end:] if end else "")
    return output.model_copy(update={"text": shortened, "dropped_bytes": dropped})


@dataclass(frozen=True)
class TrialReading:
    """The way to read the outputs of a workload: by the parser of that name, by patterns and pointers, or not at all;
    ``timelines`` are taken from what samplers read.

    ``endless`` tells of each background command whether it must run until it is killed, ``shares_of`` the number of its
    load, if the shares of the CPU are wanted. ``any_exit``: it does not matter how the workload ended, as long as it
    did so by itself. ``keep_output``: all that was printed is kept, however long. ``console_failure`` is a pattern of
    lines that the kernel must not print. ``services`` are the names of those that the trial has. ``rounded`` are the
    tunables of which whatever the kernel makes of a value is taken as the value.
    """

    parser: str = ""
    patterns: tuple[Pattern, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    timelines: tuple[Timeline, ...] = ()
    endless: tuple[bool, ...] = ()
    shares_of: tuple[int, ...] | None = None
    any_exit: bool = False
    keep_output: bool = False
    console_failure: str = ""
    services: tuple[str, ...] = ()
    rounded: frozenset[str] = frozenset()


@dataclass
class _Findings:
    # What was found so far. `failed`: why nothing was measured; `flagged`: why it was not measured cleanly.
    failed: list[str] = field(default_factory=list)
    flagged: list[str] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    not_supported: dict[str, str] = field(default_factory=dict)
    noted: list[str] = field(default_factory=list)

    @property
    def status(self) -> Status:
        return "failed" if self.failed else "flagged" if self.flagged else "ok"


def trial(
    slot: Slot,
    attempt: int,
    plan: Plan,
    observation: Observation,
    reading: TrialReading,
    *,
    started: str = "",
    earlier: Mapping[str, str] = NOTHING_KNOWN,
) -> Trial:
    """The trial that ``observation`` tells of; never raises for anything in it. ``earlier`` are the values that
    tunables had before the trial before this one.

    *failed* (no metrics): the stream has a problem, the plan could not be carried out, a service did not start or died,
    or the workload never ended.
    *flagged* (metrics are kept, and left out of the verdict): a value was not read back as written, the workload
    exited with another code than 0 or was killed or stopped, its output was not understood, a timeline could not be
    taken from what was read, a background load had not settled or ended early, somebody else changed a tunable,
    somebody or the machine was stopped meanwhile, or the machine did unusually much else.
    """
    findings = _Findings()
    kinds = EventsByKind(observation.events)
    ends = [event for event in kinds.of(Exited) if event.role == "workload"]
    exited = ends[0] if len(ends) == 1 else None
    if problem := observation.problem or (service_problem(observation.events) if reading.services else ""):
        findings.failed.append(with_advice(problem) if reading.services else problem)
    else:
        _check_stream(plan, kinds, exited, findings)
        if reading.console_failure:
            _check_console(observation.console, reading.console_failure, findings)
        if exited is not None and not findings.failed:
            _measure(observation, kinds, exited, findings)
    written = tuple(kinds.of(Written))
    if exited is not None and not findings.failed:
        _check_writes(plan, written, reading.rounded, findings)
        _check_others(written, kinds, earlier, findings)
        findings.flagged.extend(observation.disturbances)
        _check_exit(exited, reading.any_exit, findings)
        _check_background(kinds, reading.endless, findings)
        _read_output(kinds, reading, findings)
        measured = measure_all(reading.timelines, observation.events)
        findings.metrics.update(measured.metrics)
        findings.not_supported.update(measured.not_supported)
        findings.flagged.extend(measured.flagged)
        if reading.shares_of is not None:
            findings.metrics.update(shares(kinds.of(Exited), kinds.of(Loaded), reading.shares_of))
        if reading.services:
            findings.metrics.update(service_values(observation.events))
            findings.noted.extend(service_notes(observation.events))
    return Trial(
        slot=slot,
        attempt=attempt,
        status=findings.status,
        reason="; ".join(findings.failed or findings.flagged or findings.noted),
        metrics=findings.metrics,
        not_supported=findings.not_supported,
        written=written,
        events=observation.lines if reading.keep_output else cut_lines(observation.lines),
        console=observation.console,
        started=started,
        host_seconds=observation.host_seconds,
    )


def _check_stream(plan: Plan, kinds: EventsByKind, exited: Exited | None, findings: _Findings) -> None:
    failures = kinds.of(Failed)
    if any(failure.stage == "before" for failure in failures):  # That none can be ended follows from it.
        failures = [failure for failure in failures if not failure.message.endswith(": no scheduler was loaded")]
    for failure in failures:
        about = f" {failure.tunable}" if failure.tunable else ""
        complaint = _OWN_COMPLAINT.fullmatch(failure.message)
        findings.failed.append(complaint["what"] if complaint else f"{failure.stage}{about}: {failure.message}")
    if findings.failed:
        return
    identities = {*(event.id for event in kinds.of(Accepted)), *(event.id for event in kinds.of(End))}
    if identities != {plan.id}:
        findings.failed.append(f"the events are of {', '.join(sorted(identities)) or 'no plan'}, not of {plan.id}")
    elif not any(event.ok for event in kinds.of(End)):
        findings.failed.append("the agent reported a failure without a reason")
    elif exited is None:
        findings.failed.append("the agent did not say how the workload ended")


def _check_console(console: str, pattern: str, findings: _Findings) -> None:
    try:
        matches = lines_with(console.splitlines(), pattern, SECONDS)
    except ParseError as failure:
        findings.failed.append(f"the console was not searched: {failure.message}")
        return
    if matches:
        findings.failed.append(f"the kernel printed: {matches[0][:LONGEST].strip()}")


def _measure(observation: Observation, kinds: EventsByKind, exited: Exited, findings: _Findings) -> None:
    counters = kinds.of(Counter)
    figures = [value for event in (exited, *counters) for value in vars(event).values() if type(value) is int]
    if not all(0 <= value < LARGEST for value in figures):
        findings.failed.append("the agent reported figures that no 64-bit machine can have")
        return
    findings.metrics, findings.not_supported = base_metrics(exited, counters)
    if observation.costs is not None:
        exact = exact_metrics(observation.costs)
        findings.metrics |= exact
        findings.not_supported = {name: why for name, why in findings.not_supported.items() if name not in exact}


def _check_writes(plan: Plan, written: Sequence[Written], rounded: Collection[str], findings: _Findings) -> None:
    by_tunable = {event.tunable: event for event in written}
    for write in plan.writes:
        event = by_tunable.get(write.tunable)
        if event is None:
            findings.flagged.append(f"{write.tunable} was not written")
        elif event.asked != write.value:
            findings.flagged.append(f"{write.tunable}: {event.asked} was written instead of {write.value}")
        elif not same_value(event.after, write.value) and write.tunable not in rounded:
            findings.flagged.append(f"{write.tunable}: {write.value} was written and {event.after} read back")


def _check_others(
    written: Sequence[Written], kinds: EventsByKind, earlier: Mapping[str, str], findings: _Findings
) -> None:
    restored = {event.tunable: event.found for event in kinds.of(Restored)}
    for event in written:
        name = event.tunable
        if name in restored and not same_value(restored[name], event.after):
            findings.flagged.append(f"{name} was changed by someone else during the trial ({restored[name]})")
        if name in earlier and not same_value(earlier[name], event.before):
            findings.flagged.append(
                f"{name} was changed by someone else before the trial (from {earlier[name]} to {event.before})"
            )
    for pause in kinds.of(Paused):
        findings.flagged.append(f"{_PAUSED[pause.who]} for up to {pause.paused_ns / 1e9:.3g} s during the trial")


def _check_exit(exited: Exited, any_exit: bool, findings: _Findings) -> None:
    if exited.timed_out:
        findings.flagged.append("the workload was stopped at its time limit")
    elif any_exit:
        return
    elif exited.signal is not None:
        findings.flagged.append(f"the workload was killed by signal {exited.signal}")
    elif exited.exit_code:
        findings.flagged.append(f"{EXITED} {exited.exit_code}")


def _check_background(kinds: EventsByKind, endless: Sequence[bool], findings: _Findings) -> None:
    # Each load that was started must run until it is killed, or end well if it may end at all.
    ends = {event.index: event for event in kinds.of(Exited) if event.role == "background"}
    started = {event.index for event in kinds.of(Started) if event.role == "background"}
    if any(not event.settled for event in kinds.of(Loaded)):
        findings.flagged.append("the background load had not settled when the workload started")
    for index in sorted(started | set(range(len(endless)))):
        name = f"background load {index + 1}"
        end = ends.get(index)
        if index not in started or end is None:
            findings.flagged.append(f"{name} did not run")
        elif end.signal is not None and end.signal != BACKGROUND_END:
            findings.flagged.append(f"{name} was killed by signal {end.signal}")
        elif end.exit_code:
            findings.flagged.append(f"{name} exited with code {end.exit_code}")
        elif end.exit_code == 0 and index < len(endless) and endless[index]:
            findings.flagged.append(f"{name} ended before the workload")


def _read_output(kinds: EventsByKind, reading: TrialReading, findings: _Findings) -> None:
    streams = {"stdout": "", "stderr": ""}
    dropped = 0
    for event in kinds.of(Output):
        if event.role == "workload":
            streams[event.stream] += event.text
            dropped += event.dropped_bytes
    readers: list[Callable[[], dict[str, float]]] = []
    if reading.parser:
        readers.append(lambda: parser(reading.parser)(streams["stdout"]))
    if reading.patterns:
        readers.append(lambda: search(reading.patterns, streams))
    if reading.pointers:
        readers.append(lambda: pointed(reading.pointers, streams))
    for read in readers:
        try:
            metrics = read()
            for name, value in metrics.items():
                require_computable(value, f'"{name}"', Place("output"))
        except (ParseError, RequestError) as failure:
            cut = f" ({dropped} bytes of output were dropped)" if dropped else ""
            findings.flagged.append(failure.message + cut)
            continue
        findings.metrics.update(metrics)


# How the workload of a trial ended, and its last output: from the stored lines of the agent.


def is_broken(trial: Trial) -> bool:
    """Return whether nothing was measured, or the workload itself failed: it exited with another code than 0 or was
    killed, but not at its time limit.
    """
    if trial.status != "flagged":
        return trial.status == "failed"
    ends = [e for e in _events(trial) if isinstance(e, Exited) and e.role == "workload" and not e.timed_out]
    return any(end.signal is not None or bool(end.exit_code) for end in ends)


def why_lost(trial: Trial) -> str:
    """Return why a trial says nothing, with the last words of its command."""
    why = trial.reason or "; ".join(f"{name}: {reason}" for name, reason in trial.not_supported.items())
    return with_last_words(why, _events(trial))


def with_last_words(why: str, events: Iterable[object]) -> str:
    """Return ``why`` something failed, and the last lines that the workload, or else the last command before or after
    it, wrote: its complaints, or else its output.
    """
    streams: dict[tuple[bool, int], dict[str, str]] = {}
    for event in events:
        if isinstance(event, Output) and event.role != "background" and event.text.strip() and not is_report(event):
            streams.setdefault((event.role == "workload", event.index), {})[event.stream] = event.text.strip()
    if not streams:
        return why
    last = streams[max(streams)]
    lines = [line.strip() for line in (last.get("stderr") or last["stdout"]).splitlines()[-LAST_LINES:]]
    if len(lines) == 1 and lines[0] in why:  # The agent has reported it already.
        return why
    excerpts = (line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines)
    return f"{why}; last output: {' / '.join(excerpts)}"


def _events(trial: Trial) -> list[object]:
    return [parse_event(line.encode()) for line in trial.events.split("\n") if line]
