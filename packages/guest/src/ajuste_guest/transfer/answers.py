"""Transfer: the verdicts of a run in a guest and of one on the host, question by question.

The atlas has how well guests answered as hosts did, by what was varied; ``ajuste transfer --add`` grows it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from statistics import median
from typing import Final, Literal

from ajuste.catalogue.loader import Catalogue
from ajuste.model.base import BaseModel
from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.trial import COMMAND_FACTOR, Factor
from ajuste.model.verdict import Verdict
from ajuste.model.wording import listed
from ajuste_stats.terms import Direction, Scale, Word

TransferAgreement = Literal["same", "opposite", "different", "undecided"]
"""*same*: both say the same for certain. *opposite*: both see an effect, in opposite directions. *different*: one sees
an effect, the other none that matters. *undecided*: at least one of them does not know.
"""

SizeAgreement = Literal["alike", "larger on the host", "smaller on the host"]

MOST_NAMED: Final = 3
"""Questions with different answers that the answer names."""

_OF_PROCESSES: Final = {
    "nice": "priority",
    "policy": "scheduling policy",
    "affinity": "affinity",
    "cgroup_weight": "group weights",
}

WORK: Final = "the work itself"

MOST_SIZE: Final = 20.0
"""A larger factor between two effects says only that one of them is close to nothing."""


class TransferSide(BaseModel):
    """The verdict of one run, as in ``Verdict``."""

    verdict: Word
    estimate: float | None
    low: float | None
    high: float | None
    blocks: int


class TransferRow(BaseModel):
    """A question: ``configuration`` against the baseline on ``metric``. ``size`` compares the effects where both runs
    see one in the same direction: *alike* where their intervals overlap.
    """

    configuration: str
    metric: str
    unit: str
    direction: Direction
    scale: Scale
    deciding: bool
    guest: TransferSide
    host: TransferSide
    agreement: TransferAgreement
    size: SizeAgreement | None = None


class TransferRun(BaseModel):
    """``clock`` is ``virtual`` or ``wall``; ``digest`` that of all that was measured."""

    run: str
    study: str
    clock: str
    digest: str
    level: float


class Transfer(BaseModel):
    """``answer`` in a sentence or two. ``only_guest`` and ``only_host`` are questions that the other run did not ask,
    ``notes`` sentences to know.
    """

    schema_version: int = 1
    answer: str
    guest: TransferRun
    host: TransferRun
    rows: tuple[TransferRow, ...]
    only_guest: tuple[str, ...] = ()
    only_host: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def transfer(guest: Results, host: Results) -> Transfer:
    """Compare the verdicts of both runs on the same configurations and metrics.

    RequestError if they have no question in common, or another baseline.
    """
    if guest.run == host.run:
        raise RequestError(f"{guest.run}: both runs are the same; expected two", hint="name the run on the host second")
    mine, theirs = (
        {(verdict.configuration, verdict.metric): verdict for verdict in run.verdicts} for run in (guest, host)
    )
    common = [key for key in mine if key in theirs]
    if not common:
        raise RequestError(
            f"{guest.run} and {host.run} have no configuration and metric in common",
            hint="measure the same settings with the same workload in both",
        )
    rows = tuple(_row(mine[key], theirs[key]) for key in common)
    return Transfer(
        answer=_answer(rows),
        guest=_run(guest),
        host=_run(host),
        rows=rows,
        only_guest=tuple(_question(verdict) for key, verdict in mine.items() if key not in theirs),
        only_host=tuple(_question(verdict) for key, verdict in theirs.items() if key not in mine),
        notes=tuple(_notes(guest, host)),
    )


def _run(results: Results) -> TransferRun:
    return TransferRun(
        run=results.run,
        study=results.study,
        clock=results.clock or "wall",
        digest=results.digest,
        level=results.level,
    )


def _row(guest: Verdict, host: Verdict) -> TransferRow:
    agreement = _agreement(guest, host)
    return TransferRow(
        configuration=guest.configuration,
        metric=guest.metric,
        unit=guest.unit,
        direction=guest.direction,
        scale=guest.scale,
        deciding=guest.deciding and host.deciding,
        guest=_side(guest),
        host=_side(host),
        agreement=agreement,
        size=_size(guest, host) if agreement == "same" and guest.verdict != "equivalent" else None,
    )


def _side(verdict: Verdict) -> TransferSide:
    return TransferSide(
        verdict=verdict.verdict,
        estimate=verdict.estimate,
        low=verdict.low,
        high=verdict.high,
        blocks=verdict.blocks,
    )


def _agreement(guest: Verdict, host: Verdict) -> TransferAgreement:
    if "undecided" in (guest.verdict, host.verdict):
        return "undecided"
    if (guest.verdict == "equivalent") != (host.verdict == "equivalent"):
        return "different"
    if guest.verdict == "equivalent" or (_effect(guest) > 0) == (_effect(host) > 0):
        return "same"
    return "opposite"


def _effect(verdict: Verdict) -> float:
    if verdict.estimate is None:
        return 0.0
    return math.log(verdict.estimate) if verdict.scale == "ratio" else verdict.estimate


def _size(guest: Verdict, host: Verdict) -> SizeAgreement | None:
    if guest.scale != host.scale or None in (guest.low, guest.high, host.low, host.high):
        return None
    bounds = [(verdict.low or 0.0, verdict.high or 0.0) for verdict in (guest, host)]
    if bounds[0][0] <= bounds[1][1] and bounds[1][0] <= bounds[0][1]:
        return "alike"
    return "larger on the host" if abs(_effect(host)) > abs(_effect(guest)) else "smaller on the host"


def _answer(rows: Sequence[TransferRow]) -> str:
    questions = [row for row in rows if row.deciding] or list(rows)
    counts = Counter(row.agreement for row in questions)
    known = len(questions) - counts["undecided"]
    if not known:
        return f"Nothing is known yet: at least one run is undecided on {_questions(len(questions), 'each of ')}."
    parts = [f"The guest answered {counts['same']} of {_questions(known)} as the host did"]
    for agreement, words in (("opposite", "the opposite"), ("different", "an effect in only one of them")):
        differing = [f"{row.configuration} on {row.metric}" for row in questions if row.agreement == agreement]
        if differing:
            more = [f"{len(differing) - MOST_NAMED} more"] if len(differing) > MOST_NAMED else []
            parts.append(f"{words} for {listed([*differing[:MOST_NAMED], *more])}")
    text = "; ".join(parts) + "."
    if counts["undecided"]:
        text += f" On {_questions(counts['undecided'])} at least one run is undecided."
    return text


def _questions(count: int, each: str = "") -> str:
    return "1 question" if count == 1 else f"{each}{count} questions"


def _question(verdict: Verdict) -> str:
    return f"{verdict.configuration} on {verdict.metric}"


def _notes(guest: Results, host: Results) -> list[str]:
    notes = []
    if host.clock == "virtual":
        notes.append(f"{host.run} has the virtual clock: it was measured in a guest, not on the host.")
    if guest.clock == "virtual":
        notes.append(
            "The guest counts instructions instead of time: sizes need not be those of the hardware, signs should be."
        )
    if guest.smallest_effect != host.smallest_effect:
        notes.append("The runs have different smallest effects: equivalent does not mean the same in both.")
    return notes


class AtlasQuestion(BaseModel):
    """An effect, measured in a guest and on its host: of ``configuration`` on ``row.metric``. ``kind`` is what was
    varied, ``question`` the title of the study.
    """

    kind: str
    question: str
    guest_kernel: str
    host_kernel: str
    machine: str
    row: TransferRow


class Atlas(BaseModel):
    """The questions that were measured in both."""

    schema_version: int = 1
    questions: tuple[AtlasQuestion, ...] = ()


class KindAgreement(BaseModel):
    """The agreement of guests and hosts on one kind of question.

    ``decided`` questions are those that both decided, of them ``same`` have the same sign and ``opposite`` the opposite
    one; of the rest one side alone sees an effect. ``rank`` is Spearman's rank correlation of the effects that both
    know; None below four or where all are equal. ``size`` is the typical factor between the two effects where both see
    one in the same direction, at least 1; None where there is none.
    """

    kind: str
    questions: int
    decided: int
    same: int
    opposite: int
    rank: float | None
    size: float | None


def shipped_atlas() -> Atlas:
    """Return the atlas that comes with the program."""
    return Atlas.model_validate_json((files("ajuste_guest.transfer") / "atlas.json").read_text(encoding="utf-8"))


def atlas_questions(
    transfer: Transfer, guest: Results, host: Results, catalogue: Catalogue
) -> tuple[AtlasQuestion, ...]:
    """Return the questions of ``transfer`` that decided, as the atlas has them."""
    kind = question_kind(guest.factors, catalogue)
    machine = host.environment.get("this machine", {})
    guests = [part for part in guest.environment.values() if isinstance(part, dict) and "QEMU" in part]
    return tuple(
        AtlasQuestion(
            kind=kind,
            question=guest.title,
            guest_kernel=str(guests[0].get("kernel", "unknown")) if guests else "unknown",
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
        opposite=sum(row.agreement == "opposite" for row in decided),
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


def _logarithm(row: TransferRow, side: TransferSide) -> float | None:
    if side.estimate is None or row.scale != "ratio" or side.estimate <= 0:
        return None
    return math.log(side.estimate)


def _size_factor(row: TransferRow) -> float | None:
    # How many times as large the larger effect is as the smaller one, where both see one in the same direction.
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
