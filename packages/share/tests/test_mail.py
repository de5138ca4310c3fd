"""Plain-text tables for a mail: narrow, ASCII, and right to the last digit."""

from __future__ import annotations

import re
import shlex
import tomllib
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ajuste.analysis.pairs import clean_trials
from ajuste.analysis.ranking import rankings
from ajuste.analysis.summary import measured
from ajuste.analysis.verdict import family, judge
from ajuste.cli.saving import study_text
from ajuste.model.explanation import Explanation, Recorded
from ajuste.model.kernel import KERNEL_OPTIONS
from ajuste.model.metric import Metric
from ajuste.model.results import Point, Results
from ajuste.model.trial import Configuration, Factor, Slot, Trial
from ajuste_share.mail import WIDTH, mail, to_ascii
from verdicts import decided

ELAPSED = Metric(name="elapsed", title="Elapsed time", unit="s", direction="lower")
SPEED = Metric(name="speed", title="Speed", unit="MiB/s", direction="higher")
SWITCHES = Metric(name="switches", title="Switches", unit="", direction="none", scale="difference")
CELL = r"([-\d.]+) \[ *([-\d.]+)\]\( *([-\d.]+)\)"
FIGURE = r" +([-\d.]+) [(*] *([-\d.]+)%[)*]"

Drawn = dict[str, dict[str, list[float]]]


def drawn(means: dict[str, float], blocks: int = 12) -> Drawn:
    """Return values by configuration and metric; a second goes with a speed."""
    generator = np.random.default_rng(4)
    values: Drawn = {}
    for name, mean in means.items():
        elapsed = [mean * float(np.exp(generator.normal(0, 0.02))) for _ in range(blocks)]
        switches = [float(generator.poisson(40 * mean)) for _ in range(blocks)]
        values[name] = {"elapsed": elapsed, "speed": [100 / seconds for seconds in elapsed], "switches": switches}
    return values


def results_of(values: Drawn, *metrics: Metric, **more: Any) -> Results:
    made = [Configuration(name=n, levels={"kernel": n}, baseline=not place) for place, n in enumerate(values)]
    trials = [
        Trial(
            slot=Slot(block=block, position=(place + block) % len(made), configuration=name, seed=block),
            status="ok",
            metrics={metric.name: values[name][metric.name][block] for metric in metrics},
        )
        for place, name in enumerate(values)
        for block in range(len(next(iter(values[name].values()))))
    ]
    clean = clean_trials(trials)
    fields: dict[str, Any] = dict(
        study="kernels",
        title="Kernels",
        run="20261123-1",
        smallest_effect=0.02,
        blocks=12,
        verdicts=judge(made, clean, metrics),
        rankings=rankings(made, clean, metrics, family(made, metrics, 0.95), smallest_effect=0.02),
        configurations=measured(made, clean),
        factors=(Factor(name="kernel", levels=tuple(values), baseline=next(iter(values))),),
        metrics=metrics,
        trials=tuple(
            Point(configuration=t.slot.configuration, block=t.slot.block, status="ok", metrics=t.metrics)
            for t in trials
        ),
    )
    return decided(**(fields | more))


def lines_with(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_the_normalised_table_has_ratio_improvement_variation_and_verdict() -> None:
    values = drawn({"6.1": 1.0, "6.12": 1.25})
    (line,) = [line for line in lines_with(mail(results_of(values, ELAPSED)), "elapsed ") if "[" in line]
    base, other = (values[name]["elapsed"] for name in ("6.1", "6.12"))
    first, second = re.findall(CELL, line)
    assert first == ("1.00", "0.00", f"{100 * stats.variation(base, ddof=1):.2f}")
    ratio = np.mean(other) / np.mean(base)
    assert second == (f"{ratio:.2f}", f"{100 * (1 - ratio):.2f}", f"{100 * stats.variation(other, ddof=1):.2f}")
    assert line.endswith("  worsens")


def test_a_large_ratio_stays_apart_from_the_baseline() -> None:
    (line,) = [
        line
        for line in lines_with(mail(results_of(drawn({"6.1": 1.0, "6.12": 400.0}), ELAPSED)), "elapsed ")
        if "[" in line
    ]
    (_, second) = re.findall(CELL, line)
    assert re.fullmatch(r"\d{3}", second[0])
    assert second[1] == "-"
    assert f")  {second[0]} [" in line


def test_the_header_names_the_kernels_that_were_tested_and_the_machine() -> None:
    guest = {"kernel": "6.1.0-1", "kernel build": "#1 SMP", "QEMU": "7.2", "CPUs": "2", "memory": "256 MiB"}
    here = {"processor": "A CPU", "memory": "8 GiB", "kernel": "6.18"}
    environment = {"this machine": here, "debian:6.1": guest, "relevance": []}
    text = mail(results_of(drawn({"a": 1.0, "b": 1.0}), ELAPSED, environment=environment))
    assert "Kernel: debian:6.1: 6.1.0-1 #1 SMP." in text
    assert "Machine: guest of 2 CPUs, 256 MiB, QEMU 7.2; on A CPU, 8 GiB." in text
    on_host = mail(results_of(drawn({"a": 1.0, "b": 1.0}), ELAPSED, environment={"this machine": here}))
    assert "Kernel: 6.18." in on_host


def test_the_header_has_what_a_review_asks_for_first() -> None:
    cpu = {"sockets": 2, "cores": 128, "threads_per_core": 2, "cpus": 256}
    inventory = {
        "cpu": cpu,
        "numa": {"node0": {}, "node1": {}},
        "frequency": {"governor": "performance", "turbo": False},
    }
    here = {"processor": "A CPU, 256 CPUs", "memory": "500 GiB", "kernel": "6.18"}
    workload = "hackbench -g 2 -l 50; beside it 2 x ajuste-workloads spin"
    environment = {"this machine": here, "inventory": inventory, "workload": workload}
    values = drawn({"a": 1.0, "b": 1.0})
    text = " ".join(mail(results_of(values, ELAPSED, environment=environment, ajuste="0.1.0")).split())
    assert (
        "Machine: A CPU, 256 CPUs, 500 GiB, 2 sockets of 64 cores, 2 threads each, 2 NUMA nodes, governor performance, "
        "boost off." in text
    )
    assert f"Workload: {workload}." in text
    assert ", Ajuste 0.1.0." in text
    guest = {"kernel": "6.1.0-1", "QEMU": "7.2", "CPUs": "2"}
    text = mail(results_of(values, ELAPSED, environment={**environment, "debian:6.1": guest}))
    assert "sockets" not in text  # Of the host, whose CPUs the guest does not have.
    option = {"name": "HZ", "title": "Timer frequency", "baseline": "250", "own": "1000", "because": ""}
    options = {"mine:b": {"baseline": "mine:a", "total": 3, "options": [option]}}
    kernels = {**environment, "mine:a": guest, "mine:b": guest, KERNEL_OPTIONS: options}
    text = " ".join(mail(results_of(values, ELAPSED, environment=kernels)).split())
    assert "mine:b: 3 options differ from mine:a: HZ=1000 (was 250), and 2 more." in text
    variants = {"command=pipe": "hackbench -P", "command=socket": "hackbench"}
    text = mail(results_of(values, ELAPSED, environment={"this machine": here, "workload": variants}))
    assert "Workload: command=pipe: hackbench -P; command=socket: hackbench." in text


def test_kernels_whose_options_are_alike_have_a_whole_sentence() -> None:
    options = {"mine:b": {"baseline": "mine:a", "total": 0, "options": []}}
    guest = {"kernel": "6.1.0-1", "QEMU": "7.2"}
    environment = {"mine:a": guest, "mine:b": guest, KERNEL_OPTIONS: options}
    text = mail(results_of(drawn({"mine:a": 1.0, "mine:b": 1.0}), ELAPSED, environment=environment))
    assert "\nmine:b: no options differ from mine:a.\n" in text


def test_normalised_tables_name_the_units_of_what_was_measured() -> None:
    text = mail(
        results_of(drawn({"6.1": 1.0, "6.12": 1.25}), ELAPSED, SPEED, SWITCHES), ("elapsed", "speed", "switches")
    )
    assert lines_with(text, "Units ") == [
        "Units         : Normalized to A, measured in s",
        "Units         : Normalized to A, measured in MiB/s",
        "Units         : Normalized to A",
    ]


def test_the_study_is_attached_and_stays_the_same_document() -> None:
    study = 'schema = 1\ntitle = "Größe 𝄞"\n\n[target]\nkernel = "debian:6.1"\n'
    text = mail(results_of(drawn({"a": 1.0, "b": 1.0}), ELAPSED), study=study)
    assert text.isascii()
    assert tomllib.loads(text.partition("`ajuste run`:\n")[2]) == tomllib.loads(study)


PATCH = "--- a/kernel/sched/fair.c\n+++ b/kernel/sched/fair.c\n@@ -1 +1 @@\n-\told = '\\';\n+\tnew;\n"


def test_a_patch_stands_as_it_is_and_the_study_stays_the_same_document() -> None:
    document = {"schema": 1, "patch": [{"name": "longer.patch", "text": PATCH}]}
    text = mail(results_of(drawn({"a": 1.0, "b": 1.0}), ELAPSED), study=study_text(document))
    assert f"\n{PATCH}" in text
    assert tomllib.loads(text.partition("`ajuste run`:\n")[2]) == document
    for other in ("Größe\n\t'''\n", "it's\n'", "\n\x1b\n", "\n\nlines\n", "'''\n"):
        assert tomllib.loads(study_text({"text": other})) == {"text": other}


def test_a_mail_of_a_guest_with_one_cpu_names_what_that_cannot_show() -> None:
    guest = {"kernel": "6.1.0-1", "QEMU": "7.2", "CPUs": "1"}
    values = drawn({"a": 1.0, "b": 1.0})
    text = " ".join(mail(results_of(values, ELAPSED, environment={"debian:6.1": guest})).split())
    assert "Machine: guest of 1 CPU (nothing migrates or is balanced), QEMU 7.2." in text


SLICES = (
    "ajuste compare --set base_slice_ns=3ms,1ms --metric elapsed --blocks=4 --background '2x spin' -- matrix size=60"
)


def one_factor(name: str, *levels: str) -> dict[str, Any]:
    return {"factors": (Factor(name=name, levels=levels, baseline=levels[0]),)}


def unbroken(text: str) -> str:
    return text.replace(" \\\n   ", "")


def test_a_question_on_scheduling_without_latency_has_the_line_that_adds_it() -> None:
    values, slices = drawn({"a": 1.0, "b": 1.0}), one_factor("base_slice_ns", "3ms", "1ms")
    text = mail(results_of(values, ELAPSED, reproduce=(SLICES,), **slices))
    assert "ajuste compare --set base_slice_ns=3ms,1ms --background '2x spin' -- jitter" in unbroken(text)
    assert "jitter and cyclictest" in " ".join(mail(results_of(values, ELAPSED, **slices)).split())
    delay = ELAPSED.model_copy(update={"title": "Delay of wake-ups, 99 %"})
    for text in (mail(results_of(values, delay, **slices)), mail(results_of(values, ELAPSED))):
        assert "latency" not in text


def test_a_latency_of_kernels_names_them_as_others_build_them() -> None:
    values, kernels = drawn({"mine:a": 1.0, "mine:b": 1.0}), one_factor("kernel", "mine:a", "mine:b")
    messages = results_of(values, ELAPSED, environment={"workload": "hackbench -g 2"}, **kernels)
    built = {"mine:a": "build:debian:6.1.192", "mine:b": "build:debian:6.1.192+longer.patch"}
    names = ",".join(built.values())
    assert f"ajuste compare --kernel {names} --background spin -- jitter" in unbroken(mail(messages, built=built))
    anything = results_of(values, ELAPSED, **kernels)
    assert "This measures" in mail(anything, study=PATCH)
    assert "This measures" not in mail(anything)


def test_the_figures_have_rows_with_stars_where_it_is_certain() -> None:
    values = drawn({"6.1": 1.0, "6.12": 1.25})
    text = mail(results_of(values, ELAPSED))
    (line,) = lines_with(text, "Amean")
    base, other = (np.mean(values[name]["elapsed"]) for name in ("6.1", "6.12"))
    (first, zero), (second, change) = re.findall(FIGURE, line)
    assert (first, zero, second) == (f"{base:.4f}", "0.00", f"{other:.4f}")
    assert change == f"{100 * (1 - other / base):.2f}"
    assert f"*  {change}%*  worsens" in line
    assert [len(lines_with(text, name)) for name in ("Min", "Stddev", "CoeffVar", "Max")] == [1, 1, 1, 1]
    assert "*" not in lines_with(text, "Min")[0]


def test_no_stars_where_nothing_is_certain() -> None:
    (line,) = lines_with(mail(results_of(drawn({"6.1": 1.0, "6.12": 1.0}), ELAPSED)), "Amean")
    assert "*" not in line
    assert not line.endswith("worsens")


def test_speeds_have_harmonic_means_and_more_is_an_improvement() -> None:
    values = drawn({"6.1": 1.25, "6.12": 1.0})
    text = mail(results_of(values, SPEED))
    assert "Interpretation: Higher is better\nStatistic     : Hmean" in text
    (line,) = lines_with(text, "Hmean")
    base, other = (stats.hmean(values[name]["speed"]) for name in ("6.1", "6.12"))
    (first, _), (second, change) = re.findall(FIGURE, line)
    assert (first, second) == (f"{base:.4f}", f"{other:.4f}")
    assert float(change) == pytest.approx(100 * (other / base - 1), abs=0.005)
    assert line.endswith("*  improves")


def test_without_all_values_a_mean_is_not_called_harmonic() -> None:
    results = results_of(drawn({"6.1": 1.25, "6.12": 1.0}), SPEED)
    text = mail(results.model_copy(update={"trials": results.trials[:-1]}))
    assert not lines_with(text, "Hmean")
    assert len(lines_with(text, "Amean")) == 1


def test_several_kernels_and_metrics_stand_beside_the_baseline_one_by_one() -> None:
    values = drawn({"debian:6.1": 1.0, "debian:6.12": 1.2, "mine:patched": 0.8, "mine:reverted": 1.0})
    text = mail(results_of(values, ELAPSED, SPEED, SWITCHES))
    assert "  A   kernel = debian:6.1 (baseline)\n  B   kernel = debian:6.12\n  C   kernel = mine:patched\n" in text
    heads = lines_with(text, "Case:")
    assert [re.findall(r"(\w)\[pct (\w+)\]\(CV\)", head) for head in heads] == [
        [("A", word), (letter, word)] for word in ("imp", "imp", "diff") for letter in "BCD"
    ]
    assert len(lines_with(text, "=====")) == 6
    assert "By elapsed time, C is best: all 3 others are worse for certain." in text
    assert len(lines_with(text, "Hmean")) == 3
    assert "No direction is better" in text


def test_named_metrics_are_shown_and_others_are_not() -> None:
    values = drawn({"6.1": 1.0, "6.12": 1.2})
    text = mail(results_of(values, ELAPSED, SWITCHES), ["switches"])
    assert lines_with(text, "switches")
    assert not lines_with(text, "elapsed")


@pytest.mark.parametrize("name", ["granularity", "grid", "undecided", "hostile"])
def test_it_is_ascii_and_fits_a_mail(name: str, request: pytest.FixtureRequest) -> None:
    results = request.getfixturevalue(name)
    text = mail(results, [metric.name for metric in results.metrics])
    assert text.isascii()
    before, _, commands = text.partition("Reproduce with:")
    assert max(map(len, before.splitlines())) <= WIDTH
    assert all(len(line) <= WIDTH or " " not in line.strip().rstrip("\\").strip() for line in commands.splitlines())
    assert "\x1b" not in text


def test_extreme_figures_keep_the_columns() -> None:
    values = {"a": {"elapsed": [1e-9, 1.1e-9, 1e-9, 1.2e-9]}, "b": {"elapsed": [1e6, 1e6, 2e6, 1e6]}}
    text = mail(results_of(values, ELAPSED))
    assert max(map(len, text.splitlines())) <= WIDTH
    (line,) = [line for line in lines_with(text, "elapsed ") if "[" in line]
    assert line.index("[", line.index("[") + 1) - line.index("[") == 22


def test_a_baseline_of_zero_has_no_ratio() -> None:
    values = {"a": {"switches": [0.0] * 6}, "b": {"switches": [5.0, 6, 5, 6, 5, 6]}}
    text = mail(results_of(values, SWITCHES))
    assert re.search(r"switches .* - \[      -\]\(", text)


def test_a_change_that_is_not_known_has_a_dash_without_a_unit() -> None:
    exact = {"a": {"elapsed": [1.0] * 6}, "b": {"elapsed": [1.1, 1.2, 1.1, 1.2, 1.1, 1.2]}}
    text = mail(results_of(exact, ELAPSED))
    (line,) = lines_with(text, "Stddev")
    assert line.rstrip().endswith("-)")
    assert "-%" not in text


def test_commands_are_broken_between_words_and_stay_the_same() -> None:
    command = shlex.join(
        ["ajuste", "compare", *["--metric", "latency,ms,lower=regex:avg (.*)"] * 3, "--", "sh", "-c", "x  y"]
    )
    text = mail(results_of(drawn({"6.1": 1.0, "6.12": 1.2}), ELAPSED, reproduce=(command,)))
    _, _, reproduction = text.partition("Reproduce with:\n")
    assert len(reproduction.splitlines()) > 1
    assert shlex.split(reproduction.replace("\\\n", " ")) == shlex.split(command)


def test_usual_signs_are_written_in_ascii() -> None:
    assert to_ascii("−3 µs ± 1 → …") == "-3 us +- 1 -> ..."
    assert to_ascii("naïve") == "na\\xefve"


def test_costs_stand_beside_gains_also_of_metrics_that_are_not_shown() -> None:
    results = results_of(drawn({"6.1": 1.0, "6.12": 1.25}), ELAPSED, SPEED, SWITCHES)
    (line,) = lines_with(mail(results, ["switches"]).replace("\n    ", " "), "  - kernel = 6.12: ")
    worse, *others = line.partition("worsens ")[2].split("; ")
    assert [name.split()[0] for name in worse.split(", ")] == ["elapsed", "speed"]
    assert "nothing certain of 1 metric" in others


def test_the_mechanism_may_be_that_of_another_run() -> None:
    recorded = [Recorded(configuration=name, block=0, seed=1) for name in ("6.1", "6.12")]
    why = Explanation(sentences=("It sleeps 5 µs less.",), notes=(), own=recorded[1], baseline=recorded[0])
    measured_here = results_of(drawn({"a": 1.0, "b": 1.5}), ELAPSED)
    guest = {"debian:6.1": {"kernel": "6.1.0-1", "QEMU": "7.2"}}
    in_guest = results_of(
        drawn({"6.1": 1.0, "6.12": 1.25}), ELAPSED, run="in-guest", environment=guest, explanations=(why,)
    )
    text = mail(measured_here, mechanism=in_guest)
    assert "run in-guest" in text
    assert "  - Kernel: debian:6.1: 6.1.0-1." in text
    assert "kernel = 6.12 against kernel = 6.1:\n  - It sleeps 5 us less." in text
    assert "It sleeps" in mail(in_guest)
    assert "Mechanism" not in mail(measured_here)
