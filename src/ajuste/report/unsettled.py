"""What is not settled: which effects are excluded, how much longer it takes, and the command that goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from ajuste.model.results import Results
from ajuste.model.verdict import Finding, LineEffect, Verdict
from ajuste.model.wording import block_words, in_sentence
from ajuste.report.document import CommandBlock, Fact, Facts, Section
from ajuste.report.format import Labels, duration
from ajuste.report.metric_table import is_screening
from ajuste.report.verdicts import effect_style, known

_MOST_NAMED: Final = 3
_LARGEST: Final = 1.0
"""A smallest effect beyond 100 % is of no use."""


def unsettled_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """The section, or nothing where all is decided or could not matter."""
    findings = _open(results)
    unmeasured = results.stopped == "irrelevant" or (results.stopped == "failed" and not results.blocks)
    if not findings or unmeasured or results.tuning is not None or results.live is not None:
        return ()
    facts = (*_excluded(results, findings, labels), *_needed(results, findings), *_decided_now(results, findings))
    go_on = (CommandBlock("go on", (results.continuation.command,)),) if results.continuation else ()
    return (Section("Not settled", (Facts(facts), *go_on), "unsettled", "Not settled"),)


def _open(results: Results) -> list[Finding]:
    if results.lines:
        found: Sequence[Finding] = [line for line in results.lines if line.kind == "line"]
    else:
        found = results.effects if is_screening(results) else results.verdicts
    return [one for one in found if one.deciding and one.verdict == "undecided" and not one.depends_on_machine]


def _excluded(results: Results, findings: Sequence[Finding], labels: Labels) -> Iterator[Fact]:
    """What each interval leaves out; what has none excludes nothing."""
    titles = {metric.name: metric.title for metric in results.metrics}
    names = labels.by_name(results)
    bounded = [one for one in findings if known(one.low) is not None or known(one.high) is not None]
    items = []
    for one in bounded[:_MOST_NAMED]:
        style = effect_style([one], one.unit)[one.scale]
        low, high = (None if bound is None else style.figure(bound) for bound in (known(one.low), known(one.high)))
        unit = f" {style.unit}" if style.unit else ""
        if low is not None and high is not None:
            outside = f"outside {low}{unit} to {high}{unit}"
        else:
            outside = f"above {high}{unit}" if high is not None else f"below {low}{unit}"
        subject = names.get(one.configuration, one.configuration) if isinstance(one, Verdict) else _subject(one)
        items.append(f"{in_sentence(titles.get(one.metric, one.metric))} under {subject}: effects {outside}")
    if len(bounded) > _MOST_NAMED:
        items.append(f"and so on for {len(bounded) - _MOST_NAMED} more")
    if not items:
        yield Fact("Excluded", "nothing yet")
    elif len(items) == 1:
        yield Fact("Excluded", items[0])
    else:
        yield Fact("Excluded", items=tuple(items))


def _subject(finding: Finding) -> str:
    return finding.line if isinstance(finding, LineEffect) else finding.subject


def _needed(results: Results, findings: Sequence[Finding]) -> Iterator[Fact]:
    more = [one.more_blocks for one in findings if one.more_blocks]
    if len(more) < len(findings) or not more:
        yield Fact("Still needed", "unknown: too few blocks to say, or too much noise")
        return
    blocks = block_words(max(more), "more ", of_rounds=results.boots is not None)
    each = results.continuation.seconds_per_block if results.continuation else None
    time = f", {duration(max(more) * each)} at today's pace" if each else ""
    yield Fact("Still needed", f"about {blocks}{time}")


def _decided_now(results: Results, findings: Sequence[Finding]) -> Iterator[Fact]:
    """The smallest effect that would make all of them equivalent as they stand."""
    wanted = [_reach(results, one) for one in findings]
    largest = max(wanted)
    if largest >= _LARGEST:
        return
    digits = 10.0 ** (math.floor(math.log10(100 * largest)) - 1) if largest > 0 else 1.0
    share = (math.floor(100 * largest / digits) + 1) * digits
    of_study = results.continuation is not None and " run " in results.continuation.command.partition(" -- ")[0]
    how = f"smallest_effect = {share / 100:.3g} in the study" if of_study else f"--min-effect {share:.3g}%"
    yield Fact("Decided now", f"with {how}: equivalent")


def _reach(results: Results, finding: Finding) -> float:
    """How far the interval reaches from no effect, as a share of the baseline."""
    low, high = known(finding.low), known(finding.high)
    if low is None or high is None:
        return math.inf
    if finding.scale == "ratio":
        return max(high - 1, 1 / low - 1) if low > 0 else math.inf
    baseline = next((one.metrics.get(finding.metric) for one in results.configurations if one.baseline), None)
    return max(abs(low), abs(high)) / abs(baseline.mean) if baseline and baseline.mean else math.inf
