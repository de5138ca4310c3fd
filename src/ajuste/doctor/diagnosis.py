"""The diagnosis: what can be detected on this machine, what disturbs, and a verdict. Pure."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from ajuste.analysis.needed import MOST_BLOCKS
from ajuste.doctor.findings import Finding, book, findings_of
from ajuste.doctor.measurements import Measurements
from ajuste.doctor.spread import Spread, blocks_for, drift_percent, effect_after, spread_of

Word = Literal["quiet", "usable", "noisy"]

_FEWEST_RUNS = 3


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Effect(_Part):
    """An effect of that size takes about ``blocks`` blocks (``low`` to ``high``); ``None`` is more than 10,000."""

    effect_percent: float
    blocks: int | None
    low: int | None
    high: int | None


class Power(_Part):
    """So many blocks show effects from ``effect_percent`` on; ``None`` where they are too few for any."""

    blocks: int
    effect_percent: float | None


class Diagnosis(_Part):
    """``findings`` are sorted, the most important first, with those that do not disturb at the end."""

    verdict: Word
    sentence: str
    spread_percent: float
    effects: tuple[Effect, ...]
    powers: tuple[Power, ...]
    findings: tuple[Finding, ...]
    measured: Measurements


def diagnose(measured: Measurements) -> Diagnosis:
    """What ``measured`` means. It must have at least three runs of the job."""
    if len(measured.runs) < _FEWEST_RUNS:
        raise ValueError(f"there are {len(measured.runs)} runs; expected at least {_FEWEST_RUNS}")
    elapsed = np.array([run.elapsed_s for run in measured.runs])
    spread = spread_of(elapsed)
    detectable = book().detectable
    word, sentence = _verdict(spread)
    return Diagnosis(
        verdict=word,
        sentence=sentence,
        spread_percent=spread.run_percent,
        effects=tuple(Effect(**vars(blocks_for(spread, percent))) for percent in detectable.effects_percent),
        powers=tuple(Power(blocks=n, effect_percent=effect_after(spread, n)) for n in detectable.blocks),
        findings=findings_of(measured, _derived(measured, spread)),
        measured=measured,
    )


def _derived(measured: Measurements, spread: Spread) -> dict[str, float | None]:
    """Figures by the names that ``findings.toml`` calls them."""
    elapsed = np.array([run.elapsed_s for run in measured.runs])
    cpu = np.array([run.cpu_s for run in measured.runs])
    began = np.array([run.began_s for run in measured.runs])
    interrupts = measured.interrupts_per_s
    return {
        "spread_percent": spread.run_percent,
        "cpu_time_spread_percent": spread_of(cpu).run_percent if np.all(cpu > 0) else None,
        "waiting_percent": float(100 * max(0.0, 1 - np.sum(cpu) / np.sum(elapsed))),
        "drift_percent": drift_percent(began, elapsed),
        "jitter_p99_us": measured.jitter.p99_us if measured.jitter else None,
        "jitter_max_us": measured.jitter.max_us if measured.jitter else None,
        "interrupts_per_s_per_cpu": None if interrupts is None else interrupts / measured.cpus,
    }


def _verdict(spread: Spread) -> tuple[Word, str]:
    standard = book().verdict
    effect = f"{standard.effect_percent:g} % effects"
    blocks = blocks_for(spread, standard.effect_percent).blocks
    if blocks is None:
        return "noisy", f"noisy: {effect} need more than {MOST_BLOCKS:,} blocks"
    word: Word = "noisy"
    if blocks <= standard.usable_blocks:
        word = "quiet" if blocks <= standard.quiet_blocks else "usable"
    return word, f"{word}: {effect} need about {blocks:,} blocks"
