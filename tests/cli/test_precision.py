"""``--precision``: a run goes on for it, and says so if the budget ends it first."""

from __future__ import annotations

import json
import tomllib

import pytest

from shell import Shell

TWO = ("--", "true", "--", "sleep", "0.05")


def test_the_plan_and_a_saved_study_have_it(ajuste: Shell) -> None:
    output, _ = ajuste("compare", "--dry-run", "--precision", "0.5%", "--save", "study.toml", *TWO)
    assert "goes on until each interval is within ±0.5 %" in " ".join(output.split())
    study = tomllib.loads((ajuste.directory / "study.toml").read_text())
    assert study["analysis"]["precision"] == pytest.approx(0.005)
    assert "within ±0.5 %" in " ".join(ajuste("plan", "study.toml")[0].split())


@pytest.mark.usefixtures("machine_lock")
def test_what_is_decided_goes_on_and_the_report_says_that_it_is_not_precise(ajuste: Shell) -> None:
    results = json.loads(ajuste("compare", "--json", "--quiet", "--blocks", "3..12", "--precision", "0.001%", *TWO)[0])
    (verdict,) = [verdict for verdict in results["verdicts"] if verdict["deciding"]]
    assert (verdict["verdict"], verdict["precise"], results["blocks"]) == ("worsens", False, 12)
    assert results["stopped_because"] == "reached the limit of 12 blocks; one interval is less precise than requested"
    assert "Not as precise as requested (±0.001 %): sleep 0.05 on elapsed." in results["notes"]


@pytest.mark.usefixtures("machine_lock")
def test_without_it_the_same_run_ends_when_it_is_decided(ajuste: Shell) -> None:
    results = json.loads(ajuste("compare", "--json", "--quiet", "--blocks", "3..60", *TWO)[0])
    assert results["stopped"] == "decided"
    assert results["blocks"] < 60
    assert all("precise" not in verdict for verdict in results["verdicts"])


def test_a_precision_that_cannot_be_is_refused(ajuste: Shell) -> None:
    for words in (("compare", "--precision", "0%", *TWO), ("run", "granularity", "--precision", "0%")):
        assert ajuste(*words, expect=2)[1].startswith("ajuste: --precision 0%: ")
