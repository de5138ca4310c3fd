"""Which configuration of a run may be put to use: one that the verdicts are for."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz import process

from ajuste.model.error import RequestError
from ajuste.model.results import Results
from ajuste.model.tuning import KeptLimit
from ajuste.model.verdict import Verdict
from ajuste.report.verdict_words import ORDER, tally


def supported(results: Results, wanted: str | None = None) -> str:
    """The name of the configuration to export: ``wanted``, or the best that is better than the baseline.

    It is better if it improves a deciding metric and worsens none. A person may also want one that only differs on
    metrics that have no better or worse. Raises RequestError where the verdicts support none.
    """
    if wanted is not None:
        _require(results, wanted)
        return wanted
    better = [
        name
        for name, verdicts in _deciding(results).items()
        if _is_better(verdicts) and not _constraints_not_kept(results, name)
    ]
    if not better:
        raise RequestError(
            f"no configuration of the run {results.run} is known to be better than {_baseline(results)}: "
            f"{_what_was_said(results)}",
            hint=_what_can_be_done(results),
        )
    return min(better, key=lambda name: _at_least(_deciding(results)[name]))


def deciding_verdicts(results: Results, configuration: str) -> list[Verdict]:
    """What was said of a configuration on the metrics that the study is about."""
    return _deciding(results).get(configuration, [])


def _require(results: Results, wanted: str) -> None:
    names = [one.name for one in results.configurations]
    if wanted not in names:
        nearest = [name for name, _, _ in process.extract(wanted, names, limit=3, score_cutoff=50)]
        raise RequestError(
            f"the run {results.run} has no configuration {wanted!r}",
            hint=f"did you mean {' or '.join(map(repr, nearest))}?" if nearest else f"there are {len(names)}",
        )
    if wanted == _baseline(results):
        raise RequestError(f"{wanted} is the baseline of the run {results.run}: there is nothing to change")
    if broken := _constraints_not_kept(results, wanted):
        raise RequestError(f"{wanted} is not known to keep the constraint {broken[0].text!r} of the search")
    verdicts = deciding_verdicts(results, wanted)
    against = [v for v in verdicts if v.verdict == "worsens"]
    if against or not any(v.verdict in ("improves", "differs") for v in verdicts):
        said = "; ".join(f"{v.metric}: {v.verdict}" for v in against or verdicts) or "nothing was measured"
        raise RequestError(f"the verdict on {wanted} does not support putting it to use: {said}")


def _constraints_not_kept(results: Results, name: str) -> Sequence[KeptLimit]:
    return results.tuning.not_kept(name) if results.tuning is not None else ()


def _deciding(results: Results) -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for verdict in results.verdicts:
        if verdict.deciding:
            found.setdefault(verdict.configuration, []).append(verdict)
    return found


def _is_better(verdicts: Sequence[Verdict]) -> bool:
    words = {verdict.verdict for verdict in verdicts}
    return "improves" in words and "worsens" not in words


def _at_least(verdicts: Sequence[Verdict]) -> float:
    """The least that is gained on the first metric that improves, smaller being better: not the luckiest estimate."""
    first = next(verdict for verdict in verdicts if verdict.verdict == "improves")
    limit = first.high if first.direction == "lower" else first.low
    if limit is None:
        return float("inf")
    return limit if first.direction == "lower" else -limit


def _baseline(results: Results) -> str:
    return next(one.name for one in results.configurations if one.baseline)


def _what_was_said(results: Results) -> str:
    said = tally(verdict for verdicts in _deciding(results).values() for verdict in verdicts)
    return ", ".join(f"{count} × {word}" for word, count in said) or "nothing was compared"


def _what_can_be_done(results: Results) -> str:
    words = {verdict.verdict for verdicts in _deciding(results).values() for verdict in verdicts}
    if "differs" in words and "improves" not in words:
        return "the metric has no better or worse: name the configuration that you want"
    if words & {"improves"}:
        return "what improves one metric worsens another; name the study's metrics by what matters to you"
    if "undecided" in words:
        return "measure more blocks: the same command goes on with a larger budget"
    return f"a configuration can be exported if it {ORDER[0]} a metric of the study"
