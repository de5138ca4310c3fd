"""The report of a hunt, for terminal, page and Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from ajuste.model.plan import CpuPause
from ajuste.model.wording import count_of, visible_line
from ajuste.report.document import (
    Block,
    Column,
    CommandBlock,
    Fact,
    Facts,
    Notes,
    Report,
    Row,
    Section,
    Table,
)
from ajuste_guest.report.divergence import divergence_blocks
from ajuste_hunt.model import Found, Hunt


def answer(hunt: Hunt) -> str:
    """Return the answer in one or two sentences."""
    finding = hunt.finding
    if finding is None:
        there = f", after each of {hunt.sites} accesses of shared memory {_times(hunt)}" if hunt.tries_of_site else ""
        return (
            f"{hunt.goal} was not seen in {count_of(hunt.trials, 'trial')}, in which CPUs stood still for up to "
            f"{hunt.longest_pause_us:g} µs{there}. That is no proof that it cannot happen."
        )
    if hunt.outcome == "at-once":
        return f"{hunt.goal} is no rare case: {hunt.shown_plain} of {hunt.plain} trials show it as they are."
    if not finding.pauses:
        return f"Found in trial {finding.trial}: {finding.ending}. The seed alone shows it: no CPU has to stand still."
    after = hunt.story.pauses[0].after if hunt.story else ""
    where = f", after an access of shared memory in {after}" if after and len(finding.pauses) == 1 else ""
    return f"Found in trial {finding.trial}: {finding.ending}, when {_pauses(finding)}{where}."


def _times(hunt: Hunt) -> str:
    return "once or more" if hunt.tries_of_site == 1 else f"{hunt.tries_of_site} times or more"


def _pauses(finding: Found) -> str:
    if len(finding.pauses) == 1:
        return _pause(finding.pauses[0])
    first = _pause(finding.pauses[0])
    return f"{first}, and {count_of(len(finding.pauses) - 1, 'more pause')}"


def _pause(pause: CpuPause) -> str:
    return f"CPU {pause.cpu} stands still for {pause.for_ns / 1000:.3g} µs, {pause.at_ns / 1e6:.4g} ms after the start"


def hunt_report(hunt: Hunt) -> Report:
    """Return the answer, what is needed to show it, its story, and how the search went."""
    sections = [section for section in (*_needed(hunt), *_story(hunt), _search(hunt)) if section.blocks]
    return Report(f"Hunt for {hunt.goal}: {hunt.study}", answer(hunt), tuple(sections), stem="hunt")


def _needed(hunt: Hunt) -> Iterator[Section]:
    if hunt.finding is None:
        return
    blocks: list[Block] = []
    if hunt.finding.pauses:
        then = {then.pause: (then.running, then.after) for then in hunt.story.pauses} if hunt.story else {}
        columns = (
            Column("CPU", figure=False),
            Column("from, ms"),
            Column("for, µs"),
            Column("while", figure=False),
            Column("after an access in", figure=False),
        )
        rows = [
            Row(
                (
                    str(pause.cpu),
                    f"{pause.at_ns / 1e6:.6f}",
                    f"{pause.for_ns / 1000:.3f}",
                    *map(visible_line, then.get(pause, ("", ""))),
                )
            )
            for pause in hunt.finding.pauses
        ]
        blocks.append(Table.of(columns, rows, name="pauses"))
    if hunt.reproducer:
        blocks.append(CommandBlock("again", (f"ajuste run {hunt.reproducer}",)))
    yield Section("What shows it", tuple(blocks))


def _story(hunt: Hunt) -> Iterator[Section]:
    story = hunt.story
    if story is None:
        return
    if story.parts is not None:
        yield Section(
            "Against a trial of the same seed without pauses",
            divergence_blocks(story.parts, ("without pauses", "with the pauses"), "divergence"),
            brief=3,
        )
    if story.waiting:
        facts = tuple(Fact(then.name, then.doing) for then in story.waiting)
        yield Section("Who waits at the end", (Facts(facts, name="waiting"),))


def _search(hunt: Hunt) -> Section:
    finding = hunt.finding
    pairs = [
        ("trials", f"{hunt.trials}, of which {hunt.plain} had no pauses; {hunt.kinds} ran as none before them"),
        ("a trial", f"{hunt.run_ms:.4g} ms on {count_of(hunt.cpus, 'CPU')}, {hunt.kernel}"),
        ("pauses", f"up to {hunt.longest_pause_us:g} µs each"),
        *([("sites", f"{hunt.sites} accesses of shared memory by what came before")] if hunt.sites else []),
        ("guests ran for", f"{hunt.host_seconds:.0f} s"),
    ]
    if hunt.nearest and finding is None:
        pairs.append(("nearest", hunt.nearest))
    if finding is not None:
        pairs.append(("repeated", f"{finding.replays} of {finding.attempts} alike to the byte"))
        if finding.pauses_then != len(finding.pauses):
            pairs.append(("left out", f"{finding.pauses_then - len(finding.pauses)} of {finding.pauses_then} pauses"))
    return Section("The search", (Facts(tuple(Fact(*pair) for pair in pairs), name="search"), *_notes(hunt.notes)))


def _notes(texts: tuple[str, ...]) -> tuple[Notes, ...]:
    return (Notes(texts),) if texts else ()
