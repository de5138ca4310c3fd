"""The studies of a campaign: the proposal beside the baseline, on each workload."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ajuste.catalogue.loader import Catalogue
from ajuste.kernel.spec import kernel_kind, parse_spec
from ajuste.machine.home import find_program
from ajuste.model.capability import Asked
from ajuste.model.error import RequestError
from ajuste.model.metric import Metric
from ajuste.model.plan import Command
from ajuste.model.trial import COMMAND_FACTOR, KERNEL_FACTOR, SETTINGS_FACTOR
from ajuste.model.tunable import SERVICE_PREFIX
from ajuste.outputs.base import BASE_METRICS
from ajuste.study.command_line.request import CommandLine
from ajuste.study.factors import WORKLOAD_PREFIX, canonical, is_tunable, set_by
from ajuste.study.metrics import find_metric
from ajuste.study.problem import HINT, nearest
from ajuste.study.read import checked_study
from ajuste.study.resolved import ResolvedConfiguration, ResolvedStudy
from ajuste.study.schema import Study
from ajuste_lab.campaign.candidates import PLACE, Candidates
from ajuste_lab.campaign.model import CANDIDATE, Campaign
from ajuste_lab.campaign.promotion import ReadBackPlan, can_be_read_back

BASELINE: Final = "baseline"
PROPOSAL: Final = "proposal"

LONGEST_LEVEL: Final = 500
MOST_SETTINGS: Final = 50


def check_campaign(campaign: Campaign, studies: tuple[Study, ...], known: Catalogue) -> Campaign:
    """Return the campaign with its tunables' canonical names. Raises RequestError for a goal that cannot be judged, and
    for a tunable that may not be proposed.
    """
    names = [canonical(name, known) for name in campaign.tunables]
    for name in names:
        if is_tunable(name) and not campaign.refereed:
            known.find_tunable(name)  # raises where there is none
        if name == COMMAND_FACTOR or name.startswith((WORKLOAD_PREFIX, SERVICE_PREFIX)):
            raise RequestError(
                f"--tunable {name}: a proposal may not change the workload", hint="name tunables, kernel or sched_ext"
            )
    for study in studies:
        if any(factor.name == COMMAND_FACTOR for factor in study.factors):
            raise RequestError(f"the study {study.name} compares commands; a campaign requires one workload")
        goals_of(campaign, study, known)
        proposed_study(study, campaign, {}, known, command="--study", blocks=campaign.explore)
    return campaign.model_copy(update={"tunables": tuple(dict.fromkeys(names))})


def goals_of(campaign: Campaign, study: Study, known: Catalogue) -> tuple[Metric, ...]:
    """Return the goal, and its witness if it has one. Raises RequestError.

    A workload could print any figure. So a printed goal counts only as far as a figure improves with it that Ajuste
    measures itself: the witness.
    """
    goal = find_metric(campaign.metric, study, known)
    if campaign.better is not None:
        goal = goal.model_copy(update={"direction": campaign.better})
    named = [goal]
    if campaign.witness is not None:
        if campaign.witness not in BASE_METRICS:
            raise RequestError(
                f"--witness {campaign.witness}: Ajuste does not measure this itself"
                + (nearest(campaign.witness, BASE_METRICS) or ""),
                hint="choose a metric such as elapsed, user-time or context-switches",
            )
        named.append(find_metric(campaign.witness, study, known))
    elif goal.name not in BASE_METRICS and not (campaign.refereed and campaign.refereed.trusted):
        printed = "the score" if campaign.refereed else f"--metric {goal.name}"
        trust = ", or --trust-score if no candidate can change what is printed" if campaign.refereed else ""
        raise RequestError(
            f"{printed}: the workload prints this figure, and a proposal could make it print another",
            hint=f"add --witness with a metric that Ajuste measures itself, such as --witness elapsed{trust}",
        )
    for metric in named:
        undirected = metric.direction == "none"
        if undirected or metric.quantile is not None:
            why = "has no better direction" if undirected else "is a percentile"
            raise RequestError(
                f"the metric {metric.name} {why}; a campaign requires a mean that can improve",
                hint=f"choose which is better: --metric {metric.name}=lower" if undirected else None,
            )
    return tuple(named)


def checked_settings(
    settings: Mapping[str, str], campaign: Campaign, known: Catalogue, rights: Asked
) -> dict[str, str]:
    """Return the proposal with the canonical names of its tunables. Raises RequestError if it is not allowed."""
    if campaign.refereed:
        if set(settings) != {CANDIDATE} or not re.fullmatch("[0-9a-f]{64}", settings[CANDIDATE]):
            raise RequestError(
                f"the campaign {campaign.name} judges {campaign.refereed.path}, not settings",
                hint="change it, and run its ajuste campaign referee again",
            )
        return dict(settings)
    if not settings:
        raise RequestError("nothing is proposed", hint="give at least one setting, such as --set NAME=LEVEL")
    if len(settings) > MOST_SETTINGS:
        raise RequestError(f"{len(settings)} settings are proposed; expected at most {MOST_SETTINGS}")
    checked = {}
    for name, level in settings.items():
        tunable = canonical(name[:LONGEST_LEVEL], known)
        if tunable not in campaign.tunables:
            allowed = ", ".join(campaign.tunables[:10])
            raise RequestError(
                f"--set {name[:80]}: this campaign does not allow it; expected {allowed}",
                hint=f"see ajuste campaign show {campaign.name}",
            )
        if not level.strip() or len(level) > LONGEST_LEVEL:
            raise RequestError(f"--set {tunable}: expected a level of 1 to {LONGEST_LEVEL} characters")
        if tunable == KERNEL_FACTOR:
            rights.require(kernel_kind(level.strip()), level.strip(), "--set kernel")
        checked[tunable] = level.strip()
    return checked


def proposed_study(
    study: Study,
    campaign: Campaign,
    settings: Mapping[str, str],
    known: Catalogue,
    *,
    command: str,
    blocks: int,
    incumbent: str = "",
) -> Study:
    """Return ``study`` with the proposal beside its baseline, which for a referee is the ``incumbent``. Raises
    RequestError for an invalid level. ``command`` is the option or command that messages name.
    """
    document = study.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"factors", "tune"})
    directory = study.source.directory if study.source else Path()
    base: dict[str, str] = {}
    for factor in study.factors:
        base |= {canonical(name, known): level for name, level in set_by(factor, factor.baseline_level).items()}
    if campaign.refereed:
        both = {BASELINE: incumbent or campaign.refereed.start}
        if settings:
            both[PROPOSAL] = settings[CANDIDATE]
        document["workload"] |= _both_candidates(study, Candidates(directory), both)
        document["workload"].pop("command", None)
        document["factor"] = [{"name": COMMAND_FACTOR, "levels": list(both)}]
    else:
        levels = {BASELINE: base, PROPOSAL: {**base, **settings}}
        document["factor"] = [
            {
                "name": SETTINGS_FACTOR,
                "settings": levels if settings else {BASELINE: base},
                "baseline": BASELINE,
                "successor": any(factor.successor for factor in study.factors),
            }
        ]
    metrics = [campaign.metric, *([campaign.witness] if campaign.witness else [])]
    # The number of blocks is fixed, so no precision can be asked for.
    analysis = {name: value for name, value in document["analysis"].items() if name != "precision"}
    if study.analysis.describe is not None:
        analysis["describe"] = [name for name in study.analysis.describe if name not in metrics]
    document["analysis"] = {
        **analysis,
        "metrics": metrics,
        "explain": False,
        "decide": "effect",
    }
    document["design"] = {"warm_up": study.design.warm_up, "combine": "all", "allocation": "all"}
    document["budget"] = {"min_blocks": blocks, "max_blocks": blocks, "max_minutes": study.budget.max_minutes}
    return checked_study(document, CommandLine({}, HINT, command, directory), known, parse_kernel=parse_spec)


def _both_candidates(study: Study, candidates: Candidates, both: Mapping[str, str]) -> dict[str, Any]:
    command = study.workload.command or ()
    return {
        "variant": [
            {"name": name, "command": [word.replace(PLACE, candidates.place(digest)) for word in command]}
            for name, digest in both.items()
        ],
        "files": [
            *study.workload.files,
            *dict.fromkeys(file for digest in both.values() for file in candidates.files(digest)),
        ],
    }


# Every tunable is read back by a command in the trial itself: afterwards the guest is gone.


def with_read_back(resolved: ResolvedStudy) -> tuple[ResolvedStudy, dict[str, ReadBackPlan]]:
    """Return ``resolved`` with a command after the workload for each written tunable, and each configuration's plan of
    which command reads which. On a host the agent itself reports the values when it restores them. Raises RequestError
    for a tunable that cannot be read back.
    """
    if resolved.study.target.on_host:
        return resolved, {}
    reader = find_program("cat")
    if reader is None:
        raise RequestError("program cat not found", hint="install the package coreutils")
    plans = {}
    reading = []
    for entry in resolved.configurations:
        plans[entry.configuration.name] = _read_back(entry)
        # Only locations in files can be read back, and these have a path.
        reads = (Command(argv=(reader, str(write.location.model_dump()["path"]))) for write in entry.writes)
        reading.append(entry.model_copy(update={"after": (*entry.after, *reads)}))
    programs = tuple(dict.fromkeys((*resolved.programs, reader))) if resolved.writes else resolved.programs
    return resolved.model_copy(update={"configurations": tuple(reading), "programs": programs}), plans


def _read_back(configuration: ResolvedConfiguration) -> ReadBackPlan:
    for write in configuration.writes:
        if not can_be_read_back(write):
            raise RequestError(
                f"{write.tunable} cannot be read back after the workload in a guest", hint="propose other tunables"
            )
    return ReadBackPlan(dict(enumerate(configuration.writes, len(configuration.after))))
