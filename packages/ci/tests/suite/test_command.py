"""``ajuste suite`` on this machine, as a person uses it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ajuste.store.store import Store
from shell import Shell

HEAD = """\
schema = 1
name = "mine"
title = "Mine"

[budget]
min_blocks = 4
max_blocks = 4
"""
MEMBER = """
[[member]]
name = "{name}"
metrics = ["took"]

[member.workload]
command = ["sh", "-c", "{script}"]

[[member.workload.metric]]
name = "took"
pattern = "took ([0-9]+)"
unit = "ms"
direction = "lower"
"""
GONE = '\n[[member]]\nname = "gone"\nworkload = { command = ["ajuste-has-no-such-program"] }\n'
ONE = MEMBER.format(name="one", script="echo took $((100 + $(nice)))")
TWO = MEMBER.format(name="two", script="echo took $((100 + 5 * $(nice)))")
FAILS = MEMBER.format(name="fails", script="exit 3")

pytestmark = [pytest.mark.usefixtures("machine_lock"), pytest.mark.timeout(300)]


@pytest.fixture
def suite(ajuste: Shell) -> Callable[..., Shell]:
    """Writes the members into mine.toml."""

    def written(*members: str) -> Shell:
        (ajuste.directory / "mine.toml").write_text(HEAD + "".join(members))
        return ajuste

    return written


def measured(ajuste: Shell, *words: str, expect: int = 0) -> Any:
    output, _ = ajuste("suite", "mine.toml", "--nice", "0,10", "--json", *words, expect=expect)
    return json.loads(output)


def records(home: Path) -> list[dict[str, Any]]:
    if not (file := home / "data" / "store.sqlite").exists():
        return []
    with Store(f"sqlite:///{file}") as store:
        return [json.loads(text) for text in store.suites()]


def test_members_are_measured_as_one_experiment_and_shown_again(suite: Callable[..., Shell]) -> None:
    ajuste = suite(ONE, TWO)
    document = measured(ajuste)
    estimates = {verdict["metric"]: verdict["estimate"] for verdict in document["results"]["verdicts"]}
    assert estimates == pytest.approx({"one": 1.1, "two": 1.5})
    assert [verdict["level"] for verdict in document["results"]["verdicts"]] == [0.95, 0.95]
    (mean,) = document["means"]
    assert mean["estimate"] == pytest.approx((1.1 * 1.5) ** 0.5)
    assert document["state"] == "complete"
    for member in document["members"]:
        assert ajuste.json("report", member["run"])["level"] == pytest.approx(0.975), "its part of the errors"

    again = ajuste.json("report", "suite-mine")
    assert again == ajuste.json("report", document["id"]) == document
    mail, _ = ajuste("report", "suite-mine", "--format", "lkml")
    assert "one              1.00 [   0.00]( 0.00) 1.10 [ -10.00]( 0.00)" in mail
    for name in ("one", "two"):
        assert f"Study of {name}, as a file {name}.toml for `ajuste run`:" in mail
    assert mail.count('name = "nice"') == 2
    page = (ajuste.home / "data" / "reports" / f"{document['id']}.html").read_text()
    for member in document["members"]:
        assert f'href="{member["run"]}.html"' in page
        assert (ajuste.home / "data" / "reports" / f"{member['run']}.html").exists()

    assert measured(ajuste)["id"] != document["id"], "by a clock of the world what is complete is measured again"


def test_a_backup_has_the_suites(suite: Callable[..., Shell], tmp_path: Path) -> None:
    ajuste = suite(ONE, TWO)
    document = measured(ajuste)
    output, _ = ajuste("store", "backup", "copy.sqlite")
    assert output.startswith("2 runs, 1 suite and 20 trials are in copy.sqlite")
    elsewhere = Shell(ajuste.directory, tmp_path / "another home", f"sqlite:///{ajuste.directory}/copy.sqlite")
    assert elsewhere.json("report", "suite-mine") == document


def test_the_plans_of_a_suite_are_one_document_by_member(suite: Callable[..., Shell]) -> None:
    plans = measured(suite(ONE, TWO), "--dry-run")
    assert plans["suite"] == "mine"
    assert {
        name: [configuration["name"] for configuration in plan["configurations"]]
        for name, plan in plans["members"].items()
    } == {
        "one": ["nice=0", "nice=10"],
        "two": ["nice=0", "nice=10"],
    }


def test_a_missing_member_is_an_error_before_anything_starts(suite: Callable[..., Shell]) -> None:
    ajuste = suite(ONE, GONE)
    _, complaint = ajuste("suite", "mine.toml", "--nice", "0,10", expect=2)
    assert 'member gone: program "ajuste-has-no-such-program" not found' in complaint
    assert "or leave out what is missing with --keep-going" in complaint
    assert records(ajuste.home) == []
    assert not ajuste.json("report")


def test_what_cannot_be_measured_is_left_out_if_the_others_go_on(suite: Callable[..., Shell]) -> None:
    ajuste = suite(ONE, GONE)
    document = measured(ajuste, "--keep-going")
    reasons = {member["name"]: member["reason"] for member in document["members"]}
    assert reasons == {"one": "", "gone": 'program "ajuste-has-no-such-program" not found'}
    output, _ = ajuste("report", "suite-mine")
    assert "Left out: gone" in output


def test_a_member_that_fails_ends_the_suite_or_is_left_out(suite: Callable[..., Shell]) -> None:
    ajuste = suite(ONE, FAILS, TWO)
    _, complaint = ajuste("suite", "mine.toml", "--nice", "0,10", expect=1)
    assert "member fails failed: " in complaint
    document = measured(ajuste, "--keep-going", "--fresh", expect=1)
    assert [member["name"] for member in document["members"] if member["metrics"]] == ["one", "two"]
    assert next(member["reason"] for member in document["members"] if member["name"] == "fails")


def test_an_interrupted_suite_keeps_what_was_measured_and_resumes(suite: Callable[..., Shell]) -> None:
    slow = MEMBER.format(name="slow", script="touch started; test -e go || sleep 20; echo took 1")
    ajuste = suite(ONE, slow)
    words = ("suite", "mine.toml", "--nice", "0,10")
    process = ajuste.start(*words)
    end = time.monotonic() + 120
    while not (ajuste.directory / "started").exists():
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, complaint = process.communicate(timeout=60)
    assert process.returncode == 130, complaint
    assert "Not measured yet: slow." in output
    (record,) = records(ajuste.home)
    assert not record["finished"]

    (ajuste.directory / "go").touch()
    ajuste(*words)
    (resumed,) = records(ajuste.home)
    assert resumed["id"] == record["id"]
    assert resumed["finished"]
    assert resumed["entries"][0] == record["entries"][0], "it was not measured again"


def test_the_suites_are_listed(ajuste: Shell) -> None:
    names = {suite["name"]: suite["members"] for suite in json.loads(ajuste("suite", "--json")[0])}
    assert {"scheduler", "io", "database", "web"} <= set(names)
    assert "hackbench-unix" in names["scheduler"]


@pytest.mark.slow
def test_a_workload_that_writes_files_does_so_where_ajuste_was_called(ajuste: Shell) -> None:
    output, _ = ajuste("compare", "--dry-run", "--json", "--blocks", "1", "--", "sysbench-fileio")
    assert str(ajuste.directory) in output
    output, _ = ajuste("compare", "--dry-run", "--json", "--blocks", "1", "--", "sysbench-cpu")
    assert str(ajuste.directory) not in output
