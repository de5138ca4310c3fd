"""``ajuste campaign``: many proposals for one goal, judged by an evaluator that cannot be fooled."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.command_line import Commands
from ajuste.cli.options import AcceptRisk, Json, Only, Quiet, Wait, example, spread, wait_seconds
from ajuste.machine.home import home
from ajuste.model.capability import Asked
from ajuste.model.error import Place, RequestError
from ajuste.model.wording import change, count_of, listed, percent, visible_line
from ajuste.report.console import Console
from ajuste.report.document import Block, Cell, Column, CommandBlock, Fact, Facts, Report, Row, Section, Table
from ajuste.report.terminal import print_report
from ajuste.run.testbed import RunOptions
from ajuste.study.command_line.request import Request
from ajuste_lab.campaign.model import (
    CAMPAIGN_NAME,
    CANDIDATE,
    MOST_PROPOSALS,
    Campaign,
    CampaignStanding,
    ExploredMetric,
    ProposalRecord,
    Refereed,
)

if TYPE_CHECKING:
    from ajuste_lab.campaign.evaluator import ExperimentBench


app = Commands()

Name = Annotated[str, typer.Argument(metavar="NAME", help="The campaign.")]
Proposals = Annotated[
    int, typer.Option("--proposals", min=1, max=MOST_PROPOSALS, help="How many tests share the error rate.")
]
Explore = Annotated[int, typer.Option("--explore", min=2, max=1000, help="Blocks of an exploration.")]
Confirm = Annotated[int, typer.Option("--confirm", min=5, max=10_000, help="Blocks of a confirmation.")]
ErrorRate = Annotated[
    float, typer.Option("--error-rate", min=0.001, max=0.5, help="The share of promotions that may be false.")
]
PLAIN_NUMBER: Final = r"^\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*$"
EXAMPLE: Final = (
    "ajuste campaign new turns --study granularity --metric involuntary-switches=lower "
    "--tunable sched_min_granularity_ns"
)


@app.callback()
@example(EXAMPLE)
def campaign() -> None:
    """Let people or agents propose settings, and confirm what is really better.

    Each proposal is explored in a few blocks, whose figures its proposer sees. What looks better is confirmed in fresh
    blocks with hidden seeds, and on hidden workloads. All tests of a campaign share one error rate: trying a thousand
    things makes no winner by chance.
    """


@app.command()
@example(EXAMPLE)
def new(
    name: Name,
    study: Annotated[str, typer.Option("--study", metavar="STUDY", help="The study to explore proposals on.")],
    tunable: Annotated[
        list[str], typer.Option("--tunable", metavar="NAME", help="A setting that may be proposed (repeatable).")
    ],
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="The goal (default: the study's first metric). Without a better direction, append =lower or =higher.",
        ),
    ] = None,
    witness: Annotated[
        str | None,
        typer.Option(
            "--witness",
            metavar="NAME",
            help="A metric that Ajuste measures itself and that must improve, too. Required if the workload prints the "
            "goal.",
        ),
    ] = None,
    hidden: Annotated[
        list[str] | None,
        typer.Option("--hidden", metavar="STUDY", help="A study that only confirms, and stays hidden (repeatable)."),
    ] = None,
    proposals: Proposals = 200,
    explore: Explore = 5,
    confirm: Confirm = 40,
    error_rate: ErrorRate = 0.05,
    as_json: Json = False,
) -> None:
    """Begin a campaign: what may be proposed, and what it is judged by."""
    from ajuste.design.goal import split_objective
    from ajuste.kernel.spec import parse_study_spec
    from ajuste.study.builtin import find_study
    from ajuste.study.read import read_study
    from ajuste_lab.campaign.evaluator import Evaluator
    from ajuste_lab.campaign.kept import new_campaign
    from ajuste_lab.campaign.parts import check_campaign

    _check_name(name)
    known = catalogue()
    study_names = (study, *(hidden or ()))
    studies = tuple(
        read_study(find_study(study_name), known, parse_kernel=parse_study_spec) for study_name in study_names
    )
    goal, better = split_objective(metric or studies[0].analysis.metrics[0])
    wanted = check_campaign(
        Campaign(
            name=name,
            study=study,
            study_sha256="",
            metric=goal,
            better=better,
            witness=witness,
            tunables=tuple(tunable),
            proposals=proposals,
            explore=explore,
            confirm=confirm,
            error_rate=error_rate,
        ),
        studies,
        known,
    )
    stored = new_campaign(home(), wanted, tuple(hidden or ()), known)
    standing = Evaluator(stored, known, _bench(quiet=True, accept_risk=False)).standing()
    if as_json:
        print(standing.model_dump_json(indent=2))
    else:
        print_report(campaign_report(standing), Console(file=sys.stdout))


@app.command()
@example("ajuste campaign propose turns --set sched_min_granularity_ns=75ms")
def propose(
    name: Name,
    set_: Annotated[
        list[str], typer.Option("--set", metavar="NAME=LEVEL", help="A setting and its level (repeatable).")
    ],
    accept_risk: AcceptRisk = False,
    wait: Wait = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Propose settings: explore them, and confirm them if they look better."""
    from ajuste_lab.campaign.evaluator import Evaluator
    from ajuste_lab.campaign.kept import find_campaign

    known = catalogue()
    settings = {}
    for text in set_:
        setting, equals, level = text.partition("=")
        if not equals or setting.strip() in settings:
            raise RequestError(f"--set {text[:80]}: expected NAME=LEVEL, each name once")
        settings[setting.strip()] = level
    evaluator = Evaluator(
        find_campaign(home(), name), known, _bench(quiet=quiet or as_json, accept_risk=accept_risk, wait=wait)
    )
    record = evaluator.propose(settings)
    if as_json:
        print(record.model_dump_json(indent=2))
    else:
        print_report(proposal_report(record, evaluator.standing()), Console(file=sys.stdout))


@app.command()
@spread
@example(
    "ajuste campaign referee sorter --candidate build/sorter --better lower --witness user-time -- {candidate} --bench"
)
def referee(
    name: Name,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND [ARGUMENT]...",
            help="Measures the candidate at {candidate} and prints its score (run without a shell).",
            show_default=False,
        ),
    ],
    candidate: Annotated[
        Path, typer.Option("--candidate", metavar="PATH", help="The file or directory that the optimiser changes.")
    ],
    better: Annotated[
        str, typer.Option("--better", metavar="lower|higher", help="Which score is better: lower or higher.")
    ],
    score: Annotated[
        str,
        typer.Option(
            "--score",
            metavar="REGEX",
            help="Where the command prints its score, as the first group (default: a line that is a number).",
            show_default=False,
        ),
    ] = PLAIN_NUMBER,
    witness: Annotated[
        str | None,
        typer.Option(
            "--witness", metavar="NAME", help="A metric that Ajuste measures itself and that must improve, too."
        ),
    ] = None,
    trust_score: Annotated[
        bool,
        typer.Option("--trust-score", help="Require no --witness: no candidate can change what is printed."),
    ] = False,
    proposals: Proposals = 200,
    explore: Explore = 5,
    confirm: Confirm = 40,
    error_rate: ErrorRate = 0.05,
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="KERNEL", help="Measure in a guest with this kernel: debian:6.12.")
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="FILE", help="A file of the command, relative to here (repeatable)."),
    ] = None,
    *,
    request: Annotated[Request, Only("package as_root")],
    timeout: Annotated[str, typer.Option("--timeout", metavar="DURATION", help="Time limit of one trial.")] = "1m",
    max_time: Annotated[
        str, typer.Option("--max-time", metavar="DURATION", help="Time limit of an exploration or a confirmation.")
    ] = "30m",
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 if the candidate is not the best so far.")
    ] = False,
    wait: Wait = None,
    as_json: Json = False,
) -> int:
    """Print the score of an optimiser's candidate, judged beside the best so far.

    Use it in place of the optimiser's own evaluation command. The first call begins the campaign NAME with the
    candidate as it is. Each later one measures the candidate and the best so far in random order, as `propose` does.
    The score is 100 until something is proved to be better, so that an optimiser which keeps what scores best keeps
    nothing else.
    """
    from ajuste.cli.saving import study_text
    from ajuste.kernel.spec import parse_spec
    from ajuste.outputs.pattern import check_pattern
    from ajuste.study.command_line.study import adhoc_document, adhoc_study
    from ajuste.study.site import is_study_file
    from ajuste_lab.campaign.candidates import PLACE
    from ajuste_lab.campaign.referee import judge_candidate, one_referee, refereed_campaign

    _check_name(name)
    if better not in ("lower", "higher"):
        raise RequestError(f"--better {better[:80]}: expected lower or higher")
    if not any(PLACE in word for word in words):
        raise RequestError(f"the command does not name the candidate; expected {PLACE} in one of its words")
    if witness and trust_score:
        raise RequestError("--witness and --trust-score are mutually exclusive")
    try:
        check_pattern(score)
    except RequestError as problem:
        raise RequestError(problem.message, place=Place(f"--score {score}")) from None
    known = catalogue()
    request = replace(
        request,
        commands=(tuple(words),),
        kernel=kernel,
        file=tuple(file or ()),
        metric=(f"score,{better}=regex:{score}",),
        timeout=timeout,
        max_time=max_time,
        name=name,
    )
    files = [*request.file, *([words[0]] if is_study_file(words[0]) and PLACE not in words[0] else [])]
    adhoc_study(request, known, parse_kernel=parse_spec)
    wanted = Campaign(
        name=name,
        study="",
        study_sha256="",
        metric="score",
        witness=witness,
        tunables=(CANDIDATE,),
        proposals=proposals,
        explore=explore,
        confirm=confirm,
        error_rate=error_rate,
        refereed=Refereed(path=str(candidate.absolute()), start="", trusted=trust_score),
    )
    bench = _bench(quiet=True, accept_risk=False, wait=wait)
    with one_referee(home(), name):
        text = study_text(adhoc_document(request, known)[0], f"ajuste campaign referee {name}")
        stored = refereed_campaign(home(), wanted, text, files, known, bench)
        answer = judge_candidate(stored, known, bench)
    print(answer.model_dump_json(indent=2) if as_json else repr(answer.score))
    return 3 if exit_code and not answer.accepted else 0


@app.command()
@example("ajuste campaign show")
def show(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The campaign (default: list all).", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the ledger of a campaign: each proposal, its evidence, and the error budget left."""
    from ajuste_lab.campaign.kept import campaign_names, find_campaign
    from ajuste_lab.campaign.promotion import standing

    if name is None:
        names = campaign_names(home())
        if as_json:
            import json

            print(json.dumps({"campaigns": names}, indent=2))
        else:
            print("\n".join(names) if names else f"No campaign yet. Begin one: {EXAMPLE}")
        return
    stored = find_campaign(home(), name)
    current = standing(stored.campaign, stored.ledger.entries)
    if as_json:
        print(current.model_dump_json(indent=2))
    else:
        print_report(campaign_report(current), Console(file=sys.stdout))


def _check_name(name: str) -> None:
    if not re.fullmatch(CAMPAIGN_NAME, name):
        raise RequestError(f"campaign {name[:80]!r}: expected lower-case letters, digits and hyphens")


def _bench(*, quiet: bool, accept_risk: bool, wait: str | None = None) -> ExperimentBench:
    from ajuste.run.experiment import progress_of
    from ajuste_lab.campaign.evaluator import ExperimentBench

    known = catalogue()
    owner = Asked("owner")  # of its studies; proposals are asked for
    run_options = RunOptions(home(), accept_risk=accept_risk, wait_s=wait_seconds(wait), rights=owner)
    return ExperimentBench(known, run_options, lambda study: progress_of(study, known, quiet=quiet))


# A campaign as a report: what was promoted, what became of each proposal, and the error budget that is left.


_COLUMNS: Final = (
    Column("#"),
    Column("Proposal", figure=False),
    Column("Explored"),
    Column("Evidence"),
    Column("Required"),
    Column("Result", figure=False),
)
_LONGEST: Final = 80


def campaign_report(standing: CampaignStanding) -> Report:
    """Return the report of a campaign: the answer first, then the ledger."""
    sections = []
    if standing.proposals:
        table = Table.of(_COLUMNS, map(_row, standing.proposals), name="ledger", title="Proposals")
        sections.append(Section("Proposals", (table,), name="ledger"))
    rules: tuple[Block, ...] = (Facts(_rules(standing), name="rules"),)
    sections.append(Section("Rules", rules, name="rules"))
    return Report(title=f"Campaign {standing.campaign.name}", headline=_headline(standing), sections=tuple(sections))


def proposal_report(record: ProposalRecord, standing: CampaignStanding) -> Report:
    """Return the report of one proposal: its result, its evidence, and the error budget left."""
    if record.level is None:
        evidence = "not tested"
    elif record.e_value is None:
        evidence = f"not known yet; {1 / record.level:.3g} is required"
    else:
        evidence = f"{record.e_value:.3g}, where {1 / record.level:.3g} is required"
    facts = [
        Fact("Explored", "; ".join(_explored(metric) for metric in record.explored) or "not yet"),
        Fact("Evidence", evidence),
        Fact("Budget", _budget(standing)),
    ]
    if record.reason:
        facts.append(Fact("Reason", visible_line(record.reason)))
    command = CommandBlock("Ledger", (f"ajuste campaign show {standing.campaign.name}",))
    headline = f"Proposal {record.proposal} is {record.status}: {settings_words(record.settings)}."
    section = Section("Proposal", (Facts(tuple(facts)), command), name="proposal")
    return Report(title=f"Campaign {standing.campaign.name}", headline=headline, sections=(section,))


def settings_words(settings: Mapping[str, str]) -> str:
    """Return ``NAME=LEVEL``, separated by commas, shortened and safe to print: anybody may have proposed them."""
    short = {name: level[:12] if name == CANDIDATE else level for name, level in settings.items()}
    text = visible_line(", ".join(f"{name}={level}" for name, level in short.items()))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _headline(standing: CampaignStanding) -> str:
    best = [proposal for proposal in standing.proposals if proposal.status == "promoted"]
    if best:
        named = listed([settings_words(proposal.settings) for proposal in best[-3:]])
        return f"{count_of(len(best), 'proposal')} of {len(standing.proposals)} promoted: {named}."
    if not standing.proposals:
        return f"No proposal yet. {_budget(standing)}."
    return f"Nothing promoted of {count_of(len(standing.proposals), 'proposal')}. {_budget(standing)}."


def _budget(standing: CampaignStanding) -> str:
    left = count_of(standing.tests_left, "test")
    if not standing.tests_left:
        return "No test is left"
    return f"{left} of {standing.campaign.proposals} left, the next at {percent(standing.next_level)}"


def _rules(standing: CampaignStanding) -> tuple[Fact, ...]:
    campaign = standing.campaign
    goal = campaign.metric if campaign.witness is None else f"{campaign.metric}, and {campaign.witness} as witness"
    more = f", and {count_of(campaign.hidden, 'hidden workload')}" if campaign.hidden else ""
    return (
        Fact("Goal", goal),
        Fact("Workload", visible_line(campaign.study + more)),
        Fact("May propose", ", ".join(campaign.tunables)),
        Fact("Blocks", f"{campaign.explore} to explore, {campaign.confirm} to confirm with hidden seeds"),
        Fact("Budget", f"{_budget(standing)}; at most {percent(campaign.error_rate)} of promotions are false"),
        Fact("Ledger", f"{standing.head[:16]} (SHA-256 of all lines, first digits)"),
    )


def _row(record: ProposalRecord) -> Row:
    cells = (
        str(record.proposal),
        settings_words(record.settings),
        Cell(_explored(record.explored[0])) if record.explored else Cell("", missing="not explored"),
        "–" if record.e_value is None else f"{record.e_value:.3g}",
        "–" if record.level is None else f"{1 / record.level:.3g}",
        record.status,
    )
    remark = visible_line(record.reason) if record.status == "refused" else ""
    return Row(cells, remark=remark, marked=record.status == "refused")


def _explored(explored: ExploredMetric) -> str:
    return f"{explored.metric} {change(explored.estimate, explored.scale, explored.unit)}"
