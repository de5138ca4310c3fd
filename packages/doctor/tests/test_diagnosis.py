"""Diagnoses of measurements, of machines that are made up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ajuste_doctor.diagnosis import (
    Busy,
    Diagnosis,
    Jitter,
    JobRun,
    NoiseFinding,
    NoiseMeasurements,
    amount,
    book,
    diagnose,
)


def runs(sd: float, *, waiting: float = 0.0, cpu_sd: float = 0.0, count: int = 30) -> tuple[JobRun, ...]:
    """Runs of about half a second whose logs have that standard deviation; they wait for a share of their time."""
    random = np.random.default_rng(7)
    elapsed = 0.5 * np.exp(random.normal(0, sd, count))
    cpu = 0.5 * (1 - waiting) * np.exp(random.normal(0, cpu_sd, count))
    return tuple(
        JobRun(began_s=0.6 * number, elapsed_s=float(wall), cpu_s=float(min(cpu_s, wall)))
        for number, (wall, cpu_s) in enumerate(zip(elapsed, cpu, strict=True))
    )


def quiet(**changes: Any) -> NoiseMeasurements:
    """A machine of one's own on which nothing else goes on."""
    figures: dict[str, Any] = {
        "seconds": 30.0,
        "cpus": 8,
        "jitter": Jitter(sleeps=7000, p50_us=4, p99_us=12, p999_us=30, max_us=90),
        "runs": runs(0.001),
        "steal_percent": 0.0,
        "others_percent": 0.2,
        "runnable": 0.05,
        "pressure_cpu_percent": 0.1,
        "pressure_io_percent": 0.0,
        "pressure_memory_percent": 0.0,
        "frequency_range_percent": 0.0,
        "throttled": 0,
        "interrupts_per_s": 800.0,
        "switches_per_s": 1500.0,
        "facts": {"governor": "performance", "turbo": "off", "smt": "off", "machine": "none"},
    }
    return NoiseMeasurements.model_validate(figures | changes)


def disturbing(diagnosis: Diagnosis) -> list[str]:
    return [finding.name for finding in diagnosis.findings if finding.severity in ("much", "some", "note")]


def finding(diagnosis: Diagnosis, name: str) -> NoiseFinding:
    return next(noise for noise in diagnosis.findings if noise.name == name)


def test_a_quiet_machine_is_called_quiet_and_nothing_disturbs() -> None:
    diagnosis = diagnose(quiet())
    assert diagnosis.verdict == "quiet"
    assert diagnosis.sentence.startswith("quiet: 2 % effects need about ")
    assert disturbing(diagnosis) == []
    assert all(not noise.advice for noise in diagnosis.findings)


@pytest.mark.parametrize(
    ("sd", "word"),
    [(0.001, "quiet"), (0.025, "usable"), (0.06, "noisy"), (3.0, "noisy")],
)
def test_the_word_follows_the_spread(sd: float, word: str) -> None:
    assert diagnose(quiet(runs=runs(sd, waiting=0.5))).verdict == word


def test_the_table_has_what_a_study_would_see() -> None:
    diagnosis = diagnose(quiet(runs=runs(0.01)))
    effects = {effect.effect_percent: effect.blocks for effect in diagnosis.effects}
    assert list(effects) == [1, 2, 5, 10]
    counts = [blocks for blocks in effects.values() if blocks is not None]
    assert counts == sorted(counts, reverse=True)
    powers = {power.blocks: power.effect_percent for power in diagnosis.powers}
    assert list(powers) == [10, 30, 100]
    assert (powers[10] or 0) > (powers[30] or 0) > (powers[100] or 0) > 0


@pytest.mark.parametrize(
    ("changes", "name", "message"),
    [
        ({"others_percent": 41.5}, "others", "41.5 % of all CPU time went to other programs"),
        ({"steal_percent": 5.25}, "steal", "5.25 % of all CPU time was stolen"),
        ({"runs": runs(0.001, waiting=0.3)}, "waiting", "% of the job's time it was ready and did not run"),
        ({"runs": runs(0.2, waiting=0.6, cpu_sd=0.05)}, "speed", "% is the spread of the job's CPU time"),
        ({"pressure_io_percent": 20.0}, "pressure-io", "20 % of the time some task waited for I/O"),
        ({"pressure_memory_percent": 4.0}, "pressure-memory", "4 % of the time some task waited for memory"),
        ({"frequency_range_percent": 35.0}, "frequency", "35 % is by how much the highest frequency"),
        ({"throttled": 12}, "throttling", "12 times was a CPU slowed down"),
        ({"runnable": 3.5}, "runnable", "3.5 tasks on average ran or waited"),
        ({"interrupts_per_s": 400000.0}, "interrupts", "50,000 interrupts a second came to each CPU"),
        (
            {"jitter": Jitter(sleeps=9, p50_us=50, p99_us=4000, p999_us=9000, max_us=25000)},
            "jitter",
            "4,000 µs late was one of a hundred sleeps",
        ),
    ],
)
def test_what_disturbs_much_is_found_with_its_figure_and_advice(changes: Any, name: str, message: str) -> None:
    noise = finding(diagnose(quiet(**changes)), name)
    assert noise.severity == "much"
    assert message in noise.said
    assert noise.advice
    assert noise.value is not None
    assert noise.threshold is not None
    assert noise.value >= noise.threshold


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"governor": "powersave"}, "governor"),
        ({"turbo": "on"}, "turbo"),
        ({"smt": "on"}, "smt"),
        ({"machine": "kvm"}, "guest"),
        ({"cpu_limit": "1.5"}, "cpu-limit"),
    ],
)
def test_facts_of_the_machine_that_can_matter_are_noted(facts: dict[str, str], name: str) -> None:
    diagnosis = diagnose(quiet(facts=facts))
    assert disturbing(diagnosis) == [name]
    assert finding(diagnosis, name).severity == "note"


def test_the_most_important_comes_first() -> None:
    diagnosis = diagnose(quiet(others_percent=150 / 8, steal_percent=20.0, runnable=0.6, facts={"smt": "on"}))
    assert disturbing(diagnosis) == ["steal", "others", "runnable", "smt"]


def test_what_is_not_visible_says_so_and_disturbs_nothing() -> None:
    unknown = {"frequency_range_percent": "the frequency is not available"}
    diagnosis = diagnose(quiet(frequency_range_percent=None, unknown=unknown))
    assert finding(diagnosis, "frequency").severity == "unknown"
    assert finding(diagnosis, "frequency").said == "the frequency is not available"
    assert disturbing(diagnosis) == []


def test_too_few_runs_are_no_diagnosis() -> None:
    with pytest.raises(ValueError, match="2 runs"):
        diagnose(quiet(runs=runs(0.01, count=2)))


def test_every_measure_of_the_rules_is_one_that_is_measured_or_derived() -> None:
    """A rule whose measure nobody delivers would always be unknown."""
    names = {noise.name for noise in diagnose(quiet()).findings}
    assert {rule.name for rule in book().finding if rule.measure} == names
    assert all(noise.severity != "unknown" for noise in diagnose(quiet()).findings)


def test_a_diagnosis_is_one_document() -> None:
    diagnosis = diagnose(quiet(busy=(Busy(name="\x1b[2J", cpu_percent=3.0),)))
    assert Diagnosis.model_validate_json(diagnosis.model_dump_json()) == diagnosis


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.04567, "%", "0.0457 %"),
        (12.34, "%", "12.3 %"),
        (12345.6, "µs", "12,346 µs"),
        (-3.21, "%", "−3.21 %"),
        (7, "", "7"),
    ],
)
def test_figures_have_three_digits(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text
