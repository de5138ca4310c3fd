"""Checks that a study can be answered by a guest or across reboots, where it is measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from ajuste.catalogue.loader import Catalogue
from ajuste.model.boot import BOOT_KERNEL
from ajuste.model.relevance import GuestQuestion
from ajuste.model.trial import KERNEL_FACTOR
from ajuste.study.factors import KERNEL_ARGUMENTS, canonical, is_tunable, names_set, set_by
from ajuste.study.metrics import PARTS_OF_INSTRUCTIONS
from ajuste.study.problem import KeyPath, Problem
from ajuste.study.schema import FactorTable, Study

# Default number of rounds of boots: no verdict comes before.
FEWEST_ROUNDS: Final = 6
MOST_ROUNDS: Final = 12


def check_boots(study: Study) -> Iterator[Problem]:
    """Yield what cannot be measured across reboots."""
    if not study.across_boots:
        return
    where: KeyPath = ("design", "blocks_per_boot") if study.design.blocks_per_boot else ("factor",)
    if not study.target.on_host:
        yield Problem(
            where,
            "applies only to this machine, which reboots",
            'omit --vm; in a study file: target kind = "host"',
        )
    if study.design.combine not in ("all", "one-at-a-time"):
        yield Problem(("design", "combine"), 'not supported across reboots; expected "all" or "one-at-a-time"')
    if study.design.allocation in ("refine", "best"):
        yield Problem(("design", "allocation"), 'not supported across reboots; expected "all"')
    if study.analysis.explain:
        yield Problem(("analysis", "explain"), "not supported across reboots")
    setting = [name for factor in study.factors for name in names_set(factor) if is_tunable(name)]
    if setting and any(BOOT_KERNEL in names_set(factor) for factor in study.factors):
        yield Problem(
            ("factor",), f"{setting[0]} and {BOOT_KERNEL} cannot be varied together: kernels differ in tunables"
        )


def block_count_of_boot(study: Study) -> int:
    """Return the blocks of a boot, warm-up included."""
    return study.design.warm_up + study.blocks_per_boot


def boot_round(study: Study, block: int) -> int:
    """Return the round of boots that a block belongs to."""
    return block // block_count_of_boot(study)


def check_answerable(study: Study, catalogue: Catalogue) -> Iterator[Problem]:
    """Yield what a guest cannot answer, and what to do instead."""
    # Counts of instructions are exact in a guest.
    counts = {"instructions", "branches", *(metric.name for metric in PARTS_OF_INSTRUCTIONS)}
    only_counts = counts.issuperset(study.analysis.metrics)
    for index, factor in enumerate(study.factors):
        for question, names in _questions_about(study, factor, catalogue):
            if question.answer == "refused" and not (question.counts and only_counts) and not names.rest:
                yield Problem(("factor", index), f"{names.words}: {question.why}", question.instead)


def guest_notes(study: Study, catalogue: Catalogue) -> tuple[str, ...]:
    """Return a sentence or two for each question that the study's guests answer in part only."""
    notes = (
        f"{names.words}: {question.why}. For that, {question.instead}."
        for factor in study.factors
        for question, names in _questions_about(study, factor, catalogue)
    )
    return tuple(dict.fromkeys(notes))


class _Names:
    # What of a factor a question is about, and whether it sets anything else.
    def __init__(self, patterns: Sequence[str], *, rest: bool) -> None:
        self.words = ", ".join(patterns)
        self.rest = rest


def _questions_about(study: Study, factor: FactorTable, catalogue: Catalogue) -> Iterator[tuple[GuestQuestion, _Names]]:
    if study.target.on_host or len(factor.levels) < 2:
        return
    every = tuple(_varied(factor, catalogue))
    for question in catalogue.guest_questions.values():
        if question.clock in ("", study.target.clock):
            names = [name for kind, name in every if _is_about(question, kind, name)]
            if names:
                yield question, _Names(names, rest=len(names) < len(every))


def _varied(factor: FactorTable, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    # Return what differs between the levels: tunables by their entry's name, words for the kernel, options it is built
    # with; with which of them it is.
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
    kernels = {place for place in seen if place[0] == "kernels"}
    return iter(sorted(seen - kernels if len(kernels) == 1 else seen))


def _differing(levels: Sequence[Sequence[str]]) -> set[str]:
    # Return what only some of the levels have.
    return {word for level in levels for word in level if not all(word in other for other in levels)}


def _is_about(question: GuestQuestion, kind: str, name: str) -> bool:
    patterns = {"tunables": question.tunables, "arguments": question.arguments, "options": question.options}
    return any(fnmatchcase(name, pattern) for pattern in patterns.get(kind, ()))
