"""What is not settled: which effects are excluded, how much longer it takes, and the command that goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ajuste.model.results import Results
from ajuste.model.verdict import Finding, LineEffect, Verdict
from ajuste.model.wording import block_words, in_sentence
from ajuste.report.document import CommandBlock, Fact, Facts, Section
from ajuste.report.format import Labels, duration
from ajuste.report.metric_table import is_screening
from ajuste.report.verdicts import effect_style, known

_MOST_NAMED: Final = 3
# A smallest effect beyond 100 % is of no use.
_LARGEST: Final = 1.0


def unsettled_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the section; empty if all is decided or could not matter."""
    findings = _open(results)
    unmeasured = results.stopped == "irrelevant" or (results.stopped == "failed" and not results.blocks)
    if not findings or unmeasured or results.tuning is not None or results.live is not None:
        return ()
    facts = (*_excluded(results, findings, labels), *_needed(results, findings), *_decided_now(results, findings))
    go_on = (CommandBlock("go on", (results.continuation.command,)),) if results.continuation else ()
    return (Section("Not settled", (Facts(facts), *go_on), "unsettled", "Not settled"),)


def _open(results: Results) -> list[Finding]:
    if results.lines:
        findings: Sequence[Finding] = [line for line in results.lines if line.kind == "line"]
    else:
        findings = results.effects if is_screening(results) else results.verdicts
    return [
        finding
        for finding in findings
        if finding.deciding and finding.verdict == "undecided" and not finding.depends_on_machine
    ]


def _excluded(results: Results, findings: Sequence[Finding], labels: Labels) -> Iterator[Fact]:
    titles = {metric.name: metric.title for metric in results.metrics}
    names = labels.by_name(results)
    bounded = [finding for finding in findings if known(finding.low) is not None or known(finding.high) is not None]
    items = []
    for finding in bounded[:_MOST_NAMED]:
        style = effect_style([finding], finding.unit)[finding.scale]
        low, high = (
            style.figure(b) if (b := known(bound)) is not None else None for bound in (finding.low, finding.high)
        )
        unit = f" {style.unit}" if style.unit else ""
        if low is not None and high is not None:
            outside = f"outside {low}{unit} to {high}{unit}"
        else:
            outside = f"above {high}{unit}" if high is not None else f"below {low}{unit}"
        subject = _subject(finding, names)
        items.append(f"{in_sentence(titles.get(finding.metric, finding.metric))} under {subject}: effects {outside}")
    if len(bounded) > _MOST_NAMED:
        items.append(f"and so on for {len(bounded) - _MOST_NAMED} more")
    if not items:
        yield Fact("Excluded", "nothing yet")
    elif len(items) == 1:
        yield Fact("Excluded", items[0])
    else:
        yield Fact("Excluded", items=tuple(items))


def _subject(finding: Finding, names: Mapping[str, str]) -> str:
    if isinstance(finding, Verdict):
        return names.get(finding.configuration, finding.configuration)
    return finding.line if isinstance(finding, LineEffect) else finding.subject


def _needed(results: Results, findings: Sequence[Finding]) -> Iterator[Fact]:
    more = [finding.more_blocks for finding in findings if finding.more_blocks]
    if len(more) < len(findings) or not more:
        yield Fact("Still needed", "unknown: too few blocks to say, or too much noise")
        return
    blocks = block_words(max(more), "more ", of_rounds=results.boots is not None)
    each = results.continuation.seconds_per_block if results.continuation else None
    time = f", {duration(max(more) * each)} at today's pace" if each else ""
    yield Fact("Still needed", f"about {blocks}{time}")


def _decided_now(results: Results, findings: Sequence[Finding]) -> Iterator[Fact]:
    # The smallest effect that would make all of them equivalent as they stand.
    wanted = [_reach(results, finding) for finding in findings]
    largest = max(wanted)
    if largest >= _LARGEST:
        return
    digits = 10.0 ** (math.floor(math.log10(100 * largest)) - 1) if largest > 0 else 1.0
    share = (math.floor(100 * largest / digits) + 1) * digits
    of_study = results.continuation is not None and " run " in results.continuation.command.partition(" -- ")[0]
    how = f"smallest_effect = {share / 100:.3g} in the study" if of_study else f"--min-effect {share:.3g}%"
    yield Fact("Decided now", f"with {how}: equivalent")


def _reach(results: Results, finding: Finding) -> float:
    # How far the interval reaches from no effect, as a share of the baseline.
    low, high = known(finding.low), known(finding.high)
    if low is None or high is None:
        return math.inf
    if finding.scale == "ratio":
        return max(high - 1, 1 / low - 1) if low > 0 else math.inf
    baseline = next((c.metrics.get(finding.metric) for c in results.configurations if c.baseline), None)
    return max(abs(low), abs(high)) / abs(baseline.mean) if baseline and baseline.mean else math.inf
