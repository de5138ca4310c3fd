"""``ajuste gate``: whether a revision of a project is slower than another one, for CI."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.measuring import check_report
from ajuste.cli.options import Json, Quiet, Wait, example, wait_seconds
from ajuste.cli.showing import command_line
from ajuste.machine.files import write_text
from ajuste.machine.home import home
from ajuste.model.error import AjusteError, RequestError
from ajuste.model.wording import shortened, visible
from ajuste.report.console import Console
from ajuste.report.markdown import markdown as markdown_of
from ajuste.report.terminal import print_report
from ajuste.run.testbed import RunOptions
from ajuste_ci.bench import BenchRequest
from ajuste_ci.checkout import ProjectRepository
from ajuste_ci.gate import NoopGate, RevisionGate
from ajuste_ci.harnesses.registry import harnesses_of
from ajuste_ci.model import GateResult
from ajuste_ci.project import HINT, PROJECT_FILE, WITHOUT_A_FILE, project_of_harness, read_project
from ajuste_ci.report import badge as badge_of
from ajuste_ci.report import gate_report, github, gitlab, noop_report
from ajuste_ci.report import junit as junit_of

FEWEST_NOOPS: Final = 5
MOST_NOOPS: Final = 1000
MOST_ERROR_LINES: Final = 40
"""Maximum number of lines of the error of one benchmark."""

Benchmarks = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="The benchmarks to measure (default: all).")
]
FreshTrials = Annotated[bool, typer.Option("--fresh", help="Measure again; do not use the store's trials of a guest.")]


def bench_request(
    context: typer.Context,
    names: list[str] | None,
    *,
    fresh: bool,
    quiet: bool,
    wait: str | None = None,
    harness: str | None = None,
) -> BenchRequest:
    """Return the request to measure the project around the current directory; with ``harness`` that alone, of the
    current directory, whatever its ajuste.toml has. Raises RequestError.
    """
    repository = ProjectRepository.around(Path.cwd())
    project = read_project(_project_file(repository.top)) if harness is None else project_of_harness(harness)
    return BenchRequest(
        project,
        project.chosen(tuple(names or ())),
        repository,
        catalogue(),
        RunOptions(home(), wait_s=wait_seconds(wait)),
        command_line(context),
        _say_failed,
        project.reproduced(tuple(names or ())),
        fresh=fresh,
        quiet=quiet,
    )


def _project_file(top: Path) -> Path:
    # The nearest one, from the current directory up to the top of the repository.
    here = Path.cwd()
    for directory in (here, *here.parents):
        if (directory / PROJECT_FILE).exists():
            return Path(PROJECT_FILE) if directory == here else directory / PROJECT_FILE
        if directory == top or directory.resolve() == top.resolve():
            break
    hint = f"write one: {HINT}"
    if used := harnesses_of(here):
        hint = f"measure the benchmarks of {used[0]}: add --harness {used[0]}"
    raise RequestError(f"{PROJECT_FILE} not found in {here} or above it in the repository", hint=hint)


def _say_failed(name: str, failure: AjusteError) -> None:
    # Printed at once: the other benchmarks may take long.
    place = f"{failure.place}: " if failure.place else ""
    lines = [shortened(line) for line in f"{place}{failure.message}".splitlines()[:MOST_ERROR_LINES]]
    hint = f"\n  {failure.hint}" if failure.hint else ""
    print(visible(f"ajuste: benchmark {name}: " + "\n".join(lines) + hint), file=sys.stderr)


@example("ajuste gate --base HEAD")
def gate(
    context: typer.Context,
    names: Benchmarks = None,
    base: Annotated[
        str, typer.Option("--base", metavar="REV", help="The revision to compare with: a branch, tag or commit.")
    ] = "",
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="REV", help="The revision to judge (default: the working tree)."),
    ] = None,
    undecided: Annotated[
        Literal["pass", "fail"],
        typer.Option("--undecided", help="What an undecided figure means: exit code 0, or 4."),
    ] = "fail",
    annotations: Annotated[
        Literal["github", "gitlab"] | None,
        typer.Option(
            "--annotations", help="Print workflow commands of GitHub, or only a code quality report of GitLab."
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML to this file.")] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write the answer as Markdown to this file.")
    ] = None,
    badge: Annotated[
        Path | None, typer.Option("--badge", metavar="FILE", help="Write a badge (SVG) to this file.")
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option(
            "--harness",
            metavar="NAME",
            help=f"Measure the benchmarks of this harness, without an ajuste.toml: {', '.join(WITHOUT_A_FILE)}.",
        ),
    ] = None,
    bisect: Annotated[bool, typer.Option("--bisect", help="Find the commit of each regression.")] = False,
    noop: Annotated[
        int | None,
        typer.Option(
            "--noop",
            min=FEWEST_NOOPS,
            max=MOST_NOOPS,
            metavar="N",
            help="Judge the head by itself N times, and say how often it is called changed.",
        ),
    ] = None,
    fresh: FreshTrials = False,
    wait: Wait = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Check whether a revision is slower than another, for CI.

    Builds both revisions, measures the benchmarks of ajuste.toml in both side by side, and judges each by its limit. A
    regression is proved when the whole interval lies beyond the limit. A reproducer is measured in the head alone: what
    its study expects and does not find is a regression.

    Exit codes: 0 no regression, 1 a benchmark failed, 2 the request was wrong, 3 a regression is proved (also where a
    benchmark failed), 4 undecided. With --noop 3 means that more than 5 % of comparisons call nothing a change.
    """
    if noop is not None:
        others = {
            "--harness": harness,
            "--base": base,
            "--annotations": annotations,
            "--junit": junit,
            "--badge": badge,
            "--bisect": bisect,
        }
        if conflicting := [name for name, value in others.items() if value]:
            raise RequestError(f"--noop and {conflicting[0]} are mutually exclusive", hint="remove one of them")
        return _noop(noop, context, names, head, markdown, fresh=fresh, quiet=quiet, wait=wait, as_json=as_json)
    if as_json and annotations is not None:
        raise RequestError("--json and --annotations are mutually exclusive", hint="write the JSON in a second call")
    if as_json and (file := next((name for name in names or () if name.endswith(".json")), None)):
        raise RequestError(f"--json takes no file; found {file!r}", hint=f"write --json > {file}")
    if not base:
        raise RequestError("--base is required", hint="name a revision, such as --base main or --base HEAD~1")
    for option, path in {"--junit": junit, "--markdown": markdown, "--badge": badge}.items():
        check_report(path, option)
    silent = quiet or as_json or annotations == "gitlab"
    request = bench_request(context, names, fresh=fresh, quiet=silent, wait=wait, harness=harness)
    repository = request.repository
    of_base = repository.revision(base, "--base")
    of_head = repository.working_tree() if head is None else repository.revision(head, "--head")
    if bisect:
        request.refuse_harnesses("--bisect")
    request.check()
    result = RevisionGate(request, of_base, of_head, bisect=bisect).carry_out()
    _show(result, annotations, undecided, as_json=as_json)
    comment = f"### Performance\n\n{markdown_of(gate_report(result))}"  # A title, for a pull request.
    for path, text in ((junit, junit_of(result, undecided)), (markdown, comment), (badge, badge_of(result))):
        if path is not None:
            write_text(path, text)
    return result.exit_code(undecided)


def _noop(
    runs: int,
    context: typer.Context,
    names: list[str] | None,
    head: str | None,
    markdown: Path | None,
    *,
    fresh: bool,
    quiet: bool,
    wait: str | None,
    as_json: bool,
) -> int:
    check_report(markdown, "--markdown")
    request = bench_request(context, names, fresh=fresh, quiet=quiet or as_json, wait=wait)
    repository = request.repository
    revision = repository.working_tree() if head is None else repository.revision(head, "--head")
    request.require_benchmarks()
    request.refuse_harnesses("--noop")
    request.check()
    result = NoopGate(request, revision, runs).carry_out()
    if as_json:
        typer.echo(result.model_dump_json(indent=2))
    else:
        print_report(noop_report(result), Console())
    if markdown is not None:
        write_text(markdown, f"### Performance\n\n{markdown_of(noop_report(result))}")
    return result.exit_code


def _show(result: GateResult, annotations: str | None, undecided: Literal["pass", "fail"], *, as_json: bool) -> None:
    if as_json:
        typer.echo(result.model_dump_json(indent=2))
        return
    only_data = annotations == "gitlab"
    print_report(gate_report(result), Console(file=sys.stderr if only_data else sys.stdout))
    if only_data:
        typer.echo(gitlab(result, undecided))
    elif annotations == "github":
        for line in github(result, undecided):
            typer.echo(line)
