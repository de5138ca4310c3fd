"""Whether a guest can answer what a study asks: some settings are about what only a real machine has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from ajuste.catalogue.loader import Catalogue
from ajuste.model.relevance import GuestQuestion
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.study.measures import PARTS_OF_INSTRUCTIONS
from ajuste.study.problem import Problem
from ajuste.study.schema import FactorTable, Study
from ajuste.study.settings import KERNEL_ARGUMENTS, canonical, is_tunable, names_set, set_by


def check_answerable(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    """What a guest cannot answer, and what to do instead."""
    for index, factor in enumerate(study.factors):
        for question, names in _asked(study, factor, catalogue):
            if question.answer == "refused" and not (question.counts and _only_counts(study)) and not names.rest:
                yield Problem(("factor", index), f"{names.words}: {question.why}", question.instead)


def guest_notes(study: Study, catalogue: Catalogue) -> tuple[str, ...]:
    """A sentence or two for each question that the study's guests answer in part only."""
    found = (
        f"{names.words}: {question.why}. For that, {question.instead}."
        for factor in study.factors
        for question, names in _asked(study, factor, catalogue)
    )
    return tuple(dict.fromkeys(found))


class _Names:
    """What of a factor a question is about, and whether it sets anything else."""

    def __init__(self, own: Sequence[str], *, rest: bool) -> None:
        self.words = ", ".join(own)
        self.rest = rest


def _asked(study: Study, factor: FactorTable, catalogue: Catalogue) -> Iterator[tuple[GuestQuestion, _Names]]:
    if study.target.on_host or len(factor.levels) < 2:
        return
    every = tuple(_varied(factor, catalogue))
    for question in catalogue.guest_questions.values():
        if question.clock in ("", study.target.clock):
            own = [name for kind, name in every if _is_about(question, kind, name)]
            if own:
                yield question, _Names(own, rest=len(own) < len(every))


def _varied(factor: FactorTable, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """What differs between the levels: tunables by their entry's name, words for the kernel, options it is built with;
    with which of them it is.
    """
    seen = set[tuple[str, str]]()
    for name in names_set(factor):
        if is_tunable(name):
            seen.add(("tunables", canonical(name, catalogue).partition("[")[0]))
        elif name == KERNEL_ARGUMENTS:
            words = [set_by(factor, level).get(name, "").split() for level in factor.levels]
            seen |= {("arguments", word.partition("=")[0]) for word in _differing(words)}
        elif name == KERNEL_FACTOR:
            specs = [set_by(factor, level).get(name, "").split("+") for level in factor.levels]
            seen |= {("options", text.partition("=")[0]) for text in _differing([spec[1:] for spec in specs])}
            seen |= {("kernels", spec[0]) for spec in specs}
        else:
            seen.add(("others", name))
    kernels = {one for one in seen if one[0] == "kernels"}
    return iter(sorted(seen - kernels if len(kernels) == 1 else seen))


def _differing(levels: Sequence[Sequence[str]]) -> set[str]:
    """What only some of the levels have."""
    return {word for level in levels for word in level if not all(word in other for other in levels)}


def _is_about(question: GuestQuestion, kind: str, name: str) -> bool:
    patterns = {"tunables": question.tunables, "arguments": question.arguments, "options": question.options}
    return any(fnmatchcase(name, pattern) for pattern in patterns.get(kind, ()))


def _only_counts(study: Study) -> bool:
    """Whether only counts of instructions decide, which are exact in a guest."""
    counts = {"instructions", "branches", *(metric.name for metric in PARTS_OF_INSTRUCTIONS)}
    return counts.issuperset(study.analysis.metrics)
