"""Sections with a table that a study may have besides its verdicts: rules, machines, kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from pydantic import ValidationError

from ajuste.model.base import BaseModel
from ajuste.model.kernel import KERNEL_OPTIONS, PROOFS, KernelOptions, Proof, ShownFeature
from ajuste.model.metric import Metric
from ajuste.model.prediction import PREDICTIONS, RULE, Prediction
from ajuste.model.results import Results
from ajuste.model.three_sigma import THREE_SIGMA, ThreeSigma
from ajuste.model.verdict import MACHINES, AcrossMachines, Agreement, MachineEffect
from ajuste.model.wording import count_of, in_sentence, visible_line
from ajuste.report.document import (
    Block,
    Column,
    Depth,
    Entry,
    Fact,
    Facts,
    Folded,
    Paragraph,
    Row,
    RowGroup,
    Section,
    Subsection,
    Table,
)
from ajuste.report.format import NOTHING, Labels, NumberFormat, common_format
from ajuste.report.tables import deciding_metrics, mean_format
from ajuste.report.verdicts import effect_style, known, word_badge

_COLUMNS: Final = ("Predicted", "Measured", "Residual")

_LEAD: Final = (
    "The rule calls two configurations different if their means differ by more than three standard deviations of the "
    "difference, either between two single values or between two means. It is one more opinion, no verdict: it ignores "
    "common drift, repeated looks, the number of comparisons, and whether a difference is large enough to matter."
)

# Of more configurations a terminal shows only where rule and verdict disagree.
_MOST_BY_RULE: Final = 4

_SOURCE: Final = 'The rule: F. Pukelsheim, "The Three Sigma Rule", The American Statistician 48(2), 1994.'

_THREE_SIGMA_COLUMNS: Final = (
    "Mean",
    "± 3 sd of single values",
    "± 3 sd of the mean",
    "Rule, single values",
    "Rule, means",
)

_MACHINES_LEAD: Final = (
    "Each block ran on one machine and is compared within itself, so a machine's speed affects no effect."
)

_MACHINES_SOURCE: Final = (
    "Whether the effects are equal: R. A. Alexander and D. M. Govern, A New and Simpler Approximation for ANOVA Under "
    "Variance Heterogeneity, Journal of Educational Statistics 19(2), 1994; and D. V. Mehrotra, Improving the "
    "Brown-Forsythe Solution to the Generalized Behrens-Fisher Problem, Communications in Statistics 26(3), 1997."
)

_MACHINES_COLUMNS: Final = ("Blocks", "Effect", "Interval")

_SUMMARY: Final[dict[Agreement, str]] = {
    "depends": "The machines disagree: no verdict applies to all of them.",
    "differ": "The machines agree on the verdicts, but not on how large the effects are.",
    "unknown": "There are too few blocks on more than one machine to tell whether the effects are the same on all.",
    "alike": "No difference between the machines' effects is seen.",
}

MOST_MACHINES: Final = 40
"""Machines that have a line each; of more, ``ENDS`` of each side."""

ENDS: Final = 10

_PROOFS_LEAD: Final = (
    "Read from each running kernel before the measurement. The configuration from which a kernel was built proves "
    "nothing."
)

M = TypeVar("M", bound=BaseModel)


def listing_sections(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Return the sections that ``results`` has, in the order to be shown."""
    sections = (
        kernel_options_section(results),
        machines_section(results, labels),
        predictions_section(results, labels),
        three_sigma_section(results, labels),
        proofs_section(results),
    )
    return tuple(section for section in sections if section is not None)


def _section(
    title: str,
    table: Table,
    lead: str,
    source: str = "",
    *more: Block,
    depth: Depth = "answer",
    brief: int | None = None,
) -> Section:
    footer = (Paragraph(visible_line(source), "dim"),) if source else ()
    blocks = (Paragraph(visible_line(lead)), table, *footer, *more)
    return Section(title, blocks, f"{table.name}-section", depth=depth, brief=brief)


def _columns(
    heading: str, figures: tuple[str, ...], words: tuple[str, ...] = (), optional: str = ""
) -> tuple[Column, ...]:
    # A column of names, then of figures, then of words, of which the one called `optional` may be left out.
    titles = (*figures, *words)
    return (
        Column(heading, figure=False),
        *(Column(title, title not in words, optional=title == optional) for title in titles),
    )


# What a rule of the kernel predicts, beside what was measured.


def predictions_section(results: Results, labels: Labels) -> Section | None:
    """Return the table; ``None`` without a rule, or if it predicts nothing here."""
    groups = tuple(
        RowGroup(
            f"{metric.title}{f', in {fmt.unit}' if (fmt := prediction_format(predictions, metric)).unit else ''}", lines
        )
        for metric in results.metrics
        if (predictions := metric_predictions(results, metric))
        and (lines := _lines(results, predictions, metric, labels))
    )
    rule = RULE.of(results)
    if rule is None or not groups:
        return None
    title = f"Predicted: {in_sentence(rule.title)}"
    columns = _columns(labels.heading or "Configuration", _COLUMNS, ("Because",), "Because")
    table = Table(columns, groups, "predictions", title)
    return _section(title, table, rule.says, f"Source: {rule.source}.", brief=0)


def metric_predictions(results: Results, metric: Metric) -> tuple[Prediction, ...]:
    """Return the predictions of one metric, in the order of the configurations."""
    order = {configuration.name: place for place, configuration in enumerate(results.configurations)}
    predictions = (p for p in PREDICTIONS.of(results) if p.metric == metric.name and p.configuration in order)
    return tuple(sorted(predictions, key=lambda p: order[p.configuration]))


def prediction_format(predictions: tuple[Prediction, ...], metric: Metric) -> NumberFormat:
    """Return one format for predicted and measured figures."""
    residuals = [abs(p.residual) for p in predictions if p.residual]
    return common_format(
        [v for p in predictions for v in (p.low, p.high, p.measured) if v is not None], metric.unit, residuals
    )


def predicted_text(prediction: Prediction, fmt: NumberFormat) -> str:
    """Return the figure, or the range."""
    if prediction.low == prediction.high:
        return fmt.text(prediction.low)
    return f"{fmt.text(prediction.low)} … {fmt.text(prediction.high)}"


def residual_text(prediction: Prediction, fmt: NumberFormat) -> str:
    """Return the error of the prediction, in the metric's unit."""
    if prediction.residual is None:
        return NOTHING
    within = prediction.residual == 0 and prediction.low < prediction.high
    return "within" if within else fmt.signed(prediction.residual)


def _lines(results: Results, predictions: tuple[Prediction, ...], metric: Metric, labels: Labels) -> tuple[Row, ...]:
    fmt = prediction_format(predictions, metric)
    configurations = {configuration.name: configuration for configuration in results.configurations}
    return tuple(
        Row(
            (
                labels.short(configurations[prediction.configuration]),
                predicted_text(prediction, fmt),
                NOTHING if prediction.measured is None else fmt.text(prediction.measured),
                residual_text(prediction, fmt),
                prediction.why,
            )
        )
        for prediction in predictions
    )


# The answer of the 3-sigma rule, beside the verdicts.


def three_sigma_section(results: Results, labels: Labels) -> Section | None:
    """Return the table; ``None`` if the study did not ask for it."""
    groups = tuple(
        RowGroup(
            f"{metric.title}{f', in {fmt.unit}' if (fmt := mean_format(results, metric)).unit else ''}",
            lines,
            _disagreements(results, metric, labels),
        )
        for metric in results.metrics
        if (lines := _three_sigma_lines(results, metric, labels))
    )
    if not groups:
        return None
    disagreeing = sum(row.disagrees for row in THREE_SIGMA.of(results))
    cases = f"disagree in {count_of(disagreeing, 'case')}" if disagreeing else "agree here"
    summary = f"Rule and verdict {cases}."
    title = "What the 3-sigma rule says"
    columns = _columns(labels.heading or "Configuration", _THREE_SIGMA_COLUMNS, ("Verdict",))
    brief = len(results.configurations) > _MOST_BY_RULE
    return _section(title, Table(columns, groups, "three-sigma", title, brief=brief), f"{_LEAD} {summary}", _SOURCE)


def _disagreements(results: Results, metric: Metric, labels: Labels) -> str:
    names = labels.by_name(results)
    by_reason: dict[str, list[str]] = {}
    for row in THREE_SIGMA.of(results):
        if row.metric == metric.name and row.disagrees and row.configuration in names:
            by_reason.setdefault(row.why, []).append(names[row.configuration])
    disagreements = " ".join(f"{'; '.join(configurations)}: {why}" for why, configurations in by_reason.items())
    return f"{visible_line(metric.title)}: {disagreements or 'rule and verdict agree.'}"


def _three_sigma_lines(results: Results, metric: Metric, labels: Labels) -> tuple[Row, ...]:
    fmt = mean_format(results, metric)
    configurations = {configuration.name: configuration for configuration in results.configurations}
    return tuple(
        Row(
            (labels.short(configurations[row.configuration]), *_cells(row, fmt)),
            remark=row.why if row.disagrees else "",
            marked=row.disagrees,
        )
        for row in THREE_SIGMA.of(results)
        if row.metric == metric.name and row.configuration in configurations
    )


def _cells(row: ThreeSigma, fmt: NumberFormat) -> tuple[Entry, ...]:
    verdict = "baseline" if row.verdict is None else word_badge(row.verdict)
    return (
        fmt.text(row.mean),
        _range(row.values, fmt),
        _range(row.means, fmt),
        _word(row.values_differ),
        _word(row.means_differ),
        verdict,
    )


def _range(ends: tuple[float, float] | None, fmt: NumberFormat) -> str:
    return NOTHING if ends is None else f"{fmt.text(ends[0])} … {fmt.text(ends[1])}"


def _word(differs: bool | None) -> str:
    return NOTHING if differs is None else "different" if differs else "not different"


# Machines side by side: the effects in the blocks of each, and whether they say the same.


def machines_section(results: Results, labels: Labels) -> Section | None:
    """Return the deciding effects by machine; ``None`` if there is one machine only."""
    deciding = deciding_metrics(results)
    effects = [effect for effect in MACHINES.of(results) if effect.metric in deciding]
    if not effects:
        return None
    metrics = {metric.name: metric for metric in results.metrics}
    groups = tuple(_group(results, effect, metrics[effect.metric], labels) for effect in effects)
    worst = next(agreement for agreement in _SUMMARY if any(effect.agreement == agreement for effect in effects))
    lead = f"{_MACHINES_LEAD} {_SUMMARY[worst]}"
    title = "Results per machine"
    columns = _columns("Machine", _MACHINES_COLUMNS, ("Verdict there",))
    brief = max(len(effect.machines) for effect in effects) > ENDS
    return _section(title, Table(columns, groups, "machines", title, brief=brief), lead, _MACHINES_SOURCE)


def shown_machines(machines: Sequence[MachineEffect]) -> tuple[tuple[MachineEffect, ...], int]:
    """Return the machines that have a line, from the least effect to the largest, and how many have none. A few stay
    in the order of their names.
    """
    if len(machines) <= ENDS:
        return tuple(machines), 0
    ordered = sorted(machines, key=estimate_of)
    if len(ordered) <= MOST_MACHINES:
        return tuple(ordered), 0
    return (*ordered[:ENDS], *ordered[-ENDS:]), len(ordered) - 2 * ENDS


def estimate_of(effect: MachineEffect) -> float:
    """Return the sort key of a machine."""
    estimate = known(effect.estimate)
    return 0.0 if estimate is None else estimate


def _group(results: Results, across: AcrossMachines, metric: Metric, labels: Labels) -> RowGroup:
    verdict = next(v for v in results.verdicts if (v.configuration, v.metric) == (across.configuration, across.metric))
    machines, omitted = shown_machines(across.machines)
    verdicts = [
        verdict.model_copy(update={"estimate": e.estimate, "low": e.low, "high": e.high, "verdict": e.verdict})
        for e in machines
    ]
    style = effect_style(verdicts, metric.unit)
    marked = across.agreement in ("depends", "differ")
    configuration = next(c for c in results.configurations if c.name == across.configuration)
    tested = "" if across.p_value is None else f" (p = {across.p_value:.2g} that all are equal)"
    others = f"; {omitted:,} machines between these ends are omitted" if omitted else ""
    rows = []
    for effect, local in zip(machines, verdicts, strict=True):
        interval = NOTHING if effect.low is None and effect.high is None else style[local.scale].interval(local)
        figures = (str(effect.blocks), style[local.scale].estimate(local), interval)
        rows.append(Row((effect.machine, *figures, word_badge(effect.verdict)), marked=marked))
    return RowGroup(
        f"{metric.title}, {labels.short(configuration)}{tested}{others}",
        tuple(rows),
        summary=f"{count_of(len(across.machines), 'machine')}; --verbose lists them.",
    )


# What the kernels of a run were seen to have, before anything was measured.


def kernel_proofs(results: Results) -> dict[str, Proof]:
    """Return the proofs by the machine's name, without any that cannot be parsed."""
    return _environment_documents(results, PROOFS, Proof)


def proofs_section(results: Results) -> Section | None:
    """Return the table with its evidence; ``None`` if nothing had to be proved."""
    proofs = kernel_proofs(results)
    if not proofs:
        return None
    groups = tuple(RowGroup(name, tuple(map(_proved, proof.features))) for name, proof in proofs.items())
    title = "Features found in the running kernels"
    table = Table(_columns("Feature", (), ("Expected", "Seen", "Its configuration")), groups, "proofs", title)
    evidence = tuple(
        Subsection(name, (Facts(tuple(map(_evidence, proof.features))),), proof.build) for name, proof in proofs.items()
    )
    return _section(title, table, _PROOFS_LEAD, "", Folded("Evidence", evidence), depth="detail")


def _proved(seen: ShownFeature) -> Row:
    options = ", ".join(f"{name.removeprefix('CONFIG_')}={value}" for name, value in seen.options.items())
    return Row(tuple(map(visible_line, (seen.feature, seen.claim, seen.state, options))))


def _evidence(seen: ShownFeature) -> Fact:
    return Fact(seen.feature, seen.state, items=tuple(f"{sight.what}: {sight.found}" for sight in seen.evidence))


# In which build options the kernels of a run differ.


def kernel_options_section(results: Results) -> Section | None:
    """Return the table; ``None`` without known differences."""
    kernels = _environment_documents(results, KERNEL_OPTIONS, KernelOptions)
    groups = tuple(
        RowGroup(
            _kernel_title(name, kernel),
            tuple(Row((o.name, o.baseline, o.own, o.because, o.title)) for o in kernel.options),
        )
        for name, kernel in kernels.items()
    )
    if not groups:
        return None
    title = "How the kernels' options differ"
    columns = _columns("Option", ("Baseline", "Here"), ("Because", "What it is"), "What it is")
    lead = "Compares the configurations that they were built from with that of the baseline's kernel."
    return _section(title, Table(columns, groups, "kernel-options", title), lead, depth="detail")


def kernel_option_sentences(results: Results, most: int) -> Iterator[str]:
    """Yield for each kernel the first ``most`` options that differ from the baseline's."""
    for name, kernel in _environment_documents(results, KERNEL_OPTIONS, KernelOptions).items():
        options = [f"{option.name}={option.own} (was {option.baseline})" for option in kernel.options[:most]]
        rest = kernel.total - len(options)
        title = f"{name}: {_options_differ(kernel)}"
        yield ": ".join(filter(None, (title, ", ".join((*options, f"and {rest} more") if rest else options))))


def _kernel_title(name: str, kernel: KernelOptions) -> str:
    excerpt = "" if kernel.total == len(kernel.options) else f", of which {len(kernel.options)} are shown"
    return f"{name}: {_options_differ(kernel)}{excerpt}"


def _options_differ(kernel: KernelOptions) -> str:
    count = count_of(kernel.total, "option") if kernel.total else "no options"
    return f"{count} {'differs' if kernel.total == 1 else 'differ'} from {kernel.baseline}"


def _environment_documents(results: Results, place: str, form: type[M]) -> dict[str, M]:
    # Documents in the environment at `place` that cannot be parsed are left out.
    documents = results.environment.get(place)
    parsed = {}
    for name, document in documents.items() if isinstance(documents, Mapping) else ():
        try:
            parsed[str(name)] = form.model_validate(document)
        except ValidationError:
            continue
    return parsed
