"""The way from a workload to advice: look, choose, find, prove."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from ajuste.model.explanation import EXPLANATIONS
from ajuste.model.verdict import Verdict
from ajuste.model.wording import count_of, listed, percent
from ajuste_advise.answer import answer_sentence
from ajuste_advise.candidates import Choice, choose, within
from ajuste_advise.look import TRIALS, Seen, take_look
from ajuste_advise.model import Advice, Line, Stage, Tried
from ajuste_advise.proof import Proof, prove
from ajuste_advise.question import Question
from ajuste_advise.trying import Screen, limit, screen, screen_blocks, search, smallest_seen

# Spread of trials from which on the answer says that small effects are hard to see.
_NOISY: Final = 0.05
_MOST_REASONS: Final = 3


def advise(question: Question, *, functions: bool = True, dry: bool = False) -> Advice:
    """Find what to change so that the workload gets better, and prove it. Everything is restored after each trial.
    If it is ``dry``, look and choose only, and change nothing.

    Raises RequestError for a request that cannot be carried out or has no time, RunError where the workload fails.
    """
    seen = take_look(question, functions=functions)
    look = seen.look
    choice = choose(question, seen, dry=dry)
    stages = [Stage(name="look", run=look.run, trials=TRIALS, blocks=TRIALS, answer="")]
    if dry or not choice.candidates:
        return _advice(question, seen, choice, None, None, stages)
    blocks = question.budget.blocks(screen_blocks(question, look.spread), look.trial_s, _at_once(question))
    choice = within(choice, question.budget.levels(look.trial_s, blocks, _at_once(question)))
    screened = screen(question, choice, blocks)
    proof = None
    further: list[Stage] = []
    if promising := screened.promising(question.smallest_effect):
        proof, further = _proved(question, promising)
    if proof is None:
        # More blocks show what the first ones did not, or how much better any level may still be.
        screened = limit(question, choice, blocks)
        if certain := screened.certain:
            proof, further = _proved(question, certain)
    stages += [screened.stage, *further]
    return _advice(question, seen, choice, screened, proof, stages)


def _proved(question: Question, promising: Mapping[str, Sequence[Tried]]) -> tuple[Proof | None, list[Stage]]:
    # The proof of the best combination, and the stages up to it; no proof where no combination looks better.
    best = search(question, promising)
    if not best.lines:
        return None, list(best.stages)
    proof = prove(question, best.lines)
    return proof, [*best.stages, *proof.stages]


def _at_once(question: Question) -> int:
    # Trials of this machine run one by one; guests under the virtual clock side by side.
    if not question.in_guest or question.request.clock == "wall":
        return 1
    return question.options.jobs or os.cpu_count() or 1


def _advice(
    question: Question,
    seen: Seen,
    choice: Choice,
    screened: Screen | None,
    proof: Proof | None,
    stages: list[Stage],
) -> Advice:
    tried = screened.tried if screened is not None else ()
    at_most = screened.at_most if screened is not None else None
    verdict = proof.on(question.objective) if proof is not None else None
    lines = proof.lines if proof is not None else ()
    proved = proof is not None and proof.improves(question.objective)
    broken = proof.broken if proof is not None else ()
    explanations = EXPLANATIONS.of(proof.results) if proof is not None and proved else ()
    return Advice(
        workload=" ".join(map(shlex.quote, question.request.commands[0])),
        answer=answer_sentence(seen.look, choice, tried, lines, verdict, broken, at_most, question.budget),
        look=seen.look,
        candidates=choice.candidates,
        untried=choice.untried,
        tried=tried,
        lines=lines if proved else (),
        proof=verdict,
        limits=proof.limits if proof is not None else (),
        others=_others(proof, question.objective) if proved else (),
        why=explanations[0].sentences[:_MOST_REASONS] if explanations else (),
        at_most=at_most,
        stages=tuple(stages),
        commands=_next(stages[-1].run, verdict) if proved and verdict is not None else (),
        notes=_notes(question, seen, stages, lines if proved else (), tried),
    )


def _next(run: str, verdict: Verdict) -> tuple[str, ...]:
    # Of a metric without a better direction an export wants the configuration.
    return (shlex.join(("ajuste", "export", run, verdict.configuration)), f"ajuste report {run}")


def _others(proof: Proof | None, objective: str) -> tuple[Verdict, ...]:
    verdicts = proof.verdicts if proof is not None else ()
    return tuple(verdict for verdict in verdicts if verdict.metric != objective and verdict.deciding)


def _notes(
    question: Question, seen: Seen, stages: Sequence[Stage], lines: Sequence[Line], tried: Sequence[Tried]
) -> tuple[str, ...]:
    notes = []
    if failed := sum(stage.failed for stage in stages):
        notes.append(f"{failed} of {count_of(sum(stage.trials for stage in stages), 'trial')} failed and do not count.")
    if seen.look.spread >= _NOISY:
        notes.append(_noise(question, seen.look.spread, stages))
    advised = {line.setting for line in lines}
    best = max((row.gain for row in tried if row.setting in advised), default=math.inf)
    alike = [
        f"{row.setting}={row.level}"
        for row in tried
        if row.setting not in advised and row.keeps and row.gain >= best - question.smallest_effect
    ]
    if alike:
        notes.append(f"By itself {listed(alike)} looked as good.")
    return tuple(notes)


def _noise(question: Question, spread: float, stages: Sequence[Stage]) -> str:
    text = f"Trials of the workload as it is vary by {percent(round(spread, 2))}"
    screened = next((stage for stage in stages if stage.name == "screen"), None)
    if screened is None:
        return f"{text}."
    least = smallest_seen(spread, screened.blocks)
    if least <= question.smallest_effect:
        return f"{text}: small effects may not be seen."
    return f"{text}: an effect of less than {percent(round(least, 2))} cannot be seen in {question.budget} here."
