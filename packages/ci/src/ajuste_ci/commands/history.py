"""``ajuste history``: the benchmarks of a project over its commits, and where they changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import typer

from ajuste.cli.options import Json, Quiet, Wait, example
from ajuste.model.error import RequestError
from ajuste.model.wording import amount, change, count_of, first_few, listed, percent, shortened, visible_line
from ajuste.report.console import Console
from ajuste.report.document import (
    Badge,
    Block,
    Cell,
    Column,
    CommandBlock,
    Notes,
    Paragraph,
    Report,
    Row,
    Section,
    Table,
)
from ajuste.report.terminal import print_report
from ajuste_ci.checkout import ProjectRepository
from ajuste_ci.commands.gate import Benchmarks, FreshTrials, bench_request
from ajuste_ci.history import FEWEST_COMMITS, ProjectHistory, spread
from ajuste_ci.model import CommitChange, CommitHistory, CommitPoint, HistoryResult, ProjectCommit
from ajuste_ci.report import commit_words

DEFAULT_COMMITS: Final = 10
MOST_COMMITS: Final = 40
"""Maximum number of commits: each needs a directory and a build of its own."""


@example("ajuste history --last 3")
def history(
    context: typer.Context,
    names: Benchmarks = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="REV", help="The first revision (default: --last before the end).")
    ] = None,
    until: Annotated[str, typer.Option("--until", metavar="REV", help="The last revision.")] = "HEAD",
    last: Annotated[
        int,
        typer.Option(
            "--last",
            min=FEWEST_COMMITS,
            max=MOST_COMMITS,
            metavar="N",
            help="Measure so many commits; with --since, spread evenly.",
        ),
    ] = DEFAULT_COMMITS,
    fresh: FreshTrials = False,
    wait: Wait = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Show every metric over commits, and where it changed.

    Builds commits along the first parents, measures the benchmarks of ajuste.toml in all of them side by side, and
    names the commits at which a metric changed by more than its limit.

    Exit codes: 0 measured, 1 a benchmark failed, 2 the request was wrong.
    """
    request = bench_request(context, names, fresh=fresh, quiet=quiet or as_json, wait=wait)
    every = _commits(request.repository, since, until, last)
    request.require_benchmarks()
    request.refuse_harnesses("ajuste history")
    request.check()
    result = ProjectHistory(request, spread(every, last), every).carry_out()
    if as_json:
        typer.echo(result.model_dump_json(indent=2))
    else:
        print_report(history_report(result), Console())
    return result.exit_code


def _commits(repository: ProjectRepository, since: str | None, until: str, last: int) -> tuple[ProjectCommit, ...]:
    # The oldest first.
    end = repository.revision(until, "--until").commit
    if since is None:
        commits = repository.commits(f"--max-count={last}", end)
    else:
        start = repository.revision(since, "--since").commit
        commits = (*repository.commits("--max-count=1", start), *repository.commits(f"{start}..{end}"))
    if len(commits) < FEWEST_COMMITS:
        there = count_of(len(commits), "commit")
        raise RequestError(
            f"{there} from {since or 'the first'} to {until}; a history requires {FEWEST_COMMITS}",
            hint=repository.hint_for_more("name an earlier --since, or compare two commits with ajuste gate"),
        )
    return commits


# A history as a report: where each metric changed, and a table of all commits.


_COLUMNS: Final = (
    Column("Commit", figure=False),
    Column("Date", figure=False, optional=True),
    Column("Figure"),
    Column("Interval", optional=True),
    Column("Change", figure=False),
    Column("Subject", figure=False),
)
_OF_STRETCHES: Final = (
    "A change is that of all commits since against all commits before, up to the next change. ajuste gate measures two "
    "commits alone, so its figure differs within the intervals."
)
_MOST_NAMED: Final = 3
# Maximum number of commits that are listed between two measured ones.
_MOST_BETWEEN: Final = 10


def history_report(result: HistoryResult) -> Report:
    """Return the report of a history: the answer first, then a section for each metric."""
    sections = tuple(_section(history) for history in result.histories)
    if any(history.changes for history in result.histories):
        sections = (*sections, Section("", (Notes((_OF_STRETCHES,)),)))
    commits = next((history.points for history in result.histories if history.points), ())
    about = f"{commits[0].commit.short} → {commits[-1].commit.short}" if commits else ""
    return Report(title="History", headline=headline(result), question=about, sections=sections, stem="history")


def headline(result: HistoryResult) -> str:
    """Return the answer in one sentence, and a second one where benchmarks could not be measured."""
    failed = [history.name for history in result.histories if history.reason]
    broken = f"{count_of(len(failed), 'benchmark')} could not be measured: {listed(failed)}." if failed else ""
    return " ".join(filter(None, (_changes_sentence(result, whole=not failed), broken)))


def _changes_sentence(result: HistoryResult, *, whole: bool) -> str:
    # *No change* holds only if the `whole` history was measured.
    if changes := [(history, commit_change) for history in result.histories for commit_change in history.changes]:
        commits = dict.fromkeys(commit_change.after.short for _, commit_change in changes)
        named = [f"{commit} ({_signs(changes, commit)})" for commit in commits]
        return f"{count_of(len(named), 'change')} beyond the limit: {listed(first_few(named, _MOST_NAMED))}."
    if not whole:
        return ""
    if unknown := [history.name for history in result.histories if not history.known]:
        return f"Not precise enough yet to locate a change: {listed(list(dict.fromkeys(unknown)))}."
    return "No metric changed by more than its limit."


def _signs(changes: Sequence[tuple[CommitHistory, CommitChange]], commit: str) -> str:
    # Reversed twice: of each benchmark the first metric wins, in the order of the changes.
    metrics = {
        history.name: f"{history.name} {_by(history, commit_change)}"
        for history, commit_change in reversed(changes)
        if commit_change.after.short == commit
    }
    return listed(list(reversed(metrics.values())))


def _by(history: CommitHistory, commit_change: CommitChange) -> str:
    return change(commit_change.change, history.scale, history.unit)


def _section(history: CommitHistory) -> Section:
    title = f"{history.name}: {history.metric}"
    if not history.points:
        return Section(title, (Paragraph(history.reason.partition("\n")[0]),))
    rows = (_row(history, point) for point in history.points)
    blocks: list[Block] = [Table.of(_COLUMNS, rows, name="commits"), *map(Paragraph, _notes(history))]
    if history.run:
        blocks.append(CommandBlock("more", (f"ajuste report {history.run}",)))
    return Section(title, tuple(blocks))


def _row(history: CommitHistory, point: CommitPoint) -> Row:
    commit = point.commit
    subject = shortened(visible_line(commit.subject))
    if point.value is None:
        return Row((commit.short, commit.date, Cell("", missing=point.reason), "", "", subject))
    bounds = ""
    if point.low is not None and point.high is not None:
        bounds = f"{amount(point.low, history.unit)} to {amount(point.high, history.unit)}"
    commit_change = next((entry for entry in history.changes if entry.after == commit), None)
    badge: Badge | str = ""
    if commit_change is not None:
        badge = Badge(
            "worsens" if commit_change.worse else "improves",
            "✗" if commit_change.worse else "✓",
            _by(history, commit_change),
        )
    return Row((commit.short, commit.date, amount(point.value, history.unit), bounds, badge, subject))


def _notes(history: CommitHistory) -> Iterator[str]:
    yield from (f"{point.commit.short}: {point.reason.rstrip('.')}." for point in history.points if point.reason)
    if not history.known:
        yield "Not precise enough yet to locate a change."
    elif not history.changes:
        yield f"No change of more than {percent(history.limit)}."
    for commit_change in history.changes:
        if len(commit_change.between) > 1:
            named = first_few([commit_words(commit) for commit in commit_change.between], _MOST_BETWEEN)
            yield f"{_by(history, commit_change)} came with one of {'; '.join(named)}."
