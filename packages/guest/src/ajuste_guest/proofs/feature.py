"""A feature of kernels: the facts that show it, and their judge."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ajuste.model.kernel import Sight


@dataclass(frozen=True)
class ProofFinding:
    """The judgement; ``present`` is None if unknown. A ``value`` with several names joined by ``or`` proves none."""

    present: bool | None
    evidence: tuple[Sight, ...]
    value: str = ""


@dataclass(frozen=True)
class KernelFeature:
    """A feature and how to prove it in a guest.

    The guest loads ``modules`` and has the BPF schedulers ``bpf``, as far as the kernel has them; it reads the files
    ``reads``, chooses each of ``schedulers`` for a disk, and ``runs`` bundled programs. ``judge`` is pure.
    ``options``, without CONFIG_, are shown beside the evidence; ``decided_by`` alone decides whether, or with which
    value, the feature is built.
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
    """Return a judge that requires the file ``path``; ``more`` files are shown as evidence."""

    def judge(facts: KernelFacts) -> ProofFinding:
        sights = tuple(Sight(what=looked, found=facts.sight(looked)) for looked in (path, *more))
        return ProofFinding(present=path in facts.reads, evidence=sights)

    return judge


Said = tuple[str, ...]
"""The words of a command, without the program's name."""


@dataclass(frozen=True)
class KernelFacts:
    """The observed facts of a running kernel, not yet judged.

    ``build`` is ``uname -v``. ``reads`` has the content of files, ``unreadable`` the errors of others; ``chosen`` the
    content of the scheduler file of ``disk`` after each choice, ``refused`` the errors; ``output`` and ``failed`` those
    of bundled programs.
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
        """Return the content of a file, or the reason why there is none."""
        return self.reads.get(path, self.unreadable.get(path, "not checked"))

    def figures(self, words: Said) -> dict[str, str]:
        """Return the ``name=value`` figures that a bundled program printed; empty if it failed."""
        return dict(re.findall(r"(\w+)=(\S+)", self.output.get(words, "")))
