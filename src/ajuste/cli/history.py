"""``ajuste history``: the benchmarks of a project over its commits, and where they changed."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from ajuste.cli.gate import Benchmarks, FreshTrials, bench_request
from ajuste.cli.options import Json, Quiet, example
from ajuste.model.error import RequestError
from ajuste.model.gate import ProjectCommit
from ajuste.model.wording import count_of
from ajuste.report.console import Console
from ajuste.report.project_history import history_report
from ajuste.report.terminal import print_report
from ajuste.run.gate.checkout import ProjectRepository
from ajuste.run.gate.history import FEWEST_COMMITS, ProjectHistory, spread

DEFAULT_COMMITS: Final = 10
MOST_COMMITS: Final = 40
"""Each has its own directory and its own build."""


@example("ajuste history --last 3")
def history(
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
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Show every metric over commits, and where it changed.

    Builds commits along the first parents, measures the benchmarks of ajuste.toml in all of them side by side, and
    names the commits at which a metric changed by more than its limit.

    Exit codes: 0 measured, 1 a benchmark failed, 2 the request was wrong.
    """
    request = bench_request(names, fresh=fresh, quiet=quiet or as_json)
    every = _commits(request.repository, since, until, last)
    request.check()
    result = ProjectHistory(request, spread(every, last), every).carry_out()
    if as_json:
        typer.echo(result.model_dump_json(indent=2))
    else:
        print_report(history_report(result), Console())
    return result.exit_code


def _commits(repository: ProjectRepository, since: str | None, until: str, last: int) -> tuple[ProjectCommit, ...]:
    """All that are asked for, the oldest first. Raises RequestError where they are too few."""
    end = repository.revision(until, "--until").commit
    if since is None:
        found = repository.commits(f"--max-count={last}", end)
    else:
        start = repository.revision(since, "--since").commit
        found = (*repository.commits("--max-count=1", start), *repository.commits(f"{start}..{end}"))
    if len(found) < FEWEST_COMMITS:
        there = count_of(len(found), "commit")
        raise RequestError(
            f"{there} from {since or 'the first'} to {until}; a history requires {FEWEST_COMMITS}",
            hint=repository.hint_for_more("name an earlier --since, or compare two commits with ajuste gate"),
        )
    return found
