"""Causes of lost time: where the time of a workload goes, in the words by which settings say what they act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Cause = Literal[
    "user",
    "kernel",
    "cpu-wait",
    "wakeup",
    "migration",
    "faults",
    "reclaim",
    "swap",
    "writeback",
    "sync",
    "disk-read",
    "disk-write",
    "files",
    "network",
    "locks",
]


class CauseText(NamedTuple):
    """The words for a cause: ``title`` follows *Acts on*, ``what`` is a sentence."""

    title: str
    what: str


CAUSES: Final[Mapping[Cause, CauseText]] = {
    "user": CauseText(
        "the program's own code",
        "The program computes; frequency, caches, huge pages and the distance to memory decide how fast.",
    ),
    "kernel": CauseText("the cost of system calls", "The kernel itself computes for the program's system calls."),
    "cpu-wait": CauseText(
        "waits for a CPU", "Tasks are ready to run but wait because others have the CPU, or their group has a limit."
    ),
    "wakeup": CauseText(
        "delays from wake-up to run",
        "A timer or another task wakes a task, which starts to run only later; idle states and preemption decide when.",
    ),
    "migration": CauseText(
        "moves between CPUs", "Tasks, timers or interrupts move to other CPUs, and leave their caches behind."
    ),
    "faults": CauseText(
        "page faults", "The kernel maps, clears or copies a page when the program first touches or writes it."
    ),
    "reclaim": CauseText(
        "memory reclaim",
        "Memory is short: the kernel scans for pages to drop and compacts, sometimes while a program waits.",
    ),
    "swap": CauseText("swap", "Pages of programs are written to swap, and programs wait to get them back."),
    "writeback": CauseText(
        "write-back", "Written data wait in memory; the flusher threads write them, and the kernel slows down writers."
    ),
    "sync": CauseText(
        "waits for data to be safe", "Programs wait until data are on the disk: fsync, commits of the journal, flushes."
    ),
    "disk-read": CauseText(
        "disk reads", "Programs wait for data from the disk: read-ahead and the queue decide how long."
    ),
    "disk-write": CauseText(
        "disk writes", "Requests to write are sorted, merged and queued for the disk, and delay each other and reads."
    ),
    "files": CauseText(
        "file names and attributes",
        "The kernel looks up paths, and reads and changes directories, inodes and time stamps.",
    ),
    "network": CauseText(
        "the network", "Data wait for windows, buffers, congestion control, queues or the handling of packets."
    ),
    "locks": CauseText("locks", "Tasks wait for each other at locks of the kernel or of the program."),
}
