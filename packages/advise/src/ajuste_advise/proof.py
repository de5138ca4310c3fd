"""The proof: what each line contributes, then all that matter together in fresh blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ajuste.analysis.verdict import family
from ajuste.model.results import Results
from ajuste.model.tunable import Tunable
from ajuste.model.verdict import LINES, LineEffect, Verdict
from ajuste.model.wording import change
from ajuste.run.experiment import MeasuredExperiment
from ajuste.study.schema import Study
from ajuste_advise.budget import ABLATION, MIN_BLOCKS, PROOF
from ajuste_advise.model import Line, Stage
from ajuste_advise.question import Question, setting_factor, together
from ajuste_advise.trying import stage_of
from ajuste_search.tuning.limits import kept_limits
from ajuste_search.tuning.model import KeptLimit
from ajuste_stats.subsets import of_block

FACTOR: Final = "settings"
# Far from the seeds of all other stages, so that none of the proof's trials repeats one that chose.
_OTHER_SEED: Final = 1_000_003
_LEAST_PROOF_BLOCKS: Final = 5


@dataclass(frozen=True)
class Proof:
    """The lines that matter, and the results of the fresh blocks on all of them together."""

    lines: tuple[Line, ...]
    stages: tuple[Stage, ...]
    results: Results
    verdicts: tuple[Verdict, ...]
    limits: tuple[KeptLimit, ...] = ()

    def on(self, metric: str) -> Verdict | None:
        """Return the verdict on ``metric``, if there is one."""
        return next((verdict for verdict in self.verdicts if verdict.metric == metric), None)

    def improves(self, metric: str) -> bool:
        """Return whether the lines are proved to improve ``metric``, and to keep the constraints."""
        verdict = self.on(metric)
        return verdict is not None and verdict.verdict == "improves" and not self.broken

    @property
    def broken(self) -> tuple[KeptLimit, ...]:
        """Return the constraints that the lines break, or are not known to keep."""
        return tuple(limit for limit in self.limits if limit.holds != "yes")


def prove(question: Question, lines: Mapping[str, str]) -> Proof:
    """Leave out the lines that do nothing, and measure the others against the machine as it is, with other seeds."""
    stages: list[Stage] = []
    shares: dict[str, str] = {}
    remaining = dict(lines)
    if len(remaining) > 1:
        question.say("4/4 prove: which lines matter")
        with question.measured(ablation_study(question, remaining)) as measurement:
            results = measurement.results()
        stages.append(stage_of("ablation", results))
        effects = {effect.line: effect for effect in LINES.of(results) if effect.kind == "line"}
        shares = {line: _share(effect) for line, effect in effects.items()}
        useful = {line: level for line, level in remaining.items() if _matters(effects.get(line))}
        remaining = useful or remaining
    question.say("4/4 prove: fresh blocks")
    study = question.study(
        "proof",
        [together(FACTOR, remaining)],
        analysis={
            "explain": question.in_guest,
            "metrics": list(dict.fromkeys((*question.metrics, *question.deciding))),
        },
        design={"seed": (question.request.seed or 1) + _OTHER_SEED},
        budget=question.budget.table(PROOF, 2, min_blocks=_LEAST_PROOF_BLOCKS),
    )
    with question.measured(study) as measurement:
        results = measurement.results()
        limits = _checked(question, measurement, results)
    stages.append(stage_of("proof", results))
    verdicts = tuple(map(question.directed, results.verdicts))
    return Proof(_lines(question, remaining, shares), tuple(stages), results, verdicts, limits)


def _checked(question: Question, measurement: MeasuredExperiment, results: Results) -> tuple[KeptLimit, ...]:
    # The constraints, and whether they hold of all lines together.
    resolved, trials = measurement.experiment.resolved, measurement.store.trials(measurement.run)
    configurations = [each.configuration for each in resolved.configurations]
    names = [each.name for each in configurations if not each.baseline]
    alpha = family(configurations, resolved.deciding, resolved.study.analysis.confidence).alpha
    return kept_limits(question.limits(measurement), names, results.verdicts, trials, alpha)


def ablation_study(question: Question, lines: Mapping[str, str]) -> Study:
    """Return the study that takes ``lines`` apart, within its share of the budget."""
    return question.study(
        "ablation",
        [setting_factor(setting, [level]) for setting, level in lines.items()],
        analysis={"metrics": [question.objective]},
        design={"combine": "ablation"},
        budget=question.budget.table(ABLATION, len(of_block(len(lines), 0)), min_blocks=MIN_BLOCKS),
    )


def _matters(effect: LineEffect | None) -> bool:
    # What is undecided here helped by itself in the screen, so it stays.
    return effect is None or effect.role not in ("useless", "harms")


def _share(effect: LineEffect) -> str:
    alone = change(effect.alone.estimate, effect.scale, effect.unit)
    last = change(effect.last.estimate, effect.scale, effect.unit)
    return f"{alone} alone, {last} beside the others"


def _cost(tunable: Tunable) -> str:
    # What the workload gets of a CPU, others lose.
    takes = tunable.acts_on[:1] == ("cpu-wait",) and tunable.where[0].kind in ("process", "cgroup")
    return "Other programs on the same CPUs get less time." if takes else ""


def _lines(question: Question, lines: Mapping[str, str], shares: Mapping[str, str]) -> tuple[Line, ...]:
    made = []
    for setting, level in lines.items():
        tunable = question.catalogue.find_tunable(setting)
        note = tunable.risk_note if tunable.risk != "none" else _cost(tunable)
        made.append(Line(setting=setting, title=tunable.title, level=level, share=shares.get(setting, ""), note=note))
    return tuple(made)
