"""Results as plain text for a mail, in the tables that scheduler developers post: ASCII, at most 72 columns.

The tables compare each alternative with the baseline twice: normalised, as ``tip[pct imp](CV)`` tables have it, and
with its figures, as ``Amean`` or ``Hmean`` rows with ``*x%*`` for what is certain. Percentages are positive where it
improves. Figures are of plain means; marks and verdicts are those of the analysis.
"""

from __future__ import annotations

import math
import re
import shlex
import statistics
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from ajuste.machine.inventory.inventory import Inventory
from ajuste.model.continuation import REPRODUCE
from ajuste.model.explanation import EXPLANATIONS
from ajuste.model.metric import Metric
from ajuste.model.origin import ELSEWHERE
from ajuste.model.results import Measured, Results, Summary
from ajuste.model.verdict import RANKINGS, Verdict, is_extreme
from ajuste.model.wording import count_of, listed, percent, shell_line, visible, visible_line
from ajuste.report.format import Labels, NumberFormat, result_labels
from ajuste.report.listings import kernel_option_sentences
from ajuste.report.method import clock_name
from ajuste.report.results import results_report
from ajuste.report.tables import deciding_metrics, mean_format, measured_metrics, ranked_where, ranking_sentence
from ajuste.report.trials import make_excerpt
from ajuste_share.latency import asks_about_scheduling, latency_command, measures_latency

WIDTH: Final = 72
_CASE: Final = 16
_CELL: Final = 22
_STATISTIC: Final = 9
_FIGURES: Final = 23
# Characters of a configuration's name at the head of a column; longer ones get a letter.
_LONGEST_HEAD: Final = 7
# Of what was recorded, and of what was counted: those that say most come first.
_MOST_SENTENCES: Final = 3
# Sentences on where two trials part: where, both decisions, and both paths to them.
_PATHS: Final = 5
_MOST_OPTIONS: Final = 5
_ASCII: Final = {
    "−": "-",
    "–": "-",
    "µ": "u",
    "μ": "u",
    "±": "+-",
    "×": "x",
    "→": "->",
    "…": "...",
    "·": "-",
    "≤": "<=",
}
_BETTER: Final = {
    "lower": ("Lower is better", "pct imp"),
    "higher": ("Higher is better", "pct imp"),
    "none": ("No direction is better", "pct diff"),
}


def mail(
    results: Results,
    metrics: Sequence[str] = (),
    study: str = "",
    mechanism: Results | None = None,
    remarks: Sequence[str] = (),
    built: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the text of a mail on ``metrics``, the deciding ones if none is named.

    ``study`` is the text of a study file, which is attached. ``mechanism`` is a run with recordings that explain this
    one, such as the same question in a guest; else those of the run itself are shown. ``remarks`` follow the kernels,
    of which ``built`` says how others build them.
    """
    mentioned = metrics or sorted(deciding_metrics(results))
    explained = (
        *_gains_and_costs(results),
        *_mechanism(mechanism or results, of_another=mechanism is not None),
        *_lacking(results, study, built),
    )
    text = compose_mail(results, mentioned, list(_introduction(results, metrics, remarks)), explained)
    return f"{text}{attached(study, file=study_file(results))}" if study else text


def study_file(results: Results) -> str:
    """Return what the file of the study that a mail has is called."""
    return f"{re.sub(r'[^A-Za-z0-9._-]', '-', results.study).lstrip('.-') or 'study'}.toml"


def attached(study: str, of: str = "", file: str = "") -> str:
    """Return the text of a study file for the end of a mail; ``of`` is the study's subject, ``file`` its name.

    The lines stand as they are: patches in them apply as those of any mail.
    """
    # The same document: strings of TOML may name any character by its number.
    plain = "".join(c if c.isascii() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in study)
    lines = "".join(f"{visible(line)}\n" for line in plain.split("\n")[:-1])
    subject, name = f" of {to_ascii(of)}" if of else "", f" {file}" if file else ""
    return f"\nStudy{subject}, as a file{name} for `ajuste run`:\n\n{lines}"


def compose_mail(
    results: Results,
    metrics: Sequence[str],
    introduction: Sequence[str],
    explained: Sequence[str] = (),
    *,
    figures: bool = True,
) -> str:
    """Return the tables of ``metrics`` between ``introduction`` and ``explained``, both in paragraphs.

    Without ``figures`` there are only the normalised tables.
    """
    excerpt = make_excerpt(results)
    subset = excerpt.results
    chosen = [metric for metric in measured_metrics(subset) if metric.name in metrics]
    page = _Page(subset, result_labels(results), chosen or measured_metrics(subset)[:1])
    parts = (
        *map(_wrapped, introduction),
        _wrapped(excerpt.remark),
        *page.legend(),
        *page.ranking(),
        *page.normalised(),
        *(page.figures() if figures else ()),
        *explained,
        *_ending(results, figures=figures),
    )
    return "\n\n".join(filter(None, parts)) + "\n"


def to_ascii(text: str) -> str:
    """Return ``text`` in ASCII, with the usual replacements where there are any."""
    plain = "".join(_ASCII.get(letter, letter) for letter in visible_line(text))
    return plain.encode("ascii", "backslashreplace").decode("ascii")


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(to_ascii(text), WIDTH, break_on_hyphens=False))


def tested_on(results: Results, remarks: Sequence[str]) -> Iterator[str]:
    """Yield the kernels that were tested with ``remarks``, the machine and the workload, in paragraphs."""
    here = results.environment.get("this machine", {})
    machines = {
        name: about
        for name, about in results.environment.items()
        if name not in ("this machine", "inventory") and isinstance(about, Mapping) and "kernel" in about
    }
    kernels = [
        " ".join(filter(None, (f"{name}:" if name != "host" else "", about["kernel"], about.get("kernel build", ""))))
        for name, about in machines.items()
    ] or ([here["kernel"]] if "kernel" in here else [])
    if kernels:
        yield f"{'Kernel' if len(kernels) == 1 else 'Kernels'}: {'; '.join(map(str, kernels))}."
        yield from (f"{sentence}." for sentence in kernel_option_sentences(results, _MOST_OPTIONS))
    yield from remarks
    guest = next((about for about in machines.values() if "QEMU" in about), None)
    topology = list(_topology(results)) if guest is None else []
    place = ", ".join((*(str(here[name]) for name in ("processor", "memory") if name in here), *topology))
    if guest is not None:
        cpus = _cpus(int(guest.get("CPUs", 1)))
        facts = (cpus, guest.get("memory", ""), f"QEMU {guest['QEMU']}", guest.get("accelerator", "").partition(" ")[0])
        yield f"Machine: guest of {', '.join(filter(None, facts))}{f'; on {place}' if place else ''}."
    elif place:
        yield f"Machine: {place}."
    workload = results.environment.get("workload", {})
    commands = workload.items() if isinstance(workload, Mapping) else (("", workload),)
    if commands:
        yield f"Workload: {'; '.join(f'{name}: {line}' if name else str(line) for name, line in commands)}."


def _cpus(number: int) -> str:
    # A reader of figures of a scheduler must not look for what one CPU cannot show.
    return count_of(number, "CPU") if number > 1 else "1 CPU (nothing migrates or is balanced)"


def _topology(results: Results) -> Iterator[str]:
    # What readers of figures of hardware ask for first.
    try:
        inventory = Inventory.model_validate(results.environment.get("inventory", {}))
    except ValidationError:
        return
    cpu, frequency = inventory.cpu, inventory.frequency
    if cpu.sockets and cpu.cores and cpu.threads_per_core:
        yield (
            f"{count_of(cpu.sockets, 'socket')} of {count_of(cpu.cores // cpu.sockets, 'core')}, "
            f"{count_of(cpu.threads_per_core, 'thread')} each"
        )
    if len(inventory.numa) > 1:
        yield f"{len(inventory.numa)} NUMA nodes"
    if frequency.governor:
        yield f"governor {frequency.governor}"
    if frequency.turbo is not None:
        yield f"boost {'on' if frequency.turbo else 'off'}"


def _introduction(results: Results, metrics: Sequence[str], remarks: Sequence[str]) -> Iterator[str]:
    report = results_report(results, metrics)
    yield report.title
    yield report.headline
    blocks = f"{results.counted_blocks}, " if results.blocks else ""
    if elsewhere := ELSEWHERE.of(results):
        yield f"{blocks}{count_of(elsewhere.values, 'value')}, measured elsewhere."
        return
    yield from tested_on(results, remarks)
    trials = results.tally.words()
    ajuste = f", Ajuste {results.ajuste}" if results.ajuste else ""
    yield f"Run {results.run}: {blocks}{trials}, {clock_name(results)}, seed {results.seed}{ajuste}."


def _gains_and_costs(results: Results) -> Iterator[str]:
    # The certain effects on every measured metric, also on those that decide nothing.
    labels = result_labels(results)
    lines = []
    for configuration in results.configurations:
        verdicts = [verdict for verdict in results.verdicts if verdict.configuration == configuration.name]
        if not verdicts:
            continue
        words = {
            word: ", ".join(f"{verdict.metric} {verdict.effect}" for verdict in verdicts if verdict.verdict == word)
            for word in ("improves", "worsens", "differs")
        }
        certain = "; ".join(f"{word} {listed}" for word, listed in words.items() if listed)
        rest = sum(verdict.verdict not in words for verdict in verdicts)
        nothing = f"nothing certain of {count_of(rest, 'metric')}" if rest else ""
        name = labels.setting(configuration)
        lines.append(_item(f"{name}: {'; '.join(filter(None, (certain, nothing)))}"))
    if lines:
        yield "\n".join(("Gains and costs, of all metrics:", *lines))


def _mechanism(results: Results, *, of_another: bool) -> Iterator[str]:
    if not EXPLANATIONS.of(results):
        return
    labels = result_labels(results)
    names = {configuration.name: labels.setting(configuration) for configuration in results.configurations}
    if of_another:
        yield "\n".join(
            (
                _wrapped(f"The mechanism is that of run {results.run} (digest {results.digest[:12]}):"),
                *map(_item, tested_on(results, ())),
            )
        )
    for explanation in EXPLANATIONS.of(results):
        sentences = (
            *explanation.sentences[:_MOST_SENTENCES],
            *(explanation.costs.all_sentences[:_MOST_SENTENCES] if explanation.costs else ()),
            *(explanation.divergence.sentences[:_PATHS] if explanation.divergence else ()),
        )
        head = f"Mechanism, {names[explanation.configuration]} against {names[explanation.baseline.configuration]}:"
        yield "\n".join((_wrapped(head), *map(_item, sentences)))


def _lacking(results: Results, study: str, built: Mapping[str, str]) -> Iterator[str]:
    # A change of the scheduler is judged by latency too.
    if not asks_about_scheduling(results, study) or measures_latency(results):
        return
    command = latency_command(results, built)
    lead = "No metric of this run is a latency."
    if command is None:
        yield _wrapped(f"{lead} The workloads jitter and cyclictest measure that of wake-ups.")
    else:
        yield "\n".join((_wrapped(f"{lead} This measures that of wake-ups:"), _command(command)))


def _item(text: str) -> str:
    return textwrap.fill(to_ascii(text), WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)


def _ending(results: Results, *, figures: bool) -> Iterator[str]:
    if len(results.configurations) > 1:
        marks = "*x%* marks a certain difference. Marks and v" if figures else "V"
        basis = "with t intervals" if ELSEWHERE.of(results) else "within blocks, valid whenever the run stops"
        yield _wrapped(
            "Percentages are of plain means, positive where it improves, and a dash for a change of more than 10 "
            "times; CV is the standard deviation in per cent of the "
            f"mean. {marks}erdicts: {percent(results.level)} intervals for all comparisons together, "
            f"{basis}; equivalent is within {percent(results.smallest_effect)}."
        )
    if REPRODUCE.of(results):
        yield "\n".join(("Reproduce with:", *(_command(line) for line in REPRODUCE.of(results))))


def _command(line: str) -> str:
    # No word of it is broken.
    if (plain := shell_line(line)) != line or "$'" in line:
        return f"  {to_ascii(plain)}"
    try:
        words = [shlex.quote(word) for word in shlex.split(line)]
    except ValueError:
        return f"  {to_ascii(line)}"
    lines = [f"  {to_ascii(words[0])}"]
    for word in map(to_ascii, words[1:]):
        if len(lines[-1]) + len(word) + 3 > WIDTH:
            lines[-1] += " \\"
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return "\n".join(lines)


@dataclass(frozen=True)
class _Values:
    # One metric of one configuration: `centre` is the mean of that name.
    centre: float
    summary: Summary

    @property
    def variation(self) -> float:
        # In per cent of the mean; NaN where it is not known.
        sd, mean = self.summary.sd, self.summary.mean
        return 100 * sd / abs(mean) if sd is not None and mean else math.nan


class _Page:
    # The tables of `metrics`: each alternative beside the baseline.
    def __init__(self, results: Results, labels: Labels, metrics: Sequence[Metric]) -> None:
        self._results = results
        self._labels = labels
        self._metrics = metrics
        configurations = sorted(results.configurations, key=lambda configuration: not configuration.baseline)
        self._names = [to_ascii(labels.setting(configuration)) for configuration in configurations]
        self._lettered = any(len(name) > _LONGEST_HEAD or not name for name in self._names)
        self._heads = [_letters(place) for place in range(len(self._names))] if self._lettered else self._names
        self._columns = list(zip(configurations, self._heads, strict=True))
        compared = [c for c in self._columns if results.reference(c[0].name) != c[0].name]
        self._alternatives: list[tuple[Measured, str] | None] = [*compared] or [None]
        self._verdicts = {(verdict.configuration, verdict.metric): verdict for verdict in results.verdicts}

    def _beside(self, alternative: tuple[Measured, str] | None) -> tuple[Measured, str]:
        # The column of what it is compared with.
        reference = "" if alternative is None else self._results.reference(alternative[0].name)
        return next((column for column in self._columns if column[0].name == reference), self._columns[0])

    def legend(self) -> Iterator[str]:
        if self._lettered:
            entries = zip(self._columns, self._names, strict=True)
            lines = (
                textwrap.fill(
                    f"{name}{' (baseline)' if configuration.baseline and len(self._columns) > 1 else ''}",
                    WIDTH,
                    initial_indent=f"  {head:<3} ",
                    subsequent_indent=" " * 6,
                    break_on_hyphens=False,
                )
                for (configuration, head), name in entries
            )
            yield "\n".join(lines)

    def ranking(self) -> Iterator[str]:
        heads = {configuration.name: head for configuration, head in self._columns}
        for metric in self._metrics:
            for ranking in RANKINGS.of(self._results):
                if ranking.metric == metric.name and all(name in heads for name in ranking.contenders):
                    where = to_ascii(ranked_where(self._results, ranking, self._labels))
                    yield _wrapped(ranking_sentence(metric, ranking, heads, where))

    def normalised(self) -> Iterator[str]:
        # A table for each direction and kind of mean, as posted for the tip tree.
        groups: dict[tuple[str, str], list[Metric]] = {}
        for metric in self._metrics:
            groups.setdefault((metric.direction, self._statistic(metric)), []).append(metric)
        rule = "=" * (WIDTH - 6)
        for (direction, kind), metrics in groups.items():
            names = (mean_format(self._results, metric).unit for metric in metrics)
            units = listed(list(dict.fromkeys(filter(None, names))))
            head = (
                _wrapped(f"Test          : {self._results.study}"),
                _wrapped(f"Units         : Normalized to {self._heads[0]}{f', measured in {units}' if units else ''}"),
                f"Interpretation: {_BETTER[direction][0]}",
                f"Statistic     : {kind}",
            )
            yield "\n".join((rule, *head, rule, *self._cases(metrics, direction)))

    def _cases(self, metrics: Sequence[Metric], direction: str) -> Iterator[str]:
        for place, alternative in enumerate(self._alternatives):
            columns = [self._beside(alternative), *([alternative] if alternative else [])]
            baseline = columns[0][0]
            heads = "".join(f"{f'{head}[{_BETTER[direction][1]}](CV)':>{_CELL}}" for _, head in columns)
            yield f"{'' if not place else chr(10)}{'Case:':<{_CASE}}{heads}{'  verdict' if alternative else ''}"
            for metric in metrics:
                cells = [self._normal(configuration, metric, baseline) for configuration, _ in columns]
                yield from _row(metric.name, _CASE, "".join(cells), self._word(alternative, metric))

    def _normal(self, configuration: Measured, metric: Metric, baseline: Measured) -> str:
        values, base = self._values(configuration, metric), self._values(baseline, metric)
        if values is None or base is None:
            return f"{'-':>{_CELL}}"
        ratio = values.centre / base.centre if base.centre else math.nan
        change = math.nan if is_extreme(ratio) else _improvement(values.centre, base.centre, metric)
        text = f" {_fixed(ratio, 4)} [{_fixed(change, 7)}]({_fixed(values.variation, 5)})"
        return f"{text:>{_CELL}}"

    def figures(self) -> Iterator[str]:
        # A table for each metric, as MMTests prints it.
        for metric in self._metrics:
            fmt = mean_format(self._results, metric)
            about = ", ".join(filter(None, (fmt.unit, _BETTER[metric.direction][0].lower())))
            lines = [_wrapped(f"{metric.name} ({about})")]
            for alternative in self._alternatives:
                columns = [self._beside(alternative), *([alternative] if alternative else [])]
                lines.append(" " * _STATISTIC + "".join(f"{head:>{_FIGURES}}" for _, head in columns))
                lines += self._rows(metric, fmt, columns)
            yield "\n".join(lines)

    def _rows(self, metric: Metric, fmt: NumberFormat, columns: Sequence[tuple[Measured, str]]) -> Iterator[str]:
        every = [self._values(configuration, metric) for configuration, _ in columns]
        alternative = columns[1] if len(columns) > 1 else None
        for name in ("Min", self._statistic(metric), "Stddev", "CoeffVar", "Max"):
            figures = [None if values is None else _figure(name, values) for values in every]
            if all(value is None for value in figures):
                continue
            certain = name == self._statistic(metric) and _is_certain(self._verdict(alternative, metric))
            cells = [self._cell(figures[0], figures[0], metric, fmt, name)]
            cells += [self._cell(value, figures[0], metric, fmt, name, starred=certain) for value in figures[1:]]
            word = self._word(alternative, metric) if name == self._statistic(metric) else ""
            yield from _row(name, _STATISTIC, "".join(cells), word)

    def _cell(
        self,
        value: float | None,
        base: float | None,
        metric: Metric,
        fmt: NumberFormat,
        name: str,
        *,
        starred: bool = False,
    ) -> str:
        if value is None:
            return f"{'-':>{_FIGURES}}"
        mark = "**" if starred else "()"
        compared = metric.model_copy(update={"direction": "lower"}) if name in ("Stddev", "CoeffVar") else metric
        beyond = base is None or (bool(base) and is_extreme(value / base))
        change = math.nan if base is None or beyond else _improvement(value, base, compared)
        text = f"{_fixed(value if name == 'CoeffVar' else fmt.scaled(value), 11, 4)} "
        known = _fixed(change, 8)
        per_cent = f"{known}%" if known.strip() != "-" else f"{known:>9}"
        return f"{text}{mark[0]}{per_cent}{mark[1]}".rjust(_FIGURES)

    def _values(self, configuration: Measured, metric: Metric) -> _Values | None:
        summary = configuration.metrics.get(metric.name)
        if summary is None:
            return None
        values = self._trial_values(configuration.name, metric) if self._statistic(metric) == "Hmean" else []
        return _Values(statistics.harmonic_mean(values) if values else summary.mean, summary)

    def _statistic(self, metric: Metric) -> str:
        # Harmonic for speeds where every value is known, as MMTests has it; a quantile is none.
        if metric.quantile is not None:
            return f"P{100 * metric.quantile:g}"
        if metric.direction != "higher" or not metric.unit.endswith("/s"):
            return "Amean"
        known = (
            (configuration.metrics[metric.name].n, self._trial_values(configuration.name, metric))
            for configuration in self._results.configurations
            if metric.name in configuration.metrics
        )
        return "Hmean" if all(len(values) == n and min(values) > 0 for n, values in known) else "Amean"

    def _trial_values(self, configuration: str, metric: Metric) -> list[float]:
        # Of its clean trials; of very many not all are there.
        return [
            point.metrics[metric.column]
            for point in self._results.trials
            if point.configuration == configuration and point.status == "ok" and not point.warm_up
            if metric.column in point.metrics
        ]

    def _verdict(self, alternative: tuple[Measured, str] | None, metric: Metric) -> Verdict | None:
        return self._verdicts.get((alternative[0].name, metric.name)) if alternative else None

    def _word(self, alternative: tuple[Measured, str] | None, metric: Metric) -> str:
        verdict = self._verdict(alternative, metric)
        return verdict.verdict if verdict is not None else ""


def _letters(place: int) -> str:
    # A to Z, then AA, AB and so on.
    return (_letters(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def _row(name: str, width: int, cells: str, word: str) -> Iterable[str]:
    # A line, or two where the name takes one of its own.
    text = to_ascii(name)
    first = [] if len(text) <= width else [_wrapped(text)]
    yield from first
    yield f"{'' if first else text:<{width}}{cells}{f'  {word}' if word else ''}".rstrip()


def _improvement(value: float, base: float, metric: Metric) -> float:
    # In per cent of the baseline; positive where it is better, or higher where nothing is. NaN for a baseline of 0.
    if not base:
        return 0.0 if not value else math.nan
    change = 100 * (value - base) / abs(base)
    return -change if metric.direction == "lower" and change else change


def _figure(name: str, values: _Values) -> float | None:
    figures = {
        "Min": values.summary.minimum,
        "Max": values.summary.maximum,
        "Stddev": values.summary.sd,
        "CoeffVar": None if math.isnan(values.variation) else values.variation,
    }
    return figures.get(name, values.centre)


def _fixed(value: float, width: int, decimals: int = 2) -> str:
    # So wide: with fewer decimals, or in powers of ten, where it would be wider; a dash where nothing fits.
    forms = (*(f".{places}f" for places in range(decimals, -1, -1)), ".0e")
    texts = (f"{value:{form}}" for form in forms) if math.isfinite(value) else ()
    return f"{next((text for text in texts if len(text) <= width), '-'):>{width}}"


def _is_certain(verdict: Verdict | None) -> bool:
    if verdict is None or verdict.depends_on_machine:
        return False
    none = 1.0 if verdict.scale == "ratio" else 0.0
    return (verdict.low is not None and verdict.low > none) or (verdict.high is not None and verdict.high < none)
