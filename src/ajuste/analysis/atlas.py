"""The atlas: how well guests answered as hosts did, by what was varied. ``ajuste transfer --add`` grows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from statistics import median
from typing import Any, Final

from ajuste.analysis.transfer import Transfer, TransferRow, TransferSide
from ajuste.catalogue.loader import Catalogue
from ajuste.model.base import BaseModel
from ajuste.model.results import Results
from ajuste.model.trial import COMMAND_FACTOR, Factor

_OF_PROCESSES: Final = {
    "nice": "priority",
    "policy": "scheduling policy",
    "affinity": "affinity",
    "cgroup_weight": "group weights",
}
WORK: Final = "the work itself"
MOST_SIZE: Final = 20.0
"""A larger factor between two effects says only that one of them is close to nothing."""


class AtlasQuestion(BaseModel):
    """One effect, measured in a guest and on its host: of ``configuration`` on ``row.metric``. ``kind`` is what was
    varied, ``question`` the title of the study.
    """

    kind: str
    question: str
    guest_kernel: str
    host_kernel: str
    machine: str
    row: TransferRow


class Atlas(BaseModel):
    """All questions that were measured in both."""

    schema_version: int = 1
    questions: tuple[AtlasQuestion, ...] = ()


class KindAgreement(BaseModel):
    """How guests and hosts agree on one kind of question.

    ``decided`` questions are those that both decided, of them ``same`` have the same sign. ``rank`` is Spearman's rank
    correlation of the effects that both know; None below four or where all are equal. ``size`` is the typical factor
    between the two effects where both see one in the same direction, at least 1; None where there is none.
    """

    kind: str
    questions: int
    decided: int
    same: int
    rank: float | None
    size: float | None


def shipped_atlas() -> Atlas:
    """Return the atlas that comes with the program."""
    return Atlas.model_validate_json((files("ajuste.catalogue") / "atlas.json").read_text(encoding="utf-8"))


def atlas_questions(
    transfer: Transfer, guest: Results, host: Results, catalogue: Catalogue
) -> tuple[AtlasQuestion, ...]:
    """Return the questions of ``transfer`` that decided, as the atlas has them."""
    kind = question_kind(guest.factors, catalogue)
    machine = host.environment.get("this machine", {})
    return tuple(
        AtlasQuestion(
            kind=kind,
            question=guest.title,
            guest_kernel=_guest_kernel(guest.environment),
            host_kernel=str(machine.get("kernel", "unknown")),
            machine=str(machine.get("processor", "unknown")),
            row=row,
        )
        for row in transfer.rows
        if row.deciding
    )


def merge_atlases(*atlases: Atlas) -> Atlas:
    """Return all questions once; of the same question on the same machine and kernels the last answer counts."""
    latest = {
        (
            question.machine,
            question.host_kernel,
            question.guest_kernel,
            question.question,
            question.row.configuration,
            question.row.metric,
        ): question
        for atlas in atlases
        for question in atlas.questions
    }
    return Atlas(questions=tuple(latest.values()))


def question_kind(factors: Sequence[Factor], catalogue: Catalogue) -> str:
    """Return what kind of thing ``factors`` vary in plain words: ``priority``, ``memory hugepages``."""
    return " and ".join(dict.fromkeys(_kind(factor.name, catalogue) for factor in factors))


def agreements(questions: Iterable[AtlasQuestion]) -> tuple[KindAgreement, ...]:
    """Return how guests and hosts agree, kind by kind in the order of ``questions``."""
    by_kind: dict[str, list[AtlasQuestion]] = {}
    for question in questions:
        by_kind.setdefault(question.kind, []).append(question)
    return tuple(agreement(kind, of_kind) for kind, of_kind in by_kind.items())


def agreement(kind: str, questions: Sequence[AtlasQuestion]) -> KindAgreement:
    """Return how guests and hosts agree on ``questions``."""
    rows = [question.row for question in questions]
    decided = [row for row in rows if row.agreement != "undecided"]
    sizes = [factor for row in decided if (factor := _size_factor(row)) is not None]
    return KindAgreement(
        kind=kind,
        questions=len(rows),
        decided=len(decided),
        same=sum(row.agreement == "same" for row in decided),
        rank=_rank_correlation(rows),
        size=median(sizes) if sizes else None,
    )


def _kind(factor: str, catalogue: Catalogue) -> str:
    name = factor.partition("[")[0]
    if name in _OF_PROCESSES:
        return _OF_PROCESSES[name]
    if tunable := catalogue.tunables.get(name):
        return tunable.subsystem.replace("-", " ")
    # Settings that go together under a name of the study's own are a kind of their own.
    return WORK if name == COMMAND_FACTOR or name.startswith("workload.") else name


def _guest_kernel(environment: dict[str, Any]) -> str:
    parts = [part for name, part in environment.items() if isinstance(part, dict) and "QEMU" in part]
    return str(parts[0].get("kernel", "unknown")) if parts else "unknown"


def _logarithm(row: TransferRow, side: TransferSide) -> float | None:
    if side.estimate is None or row.scale != "ratio" or side.estimate <= 0:
        return None
    return math.log(side.estimate)


def _size_factor(row: TransferRow) -> float | None:
    """How many times as large the larger effect is as the smaller one, where both see one in the same direction."""
    effects = [_logarithm(row, side) for side in (row.guest, row.host)]
    if row.agreement != "same" or row.guest.verdict == "equivalent" or None in effects or 0.0 in effects:
        return None
    small, large = sorted(abs(effect) for effect in effects if effect is not None)
    return min(large / small, MOST_SIZE)


def _rank_correlation(rows: Sequence[TransferRow]) -> float | None:
    pairs = [(_logarithm(row, row.guest), _logarithm(row, row.host)) for row in rows]
    known = [pair for pair in pairs if None not in pair]
    guests, hosts = zip(*known, strict=True) if known else ((), ())
    if len(known) < 4 or min(len(set(guests)), len(set(hosts))) == 1:
        return None
    from scipy.stats import spearmanr  # slow to load

    return float(spearmanr(guests, hosts).statistic)
