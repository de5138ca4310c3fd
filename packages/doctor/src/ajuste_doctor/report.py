"""Report on how quiet a machine is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ajuste.model.wording import count_of
from ajuste.report.document import Block, Column, Item, Listing, Paragraph, Report, Row, Section, Table, Tone
from ajuste_doctor.diagnosis import Diagnosis, NoiseEffect, amount
from ajuste_stats.precision import MOST_BLOCKS

_MARKS: Final[dict[str, tuple[str, Tone]]] = {"much": ("!!", "bad"), "some": ("! ", "warning"), "note": ("i ", "plain")}


def diagnosis_report(diagnosis: Diagnosis) -> Report:
    """Return the verdict, the detectable effect, the disturbances with advice, and the checks that passed."""
    disturbing = []
    for finding in diagnosis.findings:
        if finding.severity in _MARKS:
            mark, tone = _MARKS[finding.severity]
            limit = f" (from {amount(finding.threshold, finding.unit)} on)" if finding.threshold is not None else ""
            advice = (f"→ {line}" for line in finding.advice)
            more = (f"{finding.said}{limit}.", *advice)
            disturbing.append(Item(finding.title, more=more, mark=mark, tone=tone))
    quiet = [f"{finding.said}." for finding in diagnosis.findings if finding.severity == "none"]
    unknown = [f"{finding.title}: {finding.said}." for finding in diagnosis.findings if finding.severity == "unknown"]
    sections = (
        Section("What a study could see here", tuple(_effects(diagnosis))),
        Section(
            "Disturbances, most important first",
            (Listing(tuple(disturbing)) if disturbing else Paragraph("None found."),),
        ),
        *_busy(diagnosis),
        *((Section("No disturbance", _dim_listing(quiet)),) if quiet else ()),
        *((Section("Not measured", _dim_listing(unknown)),) if unknown else ()),
    )
    return Report("How quiet this machine is", f"This machine is {diagnosis.sentence}.", sections)


def _dim_listing(lines: Sequence[str]) -> tuple[Block, ...]:
    return (Listing(tuple(Item(line, tone="dim") for line in lines)),)


def _effects(diagnosis: Diagnosis) -> Iterator[Block]:
    runs = diagnosis.measured.runs
    yield Paragraph(
        f"{count_of(len(runs), 'run')} of a fixed job spread by {amount(diagnosis.spread_percent, '%')} "
        f"({amount(min(run.elapsed_s for run in runs), 's')} to {amount(max(run.elapsed_s for run in runs), 's')})."
    )
    rows = tuple(Row((f"{effect.effect_percent:g} %", *_blocks(effect))) for effect in diagnosis.effects)
    yield Table.of((Column("Effect"), Column("Blocks"), Column("Range")), rows)
    parts = [
        f"{power.blocks} blocks show "
        + ("nothing" if power.effect_percent is None else f"effects from {amount(power.effect_percent, '%')} on")
        for power in diagnosis.powers
    ]
    yield Paragraph(f"{'; '.join(parts)}.")


def _blocks(effect: NoiseEffect) -> tuple[str, str]:
    if effect.blocks is None:
        return f"over {MOST_BLOCKS:,}", ""
    high = f"over {MOST_BLOCKS:,}" if effect.high is None else f"{effect.high:,}"
    return f"about {effect.blocks:,}", f"{effect.low:,} … {high}" if effect.low is not None else ""


def _busy(diagnosis: Diagnosis) -> tuple[Section, ...]:
    busy = diagnosis.measured.busy
    if not busy:
        return ()
    rows = tuple(Row((program.name, f"{program.cpu_percent:.1f} %")) for program in busy)
    table = Table.of((Column("Program", figure=False), Column("Of one CPU")), rows)
    return (Section("Programs that used most CPU meanwhile", (table,)),)
