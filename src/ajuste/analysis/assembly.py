"""Results put together: what every kind of them has, from its question, where it comes from, and what was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ajuste.design.stopping import Why
from ajuste.model.continuation import REPRODUCE
from ajuste.model.facets import FACETS, RECORDED
from ajuste.model.metric import Metric
from ajuste.model.results import Clock, Measured, Point, Results, Tally, tally_points
from ajuste.model.trial import Factor
from ajuste.model.verdict import Verdict
from ajuste.study.resolved import ResolvedStudy


@dataclass(frozen=True)
class Source:
    """The question that results answer, with its promise, and what measured them: without a ``run``, somebody else."""

    study: str
    title: str
    question: str
    level: float
    smallest_effect: float
    digest: str
    run: str = ""
    seed: int | None = None
    clock: Clock | None = None
    factors: tuple[Factor, ...] = ()
    stopped: Why | None = None
    stopped_because: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    reproduce: Sequence[str] = ()
    created: str = ""
    ajuste: str = ""


def source_of(
    resolved: ResolvedStudy,
    digest: str,
    *,
    run: str,
    stopped: Why,
    stopped_because: str,
    environment: Mapping[str, Any] | None = None,
    reproduce: Sequence[str] = (),
    created: str = "",
    ajuste: str = "",
) -> Source:
    """Return the source of the results of a study's run; ``digest`` covers all that was measured."""
    study = resolved.study
    return Source(
        study=study.name,
        title=study.title or study.name,
        question=study.question,
        level=study.analysis.confidence,
        smallest_effect=study.analysis.smallest_effect,
        digest=digest,
        run=run,
        seed=study.design.seed,
        clock=study.target.clock,
        factors=resolved.factors,
        stopped=stopped,
        stopped_because=stopped_because,
        environment=environment or {},
        reproduce=reproduce,
        created=created,
        ajuste=ajuste,
    )


def put_together(
    source: Source,
    *,
    answer: str,
    correction: str,
    blocks: int,
    verdicts: Sequence[Verdict],
    configurations: Sequence[Measured],
    metrics: Sequence[Metric],
    trials: Sequence[Point],
    tally: Tally | None = None,
    notes: Sequence[str],
    facets: Mapping[str, Any],
) -> Results:
    """Return the results of ``source``. ``facets`` are documents by key (``Facet.document``); those of Ajuste that are
    not there are absent. Without a ``tally`` all trials are there.
    """
    documents: dict[str, Any] = {RECORDED: []}
    for facet in FACETS:
        documents |= facet.document(facet.absent)
    documents |= REPRODUCE.document(tuple(source.reproduce))
    documents.update(facets)
    return Results(
        study=source.study,
        title=source.title,
        question=source.question,
        answer=answer,
        run=source.run,
        seed=source.seed,
        clock=source.clock,
        digest=source.digest,
        stopped=source.stopped,
        stopped_because=source.stopped_because,
        level=source.level,
        smallest_effect=source.smallest_effect,
        correction=correction,
        blocks=blocks,
        verdicts=tuple(verdicts),
        configurations=tuple(configurations),
        factors=source.factors,
        metrics=tuple(metrics),
        trials=tuple(trials),
        tally=tally_points(trials) if tally is None else tally,
        environment=dict(source.environment),
        notes=tuple(dict.fromkeys(notes)),
        created=source.created,
        ajuste=source.ajuste,
        **documents,
    )
