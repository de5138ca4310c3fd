"""Decisions of the scheduler in two trials, and their system calls, as a trace for Perfetto's UI (ui.perfetto.dev)
and its trace processor.

Each trial is a machine of its own there: the UI shows their CPUs one above the other, and tells their tasks apart. Both
clocks are moved so that the decision in which they part is at one time. A task has the same number in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from ajuste.machine.files import open_named
from ajuste.model.cost import CostFunction
from ajuste.model.decision import KINDS, DecisionTask, Divergence, NamedDecisions
from ajuste.model.error import RequestError
from ajuste_guest.analysis.divergence import Pairing, TaskNames, decision_places, decision_point, in_words

# When the earlier trial begins: Perfetto takes a time of 0 for none.
_BEGIN_NS: Final = 1_000_000_000
# The numbers below have meanings in Linux: 0 is idle, 1 init, 2 the parent of the kernel's threads.
_FIRST_TASK: Final = 100
# That of nice 0, for all: nobody sees the tasks' own.
_PRIORITY: Final = 120
_WAITS: Final = 1
# States of a task that leaves the CPU: TASK_INTERRUPTIBLE, and TASK_REPORT_MAX since Linux 4.14.
_PREEMPTED: Final = 0x100
# More than there are threads.
_TRACKS: Final = 10_000_000
# Of the kernel, in one packet.
_EVENTS: Final = 1000


@dataclass(frozen=True)
class Followed:
    """A trial whose decisions were recorded, its name (``called``), and the release of its kernel."""

    called: str
    kernel: str
    decisions: NamedDecisions


def write_trace(path: Path, baseline: Followed, alternative: Followed, divergence: Divergence) -> None:
    """Write both trials to ``path``; ``divergence`` is where they part. Raises RequestError if it cannot be written."""
    try:
        with open_named(path) as file:
            builder = StreamingTraceProtoBuilder(file)
            for packet in trace_packets(baseline, alternative, divergence):
                builder.write_packet(packet)
    except OSError as error:
        raise RequestError(f"--perfetto {path}: {error.strerror}", hint="choose a file that you can write") from error


def trace_packets(baseline: Followed, alternative: Followed, divergence: Divergence) -> Iterator[Any]:
    """Yield the trace, packet by packet (``perfetto.protos.TracePacket``)."""
    streams = (baseline.decisions, alternative.decisions)
    pairing = Pairing(*streams)
    pairing.alike_until(*map(decision_places, streams))
    names = TaskNames(*streams, pairing)
    tasks = names.all()
    free = count(_FIRST_TASK)
    numbers = {called: 0 if task.role == "idle" else next(free) for called, task in tasks.items()}
    moments = _moments(divergence, streams)
    trials = [
        _Trial(
            trial=trial,
            # In this order also where the UI sorts by name.
            name=f"{part}: {trial.called}",
            machine=which + 1,
            since_ns=_BEGIN_NS + max(moments) - moments[which],
            called={task.number: names.of(which)(task.number) for task in trial.decisions.tasks},
            numbers=numbers,
        )
        for which, (part, trial) in enumerate((("baseline", baseline), ("configuration", alternative)))
    ]
    yield trials[0].clock()
    for trial in trials:
        yield from trial.about(tasks)
        yield from trial.switches_and_wakeups()
        yield from trial.decisions()
    if divergence.spread is not None:
        yield from trials[0].parting(_BEGIN_NS + max(moments), divergence.sentences)


def _moments(divergence: Divergence, streams: Sequence[NamedDecisions]) -> tuple[int, int]:
    # When the two part, each since the workload's start; where one of them decides nothing more, when both decided the
    # same for the last time.
    both = divergence.baseline.first is not None and divergence.own.first is not None
    place = divergence.alike if both else divergence.alike - 1
    if divergence.spread is None or place < 0:
        return 0, 0
    baseline, alternative = (stream.time_ns(decision_places(stream)[place]) for stream in streams)
    return baseline, alternative


class _Trial:
    # The packets of a trial on its `machine`, whose clock begins at `since_ns`. Its tasks are `called` so, and have
    # those `numbers` as threads.
    def __init__(
        self,
        trial: Followed,
        name: str,
        machine: int,
        since_ns: int,
        called: Mapping[int, str],
        numbers: Mapping[str, int],
    ) -> None:
        self._trial = trial
        self._stream = trial.decisions
        self._name = name
        self._machine = machine
        self._since_ns = since_ns
        self._called = called
        self._numbers = numbers
        # The tracks' numbers must differ in the whole trace.
        self._decisions, self._instructions, self._parting = (10 * machine + place for place in range(3))
        self._processes: dict[str, int] = {}

    def _packet(self, time_ns: int = 0, **content: Any) -> Any:
        return pb.TracePacket(
            timestamp=self._since_ns + time_ns,
            machine_id=self._machine,
            trusted_packet_sequence_id=self._machine,
            **content,
        )

    def _thread(self, task: int) -> int:
        return self._numbers[self._called[task]]

    def _thread_track(self, task: int) -> int:
        return _TRACKS * self._machine + self._thread(task)

    def clock(self) -> Any:
        # What all times are in. A second machine must not say it again: the first one would lose it.
        clock = pb.BUILTIN_CLOCK_BOOTTIME
        snapshot = pb.ClockSnapshot(primary_trace_clock=clock)
        snapshot.clocks.add(clock_id=clock, timestamp=self._since_ns)
        return self._packet(clock_snapshot=snapshot)

    def about(self, tasks: Mapping[str, DecisionTask]) -> Iterator[Any]:
        # The machine and its tasks: those of one role are one process.
        system = pb.SystemInfo(machine_name=self._name, num_cpus=len(set(self._stream.cpus)))
        system.utsname.sysname, system.utsname.release, system.utsname.machine = "Linux", self._trial.kernel, "x86_64"
        yield self._packet(system_info=system)
        tree = pb.ProcessTree()
        for called, task in tasks.items():
            if task.role == "idle":
                continue
            if task.role not in self._processes:
                self._processes[task.role] = self._numbers[called]
                tree.processes.add(pid=self._numbers[called], cmdline=[task.role])
            tree.threads.add(tid=self._numbers[called], tgid=self._processes[task.role], name=called)
        yield self._packet(process_tree=tree)

    def switches_and_wakeups(self) -> Iterator[Any]:
        # As the kernel's own tracepoints have them. The UI draws wake-ups by `sched_waking`, which new tasks get, too.
        stream = self._stream
        for cpu in sorted(set(stream.cpus)):
            places = [place for place, at in enumerate(stream.cpus) if at == cpu]
            for first in range(0, len(places), _EVENTS):
                bundle = pb.FtraceEventBundle(cpu=cpu)
                for place in places[first : first + _EVENTS]:
                    self._add_events(bundle, place)
                if bundle.event:
                    yield self._packet(ftrace_events=bundle)

    def _add_events(self, bundle: Any, place: int) -> None:
        stream = self._stream
        kind = KINDS[stream.kinds[place]]
        if kind not in {"switch", "wakeup", "new"}:
            return
        running, other = stream.running[place], stream.others[place]
        head = {"timestamp": self._since_ns + stream.time_ns(place), "pid": self._thread(running)}
        if kind == "switch":
            event = bundle.event.add(**head).sched_switch
            event.prev_comm, event.prev_pid, event.prev_prio = self._called[running], self._thread(running), _PRIORITY
            event.prev_state = _PREEMPTED if stream.stays[place] else _WAITS
            event.next_comm, event.next_pid, event.next_prio = self._called[other], self._thread(other), _PRIORITY
            return
        for name in ("sched_waking", "sched_wakeup" if kind == "wakeup" else "sched_wakeup_new"):
            event = getattr(bundle.event.add(**head), name)
            event.comm, event.pid, event.prio = self._called[other], self._thread(other), _PRIORITY
            event.success, event.target_cpu = 1, stream.cpus[place]

    def decisions(self) -> Iterator[Any]:
        # Each decision in words, with its path of functions as a call stack; and the instructions up to it.
        stream = self._stream
        yield self._track(self._decisions, f"Decisions ({self._name})")
        instructions = self._track(self._instructions, f"Instructions ({self._name})")
        instructions.track_descriptor.counter.unit_name = "instructions"
        instructions.track_descriptor.counter.y_axis_share_key = "instructions"
        yield instructions
        texts: dict[str, int] = {}
        words = [texts.setdefault(text, len(texts) + 1) for text in self._in_words()]
        names = [CostFunction(name=name, file="", space="kernel").system_call or name for name in stream.functions]
        calls = [texts.setdefault(names[function], len(texts) + 1) for function in stream.calls.functions]
        first = self._packet(
            interned_data=_interned(stream, texts), sequence_flags=pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        )
        defaults = first.trace_packet_defaults.track_event_defaults
        defaults.track_uuid = self._decisions
        defaults.extra_counter_track_uuids.append(self._instructions)
        yield first
        yield self._counted(0, 0)
        for place, word in enumerate(words):
            event = pb.TrackEvent(
                type=pb.TrackEvent.TYPE_INSTANT,
                category_iids=[1 + stream.kinds[place]],
                name_iid=word,
                extra_counter_values=[stream.at[place]],
            )
            if stream.path(place):
                event.callstack_iid = 1 + stream.ways[place]
            yield self._event(stream.time_ns(place), event)
        yield self._counted(stream.whole_ns, stream.instructions)
        yield from self._calls(calls)

    def _calls(self, words: Sequence[int]) -> Iterator[Any]:
        # System calls, on the track of their thread; one that does not end has no end there either.
        stream = self._stream
        roles = {task.number: task.role for task in stream.tasks}
        for task in sorted(set(stream.calls.tasks)):
            thread = pb.ThreadDescriptor(pid=self._processes[roles[task]], tid=self._thread(task))
            yield self._packet(track_descriptor=pb.TrackDescriptor(uuid=self._thread_track(task), thread=thread))
        category = 1 + len(KINDS)
        for place, (task, word) in enumerate(zip(stream.calls.tasks, words, strict=True)):
            track, (begins_ns, ends_ns) = self._thread_track(task), stream.call_ns(place)
            begin = pb.TrackEvent(
                type=pb.TrackEvent.TYPE_SLICE_BEGIN, track_uuid=track, category_iids=[category], name_iid=word
            )
            yield self._event(begins_ns, begin)
            if ends_ns is not None:
                yield self._event(ends_ns, pb.TrackEvent(type=pb.TrackEvent.TYPE_SLICE_END, track_uuid=track))

    def _in_words(self) -> Iterator[str]:
        # Each decision; those that are alike are put into words once.
        stream = self._stream
        known: dict[tuple[int | None, ...], str] = {}
        what = (stream.kinds, stream.cpus, stream.running, stream.others, stream.stays, stream.ways, stream.other_cpus)
        for place, key in enumerate(zip(*what, strict=True)):
            if key not in known:
                known[key] = in_words(decision_point(stream, place, lambda task: self._called.get(task, "")))
            yield known[key]

    def _counted(self, time_ns: int, instructions: int) -> Any:
        event = pb.TrackEvent(
            type=pb.TrackEvent.TYPE_COUNTER, track_uuid=self._instructions, counter_value=instructions
        )
        return self._event(time_ns, event)

    def _event(self, time_ns: int, event: Any) -> Any:
        flags = pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        return self._packet(time_ns, track_event=event, sequence_flags=flags)

    def _track(self, number: int, name: str) -> Any:
        return self._packet(track_descriptor=pb.TrackDescriptor(uuid=number, name=name))

    def parting(self, at_ns: int, sentences: Sequence[str]) -> Iterator[Any]:
        yield self._track(self._parting, "Divergence")
        event = pb.TrackEvent(type=pb.TrackEvent.TYPE_INSTANT, track_uuid=self._parting, name="The decisions part here")
        annotation = event.debug_annotations.add(name="why")
        for sentence in sentences:
            annotation.array_values.add(string_value=sentence)
        yield self._packet(at_ns - self._since_ns, track_event=event)


def _interned(stream: NamedDecisions, texts: Mapping[str, int]) -> Any:
    # What packets refer to by number, from 1 on: kinds and words of decisions, functions and their paths.
    interned = pb.InternedData()
    for place, kind in enumerate((*KINDS, "system call"), 1):
        interned.event_categories.add(iid=place, name=kind)
    for text, number in texts.items():
        interned.event_names.add(iid=number, name=text)
    for place, function in enumerate(stream.functions, 1):
        interned.function_names.add(iid=place, str=function.encode())
        interned.frames.add(iid=place, function_name_id=place, kind=pb.Frame.KIND_KERNEL)
    for place, path in enumerate(stream.paths, 1):
        interned.callstacks.add(iid=place, frame_ids=[1 + function for function in reversed(path)])
    return interned
