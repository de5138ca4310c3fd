"""The parser of an agent's output, which trusts nothing: the guest may be broken, cut off or hostile."""

from __future__ import annotations

import secrets
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from ajuste.model.base import first_problem
from ajuste.model.event import (
    Accepted,
    Counter,
    End,
    Event,
    EventsByKind,
    Exited,
    Failed,
    Gate,
    Hello,
    Loaded,
    Output,
    Paused,
    ReadBack,
    Restored,
    Sample,
    Sampled,
    Started,
    Traced,
    Written,
    parse_event,
)
from ajuste.model.plan import Plan, SamplerSource, chooses

LONGEST_STREAM_BYTES = 64 << 20
MOST_EVENTS = 100_000
KEY_BYTES = 32
"""Length of the key before each line of a guest, a new one for each trial."""

# A byte that is not UTF-8 becomes U+FFFD, which takes three.
_REPLACEMENT_BYTES = 3
_EXCERPT_BYTES = 100

_FIRST = (Hello, Gate, Accepted)

# Readings at the start, at the workload's end, at the observation's end, and one for a partial interval.
_EXTRA_READINGS = 4

# Extra time for a workload that does not die at once at its time limit.
_SLACK_NS = 30_000_000_000

_LARGEST = 2**64


@dataclass(frozen=True)
class Boot:
    """The boot of a guest. ``problem`` is empty if it reached its gate; ``rest`` is the output after that."""

    hello: Hello | None
    gate: Gate | None
    rest: bytes
    problem: str


@dataclass(frozen=True)
class Stream:
    """The events of a trial.

    ``lines`` are exactly those that ``events`` were parsed from: all if ``problem`` is empty, else those before it.
    """

    lines: str
    events: tuple[Event, ...]
    problem: str


class _Wrong(Exception):
    """Something about the stream is not as it must be; the message is the problem in one line."""


def new_key() -> bytes:
    """Return a key that tells the agent's events from others': of a fixed length, and in no line by chance."""
    return secrets.token_hex(KEY_BYTES // 2).encode()


def with_key(plan: Plan, key: bytes) -> bytes:
    """Return the plan as a guest's agent reads it, after the key of its events."""
    return key + plan.model_dump_json().encode()


def read_boot(content: bytes) -> Boot:
    """Split a guest's output into its beginning (``hello``, ``gate``) and the rest."""
    hello: Hello | None = None
    rest = content
    try:
        for number in (1, 2):
            raw, newline, rest = rest.partition(b"\n")
            if not newline:
                raise _Wrong("the guest did not arrive at its gate" if hello else "the guest sent nothing")
            event = _parse(number, raw)
            if isinstance(event, Failed):
                raise _Wrong(f"the guest failed at {event.stage}: {event.message}")
            if isinstance(event, Gate) and hello is not None:
                return Boot(hello, event, rest, "")
            if not isinstance(event, Hello) or hello is not None:
                raise _Wrong(f"the guest sent {event.event} where {'gate' if hello else 'hello'} was expected")
            hello = event
    except _Wrong as wrong:
        return Boot(hello, None, b"", str(wrong))
    raise AssertionError("the loop returns or raises")


def read_trial(content: bytes, plan: Plan, *, restores: bool = False, key: bytes = b"") -> Stream:
    """Return the events of ``plan``, from ``accepted`` to ``end``, checked.

    Every line is known, nothing is missing or repeated, nothing after the end, and all that the plan asked for is
    reported if ``end`` says that all went well. A host that ``restores`` also says of each value that it was put back.
    Every line begins with the ``key`` that only the agent knows, or somebody else wrote it; it is not part of
    ``lines``.
    """
    lines: list[bytes] = []
    events: list[Event] = []
    try:
        if len(content) > LONGEST_STREAM_BYTES:
            raise _Wrong(f"the events have more than {LONGEST_STREAM_BYTES >> 20} MiB")
        pieces = content.split(b"\n")
        unfinished = pieces.pop()
        if len(pieces) > MOST_EVENTS:
            raise _Wrong(f"there are more than {MOST_EVENTS} events")
        for number, keyed in enumerate(pieces, start=1):
            raw = _unsealed(number, keyed, key)
            event = _parse(number, raw)
            _check_place(number, event, events, plan)
            lines.append(raw)
            events.append(event)
        if unfinished:
            whole = unfinished if len(unfinished) >= len(key) else key
            raw = _unsealed(len(pieces) + 1, whole, key)
            raise _Wrong(f"the events break off in line {len(pieces) + 1}: {_excerpt(raw)}")
        _check_whole(events, plan, restores)
    except _Wrong as wrong:
        return Stream(_joined(lines), tuple(events), str(wrong))
    return Stream(_joined(lines), tuple(events), "")


def _joined(lines: list[bytes]) -> str:
    # Decoding cannot fail: each line was parsed as JSON, and so is UTF-8.
    return "".join(f"{line.decode()}\n" for line in lines)


def _unsealed(number: int, line: bytes, key: bytes) -> bytes:
    if not line.startswith(key):
        visible = _excerpt(line.replace(key, b"KEY"))
        raise _Wrong(
            f"line {number} of the events lacks the key of the trial, so the agent did not write it: {visible}"
        )
    return line[len(key) :]


def _parse(number: int, raw: bytes) -> Event:
    try:
        raw.decode()
        return parse_event(raw)
    except UnicodeDecodeError as error:
        raise _Wrong(f"line {number} of the events is not UTF-8: {_excerpt(raw)}") from error
    except ValidationError as error:
        raise _Wrong(f"line {number} of the events is malformed ({first_problem(error)}): {_excerpt(raw)}") from error


def _excerpt(raw: bytes) -> str:
    text = ascii(raw[:_EXCERPT_BYTES].decode(errors="replace"))
    return f"{text} …" if len(raw) > _EXCERPT_BYTES else text


def _check_place(number: int, event: Event, before: list[Event], plan: Plan) -> None:
    if not before:
        if isinstance(event, Failed):
            raise _Wrong(f"the plan was not accepted: {event.stage}: {event.message}")
        if not isinstance(event, Accepted):
            raise _Wrong(f"the first event is {event.event}, not accepted")
        if event.id != plan.id:
            raise _Wrong(f"the plan {event.id!r} was accepted, not {plan.id!r}")
        return
    if isinstance(before[-1], End):
        raise _Wrong(f"line {number} of the events comes after the end")
    if isinstance(event, _FIRST):
        raise _Wrong(f"line {number} of the events is a second {event.event}")
    if isinstance(event, Output):
        size = len(event.text.encode(errors="surrogatepass"))
        if size > _REPLACEMENT_BYTES * plan.output_limit_bytes:
            raise _Wrong(f"line {number} of the events has {size} bytes of output, more than the plan allows")


def _check_whole(events: list[Event], plan: Plan, restores: bool) -> None:
    if not events:
        raise _Wrong("the agent sent nothing")
    end = events[-1]
    if not isinstance(end, End):
        raise _Wrong(f"the events end with {end.event}, without an end")
    if end.id != plan.id:
        raise _Wrong(f"the end is that of the plan {end.id!r}, not of {plan.id!r}")
    if end.events != len(events) - 1:
        raise _Wrong(f"the end counts {end.events} events, and {len(events) - 1} arrived")
    kinds = EventsByKind(events)
    if problem := _problem_of_samples(kinds, plan):
        raise _Wrong(problem)
    statements = list(_unique_facts(kinds))
    if len(set(statements)) < len(statements):
        what, times = Tally(statements).most_common(1)[0]
        raise _Wrong(f"{what} is reported {times} times")
    if end.ok:
        _check_complete(kinds, plan)
        restored, written = {e.tunable for e in kinds.of(Restored)}, {w.tunable for w in plan.writes}
        if restores and not written <= restored <= written | {setting.tunable for setting in plan.keeps}:
            raise _Wrong("not all values that were written are reported as put back")


def _unique_facts(kinds: EventsByKind) -> Iterator[str]:
    yield from (f"that the {event.role} {event.index} {event.event}" for event in kinds.of(Started))
    yield from (f"that the {event.role} {event.index} {event.event}" for event in kinds.of(Exited))
    yield from ("that the background load is there" for _ in kinds.of(Loaded))
    yield from (f"the {event.stream} of the {event.role} {event.index}" for event in kinds.of(Output))
    yield from (f"the counter {event.name}" for event in kinds.of(Counter))
    yield from (f"the end of the sampler {event.index}" for event in kinds.of(Sampled))
    yield from ("what the scheduler did" for _ in kinds.of(Traced))
    yield from (f"that the {event.who} was paused" for event in kinds.of(Paused))
    yield from (f"that {event.tunable} was put back" for event in kinds.of(Restored))


def _processes(plan: Plan) -> set[tuple[str, int]]:
    measured = [("workload", [plan.workload]), ("background", plan.background)] if plan.workload is not None else []
    roles = [*measured, ("before", plan.before), ("after", plan.after)]
    return {(role, index) for role, commands in roles for index in range(len(commands))}


def _check_complete(kinds: EventsByKind, plan: Plan) -> None:
    written = [(e.tunable, e.asked) for e in kinds.of(Written)]
    if written != [(w.tunable, w.value) for w in plan.writes]:
        raise _Wrong("not all values that the plan asked for are reported as written")
    if [e.tunable for e in kinds.of(ReadBack)] != [r.tunable for r in plan.reads]:
        raise _Wrong("not all values that the plan asked for are reported as read")
    exited = {(e.role, e.index) for e in kinds.of(Exited)}
    if exited != _processes(plan):
        raise _Wrong("not every process of the plan is reported as ended")
    if plan.workload is None:
        return
    if [len(e.used_ns) for e in kinds.of(Loaded)] != ([len(plan.background)] if plan.background else []):
        raise _Wrong("whether the background load is there is reported just where the plan has one")
    if {e.name for e in kinds.of(Counter)} != set(plan.counters):
        raise _Wrong("not all counters of the plan are reported")
    if {e.index for e in kinds.of(Sampled)} != set(range(len(plan.samplers))):
        raise _Wrong("not all samplers of the plan are reported")
    if bool(kinds.of(Traced)) != (plan.trace is not None):
        raise _Wrong("what the scheduler did is reported just where the plan asks for it")


# Checks that samples of an agent are possible under the plan.


def _problem_of_samples(kinds: EventsByKind, plan: Plan) -> str:
    # Returns one line; empty if the samples are possible. A sampler of the plan must read their sources and figures.
    # They come in the order of time, no more than the plan has time for, and as many as the agent reports for each
    # sampler.
    samples = kinds.of(Sample)
    for before, sample in zip([None, *samples], samples, strict=False):
        samplers = [sampler for sampler in plan.samplers if sampler.source == sample.source]
        if not samplers:
            return f"a sample is of {sample.source}, which the plan does not sample"
        if before is not None and sample.at_ns < before.at_ns:
            return f"a sample of {sample.source} comes before the one that was read earlier"
        keys = [key for sampler in samplers for key in sampler.keys]
        for name, value in sample.values.items():
            if not any(chooses(key, name) for key in keys):
                return f"a sample of {sample.source} has {name!r:.100}, which the plan does not ask for"
            if value >= _LARGEST:
                return f"a sample of {sample.source} has a figure that no 64-bit machine can have"
    ends = kinds.of(Sampled)
    return _count_problem(samples, ends, plan) if samples or ends else ""


def _count_problem(samples: Sequence[Sample], ends: Sequence[Sampled], plan: Plan) -> str:
    for end in ends:
        if end.index >= len(plan.samplers) or plan.samplers[end.index].source != end.source:
            return f"the sampler {end.index} is reported with {end.source}, which is not the plan's"
        time_ns = plan.timeout_ns + plan.observe_ns + plan.perturbation.start_delay_ns + _SLACK_NS
        if end.readings > time_ns // plan.samplers[end.index].interval_ns + _EXTRA_READINGS:
            return f"the sampler of {end.source} says that it was read {end.readings} times, more than the plan allows"
    reported: Tally[SamplerSource] = Tally()
    for end in ends:
        reported[end.source] += end.readings
    arrived = Tally(sample.source for sample in samples)
    for source in arrived | reported:
        if arrived[source] != reported[source]:
            return f"{arrived[source]} samples of {source} arrived, but the agent read {reported[source]}"
    return ""
