"""The rules by name, and their forecasts beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from ajuste.analysis.prediction.forecast import Forecast
from ajuste.analysis.prediction.nice_weights import nice_weights
from ajuste.analysis.prediction.writeback_delay import writeback_delay
from ajuste.analysis.wording import number, quantity
from ajuste.model.metric import Metric
from ajuste.model.results import Measured, Prediction, Rule
from ajuste.study.resolved import ResolvedStudy

FORECASTS: Mapping[str, Callable[[ResolvedStudy], Iterable[Forecast]]] = MappingProxyType(
    {"nice-weights": nice_weights, "writeback-delay": writeback_delay}
)
"""What each rule of ``catalogue/rules.toml`` says of a study."""


def predictions(study: ResolvedStudy, measured: Sequence[Measured]) -> tuple[Prediction, ...]:
    """What the study's rule predicts, with what was measured; empty where the study names no rule."""
    if study.rule is None:
        return ()
    means = {(c.name, name): summary.mean for c in measured for name, summary in c.metrics.items()}
    return tuple(
        _beside(forecast, means.get((forecast.configuration, forecast.metric)))
        for forecast in FORECASTS[study.rule.name](study)
    )


def agreement(rule: Rule, found: Sequence[Prediction], metrics: Iterable[Metric]) -> str:
    """How well the rule predicted each of ``metrics``, in a sentence; nothing where nothing can be compared."""
    sentences = []
    for metric in metrics:
        own = [(p, abs(p.residual)) for p in found if p.metric == metric.name and p.residual is not None]
        if not own:
            continue
        worst, off = max(own, key=lambda pair: pair[1])
        title = f"{metric.title[:1].lower()}{metric.title[1:]}"
        many = "the one configuration" if len(own) == 1 else f"all {len(own)} configurations"
        if off == 0:
            sentences.append(f"The rule ({rule.title}) predicts the {title} rightly in {many}.")
        else:
            most = quantity(number(off), metric.unit)
            sentences.append(
                f"The rule ({rule.title}) predicts the {title} to within {most} in {many}"
                + (f", worst at {worst.configuration}." if len(own) > 1 else ".")
            )
    return " ".join(sentences)


def _beside(forecast: Forecast, mean: float | None) -> Prediction:
    return Prediction(
        configuration=forecast.configuration,
        metric=forecast.metric,
        low=forecast.low,
        high=forecast.high,
        measured=mean,
        residual=None if mean is None else max(mean - forecast.high, 0.0) + min(mean - forecast.low, 0.0),
        why=forecast.why,
    )
