"""Results of elsewhere as one document."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ajuste.analysis.record import MOST_POINTS
from ajuste.model.error import RequestError
from ajuste.model.measurements import MeasuredTable, Sample, Summarised, Values
from ajuste.model.metric import Metric
from ajuste.model.results import Results
from ajuste.model.three_sigma import THREE_SIGMA
from ajuste_analyse.verdicts import TableQuestion, analyse_table

TIME = Metric(name="time", title="Time", unit="s", direction="lower")
SIZE = Metric(name="size", title="Size", unit="bytes", direction="none")
OLD, NEW = Values((10.0, 11.0, 12.0, 10.5)), Values((9.0, 9.5, 9.2, 9.1))


def table(**samples: Sample) -> MeasuredTable:
    """Return a table of one metric; the configurations in the order given."""
    return MeasuredTable("CSV", tuple(samples), (TIME,), {(name, "time"): sample for name, sample in samples.items()})


def only(results: Results) -> str:
    [verdict] = results.verdicts
    return verdict.verdict


def test_the_first_configuration_is_the_baseline_unless_another_is_named() -> None:
    assert only(analyse_table(table(old=OLD, new=NEW), TableQuestion())) == "improves"
    assert only(analyse_table(table(old=OLD, new=NEW), TableQuestion(baseline="new"))) == "worsens"


def test_the_main_metrics_decide_unless_others_are_named() -> None:
    both = {(name, metric): sample for name, sample in (("old", OLD), ("new", NEW)) for metric in ("time", "size")}
    measured = MeasuredTable("CSV", ("old", "new"), (SIZE, TIME), both, main=frozenset({"time"}))
    for wanted, deciding in (((), ["time"]), (("size",), ["size"]), (("size", "time"), ["size", "time"])):
        results = analyse_table(measured, TableQuestion(metrics=wanted))
        assert sorted(verdict.metric for verdict in results.verdicts if verdict.deciding) == sorted(deciding)
        assert {metric.name for metric in results.metrics} == {"time", "size"}
    assert all(
        verdict.deciding for verdict in analyse_table(replace(measured, main=frozenset()), TableQuestion()).verdicts
    )


def test_one_value_alone_is_undecided_and_says_why() -> None:
    results = analyse_table(table(old=Values((1.0,)), new=Values((2.0,))), TableQuestion(three_sigma=True))
    assert only(results) == "undecided"
    assert "a single value has no spread" in results.verdicts[0].reason
    assert results.verdicts[0].p_value is None


def test_values_that_are_0_are_compared_by_differences() -> None:
    results = analyse_table(table(old=Values((0.0, 1.0, 2.0)), new=Values((0.0, 2.0, 1.0))), TableQuestion())
    assert only(results) == "undecided"
    assert results.verdicts[0].scale == "difference"
    assert "Compared by differences, because a value is 0 or negative" in results.verdicts[0].reason


def test_values_in_blocks_that_only_one_has_are_counted() -> None:
    old = Values((1.0, 1.1, 1.2, 5.0), ("a", "b", "c", "d"))
    new = Values((0.9, 0.98, 1.09), ("c", "b", "a"))
    analysis = analyse_table(table(old=old, new=new), TableQuestion())
    verdict = analysis.verdicts[0]
    assert verdict.blocks == 3
    assert verdict.estimate == pytest.approx((1.09 / 1.0 * 0.98 / 1.1 * 0.9 / 1.2) ** (1 / 3))
    assert "ot in it: 1 value of blocks that only one of them has" in verdict.reason
    assert any("not in it: 1 value of blocks" in note for note in analysis.notes)


def test_summaries_are_compared_by_welchs_test() -> None:
    old, new = (np.array(sample.values) for sample in (OLD, NEW))
    samples = {
        name: Summarised(len(values), float(values.mean()), float(values.std(ddof=1)) / len(values) ** 0.5)
        for name, values in (("old", old), ("new", new))
    }
    made = replace(table(**samples), metrics=(TIME.model_copy(update={"scale": "difference"}),))
    results = analyse_table(made, TableQuestion())
    theirs = stats.ttest_ind(new, old, equal_var=False)
    assert results.verdicts[0].p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    summary = results.configurations[0].metrics["time"]
    assert (summary.sd, summary.median) == (pytest.approx(old.std(ddof=1)), None)


def test_one_configuration_is_described_with_students_interval() -> None:
    results = analyse_table(table(old=OLD), TableQuestion())
    summary = results.configurations[0].metrics["time"]
    low, high = stats.t.interval(0.95, 3, np.mean(OLD.values), stats.sem(OLD.values))
    assert (summary.low, summary.high) == (pytest.approx(low), pytest.approx(high))
    assert results.verdicts == ()
    assert "no other configuration" in results.answer


def test_a_metric_that_one_lacks_is_undecided_and_costs_the_others_nothing() -> None:
    samples: dict[tuple[str, str], Sample] = {("old", "time"): OLD, ("new", "time"): NEW, ("old", "size"): OLD}
    results = analyse_table(MeasuredTable("CSV", ("old", "new"), (TIME, SIZE), samples), TableQuestion())
    words = {verdict.metric: (verdict.verdict, verdict.reason) for verdict in results.verdicts}
    assert words["time"][0] == "improves"
    assert words["size"] == ("undecided", "new has no value of it, so there is nothing to compare")
    assert results.correction.startswith("none needed")


def test_without_a_common_metric_nothing_can_be_said() -> None:
    samples: dict[tuple[str, str], Sample] = {("old", "time"): OLD, ("new", "size"): NEW}
    with pytest.raises(RequestError, match="no other configuration has a metric of old: old has time; new has size"):
        analyse_table(MeasuredTable("CSV", ("old", "new"), (TIME, SIZE), samples), TableQuestion())


def test_only_the_metrics_asked_for_decide() -> None:
    samples: dict[tuple[str, str], Sample] = {
        (name, metric): sample for metric in ("time", "size") for name, sample in (("old", OLD), ("new", NEW))
    }
    results = analyse_table(
        MeasuredTable("CSV", ("old", "new"), (TIME, SIZE), samples), TableQuestion(metrics=("size",))
    )
    assert [(v.metric, v.deciding, v.verdict) for v in results.verdicts] == [
        ("size", True, "differs"),
        ("time", False, "improves"),
    ]


def test_the_three_sigma_rule_stands_beside_the_verdicts() -> None:
    """Means three standard errors apart: the rule with means calls them different, and so does Welch's test."""
    results = analyse_table(table(old=OLD, new=NEW), TableQuestion(three_sigma=True))
    baseline, row = THREE_SIGMA.of(results)
    assert baseline.verdict is None
    apart = abs(np.mean(OLD.values) - np.mean(NEW.values))
    errors = np.hypot(stats.sem(OLD.values), stats.sem(NEW.values))
    assert row.means_differ == (apart > 3 * errors)
    assert row.verdict == "improves"


def test_of_very_many_values_some_are_drawn_and_all_count() -> None:
    many = np.linspace(1.0, 2.0, 3 * MOST_POINTS)
    results = analyse_table(table(old=Values(tuple(many)), new=Values(tuple(many * 1.5))), TableQuestion())
    assert len(results.trials) <= MOST_POINTS
    assert any("Of 30,000 rows 5,000 are drawn" in note for note in results.notes)
    assert results.configurations[0].metrics["time"].n == 3 * MOST_POINTS
    assert only(results) == "worsens"


def test_the_digest_is_of_what_was_read() -> None:
    digest = analyse_table(table(old=OLD, new=NEW), TableQuestion()).digest
    assert digest == analyse_table(table(old=OLD, new=NEW), TableQuestion(confidence=0.9)).digest
    assert digest != analyse_table(table(old=OLD, new=Values((9.0, 9.5, 9.2, 9.11))), TableQuestion()).digest
