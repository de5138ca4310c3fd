"""Traces for Perfetto, and what they say of each trial, read with Perfetto's own classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb


@dataclass
class Trial:
    """Tracks of one machine: ``decisions`` are their time, kind, words, path and instructions, ``calls`` the thread,
    the name, the begin and the end of system calls.
    """

    name: str = ""
    kernel: str = ""
    threads: dict[str, int] = field(default_factory=dict)
    processes: dict[int, str] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
    decisions: list[tuple[int, str, str, tuple[str, ...], int]] = field(default_factory=list)
    instructions: list[tuple[int, int]] = field(default_factory=list)
    calls: list[tuple[str, str, int, int | None]] = field(default_factory=list)
    parting: list[Any] = field(default_factory=list)
    clocks: int = 0

    def counts(self) -> Counter[str]:
        """Return how many events of the kernel there are of each sort."""
        return Counter(sort(event) for event in self.events)

    def kinds(self) -> Counter[str]:
        return Counter(kind for _, kind, *_ in self.decisions)


def sort(event: Any) -> str:
    (kind,) = (name.name for name, _ in event.ListFields() if name.message_type is not None)
    return str(kind)


def read(path: Path) -> tuple[Trial, Trial]:
    trials: dict[int, Trial] = {}
    tracks: dict[int, str] = {}
    known: dict[int, dict[str, dict[int, Any]]] = {}
    for packet in pb.Trace.FromString(path.read_bytes()).packet:
        trial = trials.setdefault(packet.machine_id, Trial())
        match packet.WhichOneof("data"):
            case "system_info":
                trial.name, trial.kernel = packet.system_info.machine_name, packet.system_info.utsname.release
            case "clock_snapshot":
                trial.clocks += 1
            case "process_tree":
                trial.threads = {thread.name: thread.tid for thread in packet.process_tree.threads}
                names = {process.pid: process.cmdline[0] for process in packet.process_tree.processes}
                trial.processes = {thread.tid: names[thread.tgid] for thread in packet.process_tree.threads}
            case "ftrace_events":
                trial.events += packet.ftrace_events.event
            case "track_descriptor":
                about = packet.track_descriptor
                named = {tid: name for name, tid in trial.threads.items()}
                if about.HasField("thread"):
                    assert trial.processes[about.thread.tid] == trial.processes[about.thread.pid]
                tracks[about.uuid] = f"thread {named[about.thread.tid]}" if about.HasField("thread") else about.name
            case "track_event":
                _take(trial, packet, tracks, known[packet.trusted_packet_sequence_id])
        if packet.HasField("interned_data"):
            known[packet.trusted_packet_sequence_id] = _known(packet.interned_data)
    first, second = (trial for _, trial in sorted(trials.items()))
    return first, second


def _known(interned: Any) -> dict[str, dict[int, Any]]:
    functions = {function.iid: function.str.decode() for function in interned.function_names}
    frames = {frame.iid: functions[frame.function_name_id] for frame in interned.frames}
    return {
        "categories": {category.iid: category.name for category in interned.event_categories},
        "names": {event_name.iid: event_name.name for event_name in interned.event_names},
        "paths": {stack.iid: tuple(frames[frame] for frame in stack.frame_ids) for stack in interned.callstacks},
    }


def _take(trial: Trial, packet: Any, tracks: dict[int, str], known: dict[str, dict[int, Any]]) -> None:
    event = packet.track_event
    if event.type == pb.TrackEvent.TYPE_COUNTER:
        assert tracks[event.track_uuid] == f"Instructions ({trial.name})"
        trial.instructions.append((packet.timestamp, event.counter_value))
    elif event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
        assert [known["categories"][category] for category in event.category_iids] == ["system call"]
        thread = tracks[event.track_uuid].removeprefix("thread ")
        trial.calls.append((thread, known["names"][event.name_iid], packet.timestamp, None))
    elif event.type == pb.TrackEvent.TYPE_SLICE_END:
        thread = tracks[event.track_uuid].removeprefix("thread ")
        place = max(place for place, call in enumerate(trial.calls) if call[0] == thread)
        trial.calls[place] = (*trial.calls[place][:3], packet.timestamp)
    elif event.track_uuid:
        assert tracks[event.track_uuid] == "Divergence"
        trial.parting.append(packet)
    else:
        (kind,), (count,) = event.category_iids, event.extra_counter_values
        path = known["paths"][event.callstack_iid] if event.callstack_iid else ()
        words = known["names"][event.name_iid]
        trial.decisions.append((packet.timestamp, known["categories"][kind], words, path, count))
        trial.instructions.append((packet.timestamp, count))
