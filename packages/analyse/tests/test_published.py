"""Published little tables, typed in as CSV, give the verdict that scipy gives.

Student's sleep data: Student 1908, "The probable error of a mean", Biometrika 6. Dried weights of plants: Dobson 1983,
"An Introduction to Statistical Modelling" (R's PlantGrowth). Teeth of guinea pigs: Crampton 1947, Journal of Nutrition
33 (R's ToothGrowth, at 0.5 mg). Two examples with unequal spreads: Wikipedia, "Welch's t-test", 1 and 3.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ajuste.model.verdict import Verdict
from ajuste_analyse.files import FileRequest, read_files
from ajuste_analyse.verdicts import TableQuestion, analyse_table

SLEEP = ([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
PLANTS = {
    "control": [4.17, 5.58, 5.18, 6.11, 4.50, 4.61, 5.17, 4.53, 5.33, 5.14],
    "treatment 1": [4.81, 4.17, 4.41, 3.59, 5.87, 3.83, 6.03, 4.89, 4.32, 4.69],
    "treatment 2": [6.31, 5.12, 5.54, 5.50, 5.37, 5.29, 4.92, 6.15, 5.80, 5.26],
}
TEETH = ([4.2, 11.5, 7.3, 5.8, 6.4, 10, 11.2, 11.2, 5.2, 7], [15.2, 21.5, 17.6, 9.7, 14.5, 10, 8.2, 9.4, 16.5, 9.7])
WELCH_1 = (
    [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4],
    [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4],
)
WELCH_3 = (
    [19.8, 20.4, 19.6, 17.8, 18.5, 18.9, 18.3, 18.9, 19.5, 22.0],
    [float(value) for value in ["28.2", "26.6", "20.1", "23.3", "25.2", "22.1", "17.7", "27.6", "20.6", "13.7", "23.2"]]
    + [float(value) for value in ["17.5", "20.6", "18.0", "23.9", "21.6", "24.3", "20.4", "24.0", "13.2"]],
)


def verdicts(
    path: Path, samples: dict[str, list[float]], *, blocks: bool = False, ratio: bool = False
) -> list[Verdict]:
    """Return the verdicts on the samples as a CSV file; the first is the baseline, and higher is better."""
    head = "configuration,block,value\n" if blocks else "configuration,value\n"
    rows = [
        f"{name},{place},{value}\n" if blocks else f"{name},{value}\n"
        for name, values in samples.items()
        for place, value in enumerate(values)
    ]
    (path / "table.csv").write_text(head + "".join(rows))
    request = FileRequest(higher=["value"], differences=[] if ratio else ["value"])
    return list(
        analyse_table(read_files([path / "table.csv"], request=request), TableQuestion(smallest_effect=0.001)).verdicts
    )


@pytest.mark.parametrize(
    ("table", "printed"),
    [(SLEEP, 0.07939), (TEETH, 0.006359), (WELCH_1, 0.021), (WELCH_3, 0.036)],
    ids=["sleep", "teeth", "welch 1", "welch 3"],
)
def test_two_samples_give_welchs_verdict(
    tmp_path: Path, table: tuple[list[float], list[float]], printed: float
) -> None:
    baseline, other = table
    [verdict] = verdicts(tmp_path, {"one": baseline, "other": other})
    theirs = stats.ttest_ind(other, baseline, equal_var=False)
    low, high = theirs.confidence_interval(0.95)
    assert verdict.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    assert verdict.p_value == pytest.approx(printed, rel=0.02)
    assert (verdict.low, verdict.high) == (pytest.approx(low, rel=1e-9), pytest.approx(high, rel=1e-9))
    assert (verdict.verdict in ("improves", "worsens")) == (theirs.pvalue < 0.05)


def test_the_sleep_of_ten_patients_is_decided_within_them(tmp_path: Path) -> None:
    baseline, other = SLEEP
    [verdict] = verdicts(tmp_path, {"dextro": baseline, "laevo": other}, blocks=True)
    theirs = stats.ttest_rel(other, baseline)
    assert verdict.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    assert verdict.p_value == pytest.approx(0.00283, abs=1e-5)  # as Student's successors print it
    assert (verdict.verdict, verdict.blocks) == ("improves", 10)


def test_three_groups_share_the_confidence(tmp_path: Path) -> None:
    judged = verdicts(tmp_path, PLANTS)
    for verdict in judged:
        theirs = stats.ttest_ind(PLANTS[verdict.configuration], PLANTS["control"], equal_var=False)
        low, high = theirs.confidence_interval(0.975)
        assert (verdict.low, verdict.high) == (pytest.approx(low, rel=1e-9), pytest.approx(high, rel=1e-9))
        assert (verdict.verdict != "undecided") == (theirs.pvalue < 0.025)
    assert [verdict.verdict for verdict in judged] == ["undecided", "undecided"]


def test_ratios_are_compared_on_logarithms(tmp_path: Path) -> None:
    baseline, other = TEETH
    [verdict] = verdicts(tmp_path, {"one": baseline, "other": other}, ratio=True)
    theirs = stats.ttest_ind(np.log(other), np.log(baseline), equal_var=False)
    low, high = np.exp(theirs.confidence_interval(0.95))
    assert (verdict.low, verdict.high) == (pytest.approx(low, rel=1e-9), pytest.approx(high, rel=1e-9))
    assert verdict.estimate == pytest.approx(stats.gmean(other) / stats.gmean(baseline), rel=1e-12)
