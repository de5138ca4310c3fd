"""Sections with a table that a study may have besides its verdicts: rules, machines, kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from pydantic import ValidationError

from ajuste.model.base import BaseModel
from ajuste.model.kernel import KERNEL_OPTIONS, PROOFS, DifferingOption, KernelOptions, Proof, Shown
from ajuste.model.metric import Metric
from ajuste.model.results import Prediction, Results, ThreeSigma
from ajuste.model.verdict import AcrossMachines, Agreement, MachineEffect, Verdict
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
from ajuste.report.format import NOTHING, Labels, ShownNumber, shown_as
from ajuste.report.metric_table import deciding_metrics, metric_shown
from ajuste.report.verdicts import EffectStyle, effect_style, known, word_badge


def listings_of(results: Results, labels: Labels) -> tuple[Section, ...]:
    """Those that there are, in the order to be shown."""
    found = (
        kernel_options_section(results),
        machines_section(results, labels),
        predictions_section(results, labels),
        three_sigma_section(results, labels),
        proofs_section(results),
    )
    return tuple(section for section in found if section is not None)


def _section(
    title: str,
    table: Table,
    lead: str,
    source: str = "",
    *more: Block,
    depth: Depth = "answer",
    brief: int | None = None,
) -> Section:
    """``lead`` is said before the table and ``source`` after it."""
    said = (Paragraph(visible_line(source), "dim"),) if source else ()
    blocks = (Paragraph(visible_line(lead)), table, *said, *more)
    return Section(title, blocks, f"{table.name}-section", depth=depth, brief=brief)


def _columns(
    heading: str, figures: tuple[str, ...], words: tuple[str, ...] = (), optional: str = ""
) -> tuple[Column, ...]:
    """A column of names, then of figures, then of words, of which the one called ``optional`` may be left out."""
    titles = (*figures, *words)
    return (Column(heading, figure=False), *(Column(one, one not in words, optional=one == optional) for one in titles))


# What a rule of the kernel predicts, beside what was measured.


_COLUMNS: Final = ("Predicted", "Measured", "Residual")


def predictions_section(results: Results, labels: Labels) -> Section | None:
    """The table, or ``None`` if no rule was asked for or it says nothing of this study."""
    groups = tuple(
        RowGroup(
            f"{metric.title}{f', in {shown.unit}' if (shown := prediction_shown(own, metric)).unit else ''}", lines
        )
        for metric in results.metrics
        if (own := predictions_of(results, metric)) and (lines := _lines(results, own, metric, labels))
    )
    if results.rule is None or not groups:
        return None
    title = f"Predicted: {in_sentence(results.rule.title)}"
    columns = _columns(labels.heading or "Configuration", _COLUMNS, ("Because",), "Because")
    table = Table(columns, groups, "predictions", title)
    return _section(title, table, results.rule.says, f"Source: {results.rule.source}.", brief=0)


def predictions_of(results: Results, metric: Metric) -> tuple[Prediction, ...]:
    """The predictions of one metric, in the order of the configurations."""
    order = {configuration.name: place for place, configuration in enumerate(results.configurations)}
    own = (p for p in results.predictions if p.metric == metric.name and p.configuration in order)
    return tuple(sorted(own, key=lambda p: order[p.configuration]))


def prediction_shown(predictions: tuple[Prediction, ...], metric: Metric) -> ShownNumber:
    """One unit for predicted and measured figures."""
    residuals = [abs(p.residual) for p in predictions if p.residual]
    return shown_as(
        [v for p in predictions for v in (p.low, p.high, p.measured) if v is not None], metric.unit, residuals
    )


def predicted_text(prediction: Prediction, shown: ShownNumber) -> str:
    """One figure, or from … to."""
    if prediction.low == prediction.high:
        return shown.text(prediction.low)
    return f"{shown.text(prediction.low)} … {shown.text(prediction.high)}"


def residual_text(prediction: Prediction, shown: ShownNumber) -> str:
    """What the prediction missed by, in the metric's unit."""
    if prediction.residual is None:
        return NOTHING
    within = prediction.residual == 0 and prediction.low < prediction.high
    return "within" if within else shown.signed(prediction.residual)


def _lines(results: Results, own: tuple[Prediction, ...], metric: Metric, labels: Labels) -> tuple[Row, ...]:
    shown = prediction_shown(own, metric)
    configurations = {configuration.name: configuration for configuration in results.configurations}
    return tuple(
        Row(
            (
                labels.short(configurations[prediction.configuration]),
                predicted_text(prediction, shown),
                NOTHING if prediction.measured is None else shown.text(prediction.measured),
                residual_text(prediction, shown),
                prediction.why,
            )
        )
        for prediction in own
    )


# What the 3-sigma rule would have said, beside the verdicts.


_LEAD: Final = (
    "The rule calls two configurations different if their means differ by more than three standard deviations of the "
    "difference, either between two single values or between two means."
)
_SOURCE: Final = 'The rule: F. Pukelsheim, "The Three Sigma Rule", The American Statistician 48(2), 1994.'
_THREE_SIGMA_COLUMNS: Final = (
    "Mean",
    "± 3 sd of single values",
    "± 3 sd of the mean",
    "Rule, single values",
    "Rule, means",
)


def three_sigma_section(results: Results, labels: Labels) -> Section | None:
    """The table, or ``None`` if the study did not ask for it."""
    groups = tuple(
        RowGroup(
            f"{metric.title}{f', in {shown.unit}' if (shown := metric_shown(results, metric)).unit else ''}", lines
        )
        for metric in results.metrics
        if (lines := _three_sigma_lines(results, metric, labels))
    )
    if not groups:
        return None
    disagreeing = sum(row.disagrees for row in results.three_sigma)
    cases = f"disagree in {count_of(disagreeing, 'case')}" if disagreeing else "agree here"
    said = f"Rule and verdict {cases}."
    title = "What the 3-sigma rule says"
    columns = _columns(labels.heading or "Configuration", _THREE_SIGMA_COLUMNS, ("Verdict",))
    return _section(title, Table(columns, groups, "three-sigma", title), f"{_LEAD} {said}", _SOURCE)


def _three_sigma_lines(results: Results, metric: Metric, labels: Labels) -> tuple[Row, ...]:
    shown = metric_shown(results, metric)
    configurations = {configuration.name: configuration for configuration in results.configurations}
    return tuple(
        Row(
            (labels.short(configurations[row.configuration]), *_cells(row, shown)),
            remark=row.why if row.disagrees else "",
            marked=row.disagrees,
        )
        for row in results.three_sigma
        if row.metric == metric.name and row.configuration in configurations
    )


def _cells(row: ThreeSigma, shown: ShownNumber) -> tuple[Entry, ...]:
    verdict = "baseline" if row.verdict is None else word_badge(row.verdict)
    return (
        shown.text(row.mean),
        _range(row.values, shown),
        _range(row.means, shown),
        _word(row.values_differ),
        _word(row.means_differ),
        verdict,
    )


def _range(ends: tuple[float, float] | None, shown: ShownNumber) -> str:
    return NOTHING if ends is None else f"{shown.text(ends[0])} … {shown.text(ends[1])}"


def _word(differs: bool | None) -> str:
    return NOTHING if differs is None else "different" if differs else "not different"


# Machines side by side: the effects in the blocks of each, and whether they say the same.


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


def machines_section(results: Results, labels: Labels) -> Section | None:
    """The deciding effects by machine; ``None`` where there is one machine only."""
    deciding = deciding_metrics(results)
    shown = [one for one in results.machines if one.metric in deciding]
    if not shown:
        return None
    metrics = {metric.name: metric for metric in results.metrics}
    groups = tuple(_group(results, one, metrics[one.metric], labels) for one in shown)
    worst = next(agreement for agreement in _SUMMARY if any(one.agreement == agreement for one in shown))
    lead = f"{_MACHINES_LEAD} {_SUMMARY[worst]}"
    title = "Results per machine"
    columns = _columns("Machine", _MACHINES_COLUMNS, ("Verdict there",))
    brief = max(len(one.machines) for one in shown) > ENDS
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


def estimate_of(one: MachineEffect) -> float:
    """Return what to sort machines by."""
    found = known(one.estimate)
    return 0.0 if found is None else found


def _group(results: Results, across: AcrossMachines, metric: Metric, labels: Labels) -> RowGroup:
    verdict = next(v for v in results.verdicts if (v.configuration, v.metric) == (across.configuration, across.metric))
    machines, omitted = shown_machines(across.machines)
    own = [_as_verdict(verdict, one) for one in machines]
    style = effect_style(own, metric.unit)
    marked = across.agreement in ("depends", "differ")
    configuration = next(c for c in results.configurations if c.name == across.configuration)
    tested = "" if across.p_value is None else f" (p = {across.p_value:.2g} that all are equal)"
    others = f"; {omitted:,} machines between these ends are omitted" if omitted else ""
    return RowGroup(
        f"{metric.title}, {labels.short(configuration)}{tested}{others}",
        tuple(
            Row((one.machine, *_machines_cells(one, said, style[said.scale])), marked=marked)
            for one, said in zip(machines, own, strict=True)
        ),
        summary=f"{count_of(len(across.machines), 'machine')}; --verbose lists them.",
    )


def _as_verdict(verdict: Verdict, one: MachineEffect) -> Verdict:
    return verdict.model_copy(
        update={"estimate": one.estimate, "low": one.low, "high": one.high, "verdict": one.verdict}
    )


def _machines_cells(one: MachineEffect, said: Verdict, style: EffectStyle) -> tuple[Entry, ...]:
    interval = NOTHING if one.low is None and one.high is None else style.interval(said)
    return (str(one.blocks), style.estimate(said), interval, word_badge(one.verdict))


# What the kernels of a run were seen to have, before anything was measured.


_PROOFS_LEAD: Final = (
    "Read from each running kernel before the measurement. The configuration from which a kernel was built proves "
    "nothing."
)


def proofs_of(results: Results) -> dict[str, Proof]:
    """The proofs by the name of the machine; one that is not understood is left out."""
    return _kept(results, PROOFS, Proof)


def proofs_section(results: Results) -> Section | None:
    """The table with its evidence, or ``None`` if nothing had to be proved."""
    found = proofs_of(results)
    if not found:
        return None
    groups = tuple(RowGroup(name, tuple(map(_proved, proof.features))) for name, proof in found.items())
    title = "Features found in the running kernels"
    table = Table(_columns("Feature", (), ("Expected", "Seen", "Its configuration")), groups, "proofs", title)
    evidence = tuple(
        Subsection(name, (Facts(tuple(map(_evidence, proof.features))),), proof.build) for name, proof in found.items()
    )
    return _section(title, table, _PROOFS_LEAD, "", Folded("Evidence", evidence), depth="detail")


def _proved(shown: Shown) -> Row:
    return Row(tuple(map(visible_line, (shown.feature, shown.claim, shown.state, _options_in_words(shown)))))


def _evidence(shown: Shown) -> Fact:
    return Fact(shown.feature, shown.state, items=tuple(f"{sight.what}: {sight.found}" for sight in shown.evidence))


def _options_in_words(shown: Shown) -> str:
    """``NUMA=y, ACPI_NUMA=y``."""
    return ", ".join(f"{name.removeprefix('CONFIG_')}={value}" for name, value in shown.options.items())


# In which build options the kernels of a run differ.


def kernel_options_section(results: Results) -> Section | None:
    """The table, or ``None`` if nothing is known to differ."""
    found = _kept(results, KERNEL_OPTIONS, KernelOptions)
    groups = tuple(
        RowGroup(_kernel_title(name, one), tuple(map(_kernel_option, one.options))) for name, one in found.items()
    )
    if not groups:
        return None
    title = "How the kernels' options differ"
    columns = _columns("Option", ("Baseline", "Here"), ("Because", "What it is"), "What it is")
    lead = "Compares the configurations that they were built from with that of the baseline's kernel."
    return _section(title, Table(columns, groups, "kernel-options", title), lead, depth="detail")


def _kernel_title(name: str, found: KernelOptions) -> str:
    shown = "" if found.total == len(found.options) else f", of which {len(found.options)} are shown"
    verb = "differs" if found.total == 1 else "differ"
    return f"{name}: {count_of(found.total, 'option')} {verb} from {found.baseline}{shown}"


def _kernel_option(option: DifferingOption) -> Row:
    return Row((option.name, option.baseline, option.own, option.because, option.title))


M = TypeVar("M", bound=BaseModel)


def _kept(results: Results, place: str, form: type[M]) -> dict[str, M]:
    """The documents that a run keeps in its environment at ``place``; one that is not understood is left out."""
    documents = results.environment.get(place)
    found = {}
    for name, document in documents.items() if isinstance(documents, Mapping) else ():
        try:
            found[str(name)] = form.model_validate(document)
        except ValidationError:
            continue
    return found
