"""The note on guests whose questions were asked on the host too."""

from __future__ import annotations

from ajuste.catalogue.loader import catalogue
from ajuste.model.results import Results
from ajuste.model.wording import count_of
from ajuste_guest.transfer.answers import agreement, question_kind, shipped_atlas


def clock_notes(results: Results) -> tuple[str, ...]:
    """Return how often guests and hosts agreed on this kind of question; nothing under the wall clock."""
    if results.clock != "virtual":
        return ()
    kind = question_kind(results.factors, catalogue())
    agreed = agreement(kind, [question for question in shipped_atlas().questions if question.kind == kind])
    if not agreed.decided:
        return ()
    return (
        f"Of {count_of(agreed.decided, 'effect')} of this kind ({kind}) that were measured in a guest and on its host, "
        f"{agreed.same} had the same sign (ajuste transfer; ajuste help transfer).",
    )
