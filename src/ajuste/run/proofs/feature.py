"""A feature of kernels: what must be looked at to see it, and how what was seen is judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ajuste.model.kernel import Sight


@dataclass(frozen=True)
class ProofFinding:
    """``present`` is ``None`` where it cannot be told. A ``value`` that names several by ``or`` proves none of them."""

    present: bool | None
    evidence: tuple[Sight, ...]
    value: str = ""


@dataclass(frozen=True)
class KernelFeature:
    """``options`` are shown beside the evidence (names without CONFIG_); ``decided_by`` is the one that alone says
    whether, or with which value, the feature was built. The guest loads those of ``modules`` that the
    kernel has; in it the files ``reads`` are read, ``schedulers`` chosen for a disk, one after the other, and bundled
    programs run (``runs``). Of BPF schedulers it has those of ``bpf`` that were built with the kernel. ``judge`` is
    pure.
    """

    name: str
    title: str
    judge: Callable[[KernelFacts], ProofFinding]
    decided_by: str = ""
    options: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    runs: tuple[Said, ...] = ()
    bpf: tuple[str, ...] = ()


def file_is_there(path: str, *more: str) -> Callable[[KernelFacts], ProofFinding]:
    """A judge that is content if the kernel has the file ``path``; ``more`` are looked at as well."""

    def judge(facts: KernelFacts) -> ProofFinding:
        sights = tuple(Sight(what=looked, found=facts.sight(looked)) for looked in (path, *more))
        return ProofFinding(present=path in facts.reads, evidence=sights)

    return judge


# What was seen of a running kernel, before anybody judges it.


Said = tuple[str, ...]
"""The words of a command, without the program's name."""


@dataclass(frozen=True)
class KernelFacts:
    """``build`` is ``uname -v``. ``reads`` has the content of files, ``unreadable`` why others could not be read;
    ``chosen`` what a scheduler file said after each choice was written to it, ``refused`` why one was not taken.
    ``output`` and ``failed`` are of the bundled programs that were run. ``disk`` is the block device that was asked.
    """

    build: str
    disk: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    chosen: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    output: Mapping[Said, str] = field(default_factory=dict)
    failed: Mapping[Said, str] = field(default_factory=dict)

    def sight(self, path: str) -> str:
        """What a person sees who looks at the file."""
        return self.reads.get(path, self.unreadable.get(path, "not checked"))

    def figures(self, words: Said) -> dict[str, str]:
        """``name=value`` of what a bundled program printed; none if it failed."""
        return dict(re.findall(r"(\w+)=(\S+)", self.output.get(words, "")))
