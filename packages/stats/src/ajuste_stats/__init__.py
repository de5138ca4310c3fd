"""Verdicts on measurements that may be looked at at any time.

The names below are the public interface: each is documented where it is defined, and loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ajuste_stats.comparison import Monitor, Verdict, compare
    from ajuste_stats.confidence_sequences import Interval, mean_interval, quantile_bounds
    from ajuste_stats.decision import Doubt
    from ajuste_stats.diagnostics import Finding, Naive
    from ajuste_stats.e_values import ErrorBudget, improvement_value
    from ajuste_stats.effects import Effect
    from ajuste_stats.fixed_samples import values_needed
    from ajuste_stats.multiplicity import bonferroni, holm
    from ajuste_stats.precision import Precision, blocks_needed, mean_precision, pair_variance
    from ajuste_stats.random_effects import RandomEffects, pool_effects
    from ajuste_stats.ranking import Luck, RankedTreatment, Ranking
    from ajuste_stats.switchback.design import order_of_block, slices_a_block
    from ajuste_stats.switchback.experiment import judge_switchback
    from ajuste_stats.switchback.judge import SliceJudgement, StayJudgement
    from ajuste_stats.tables import Diagnosed, Diagnosis, diagnose, rank
    from ajuste_stats.terms import Direction, Measure, Quantity, Scale, SwitchbackOrder, Word

__version__: Final = "0.1.0"

__all__ = [
    "Diagnosed",
    "Diagnosis",
    "Direction",
    "Doubt",
    "Effect",
    "ErrorBudget",
    "Finding",
    "Interval",
    "Luck",
    "Measure",
    "Monitor",
    "Naive",
    "Precision",
    "Quantity",
    "RandomEffects",
    "RankedTreatment",
    "Ranking",
    "Scale",
    "SliceJudgement",
    "StayJudgement",
    "SwitchbackOrder",
    "Verdict",
    "Word",
    "blocks_needed",
    "bonferroni",
    "compare",
    "diagnose",
    "holm",
    "improvement_value",
    "judge_switchback",
    "mean_interval",
    "mean_precision",
    "order_of_block",
    "pair_variance",
    "pool_effects",
    "quantile_bounds",
    "rank",
    "slices_a_block",
    "values_needed",
]

_HOMES: Final = {
    "comparison": ("Monitor", "Verdict", "compare"),
    "confidence_sequences": ("Interval", "mean_interval", "quantile_bounds"),
    "decision": ("Doubt",),
    "diagnostics": ("Finding", "Naive"),
    "e_values": ("ErrorBudget", "improvement_value"),
    "effects": ("Effect",),
    "fixed_samples": ("values_needed",),
    "multiplicity": ("bonferroni", "holm"),
    "precision": ("Precision", "blocks_needed", "mean_precision", "pair_variance"),
    "random_effects": ("RandomEffects", "pool_effects"),
    "ranking": ("Luck", "RankedTreatment", "Ranking"),
    "switchback.design": ("order_of_block", "slices_a_block"),
    "switchback.experiment": ("judge_switchback",),
    "switchback.judge": ("SliceJudgement", "StayJudgement"),
    "tables": ("Diagnosed", "Diagnosis", "diagnose", "rank"),
    "terms": ("Direction", "Measure", "Quantity", "Scale", "SwitchbackOrder", "Word"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"ajuste_stats.{home}"), name)
    raise AttributeError(f"module 'ajuste_stats' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
