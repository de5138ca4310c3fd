"""A feature of kernels: what must be looked at to see it, and how what was seen is judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ajuste.kernel.prove.facts import Facts, Said
from ajuste.model.proof import Sight


@dataclass(frozen=True)
class Finding:
    """``present`` is ``None`` where it cannot be told. A ``value`` that names several by ``or`` proves none of them."""

    present: bool | None
    evidence: tuple[Sight, ...]
    value: str = ""


@dataclass(frozen=True)
class Feature:
    """``options`` are shown beside the evidence (names without CONFIG_); ``decided_by`` is the one that alone says
    whether, or with which value, the feature was built. The guest loads those of ``modules`` that the
    kernel has; in it the files ``reads`` are read, ``schedulers`` chosen for a disk, one after the other, and bundled
    programs run (``runs``). Of BPF schedulers it has those of ``bpf`` that were built with the kernel. ``judge`` is
    pure.
    """

    name: str
    title: str
    judge: Callable[[Facts], Finding]
    decided_by: str = ""
    options: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    runs: tuple[Said, ...] = ()
    bpf: tuple[str, ...] = ()


def file_is_there(path: str, *more: str) -> Callable[[Facts], Finding]:
    """A judge that is content if the kernel has the file ``path``; ``more`` are looked at as well."""

    def judge(facts: Facts) -> Finding:
        sights = tuple(Sight(what=looked, found=facts.sight(looked)) for looked in (path, *more))
        return Finding(present=path in facts.reads, evidence=sights)

    return judge
