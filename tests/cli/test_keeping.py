"""Commands for many runs: list, compare, tag, delete, prune, measure and back up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste.model.results import Measured
from ajuste.report.side_by_side import print_side_by_side, side_by_side
from ajuste.store.location import exclusive, lock_name
from ajuste.store.store import Store
from ajuste.store.upkeep import back_up
from small_stores import DECIDED, DIGEST, GOING_ON, Commands, small_store, spare_trial
from verdicts import decided

HOSTILE = "\x1b[2J<b>\u202e"


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands(tmp_path / "home", monkeypatch)
    small_store(made.store)
    made.json("report", DECIDED)  # Keeps its answer.
    return made


def more_runs(commands: Commands) -> dict[str, str]:
    """Add a failed run on another kernel and one with a hostile name and answer; return their ids by name."""
    with Store(f"sqlite:///{commands.store}") as store:
        like = store.find_run(DECIDED)
        made = {}
        for name, kernel, stopped in (("lost", "debian:6.12", "failed"), (HOSTILE, "host", "budget")):
            options = {"kernel": kernel, "workload": f"sh -c {name}", "ajuste": "0", "named": name, "environment": {}}
            run = store.new_run(study=name, fingerprint=name, seed=1, resolved=like.resolved, **options)  # type: ignore[arg-type]
            store.add_trials(run, [spare_trial()])
            store.stop_run(run, stopped, "it had to end")
            store.keep_results(run, f"It is {name}.", "{}")
            made[name] = run.id
    return made


def listed(commands: Commands, *words: str) -> list[str]:
    return [run["run"] for run in commands.json("report", *words)]


def test_a_deleted_run_leaves_no_report(commands: Commands) -> None:
    reports = commands.store.parent / "reports"
    commands.json("report", GOING_ON)
    assert {file.name for file in reports.iterdir()} == {f"{DECIDED}.html", f"{GOING_ON}.html"}
    commands.json("store", "delete", DECIDED, "--yes")
    assert [file.name for file in reports.iterdir()] == [f"{GOING_ON}.html"]


def test_runs_are_listed_with_what_tells_them_apart(commands: Commands) -> None:
    more_runs(commands)
    runs = {run["run"]: run for run in commands.json("report")}
    decided = runs[DECIDED]
    assert (decided["kernel"], decided["workload"], decided["stopped"]) == ("debian:5.10", "matrix", "decided")
    _, first, _ = commands.run("report", DECIDED)
    assert " ".join(first.split()).startswith(decided["answer"])
    assert (decided["tags"], decided["base"]) == ([], "")
    assert runs[GOING_ON]["stopped"] == "unfinished"
    code, output, _ = commands.run("report")
    assert code == 0
    assert len(output.splitlines()) == 4
    assert decided["answer"] in output
    assert "\x1b" not in output
    assert "\u202e" not in output
    assert "\\x1b[2J<b>\\u202e" in output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--kernel", "6.12"), {"lost"}),
        (("--kernel", "5.10"), {DECIDED, GOING_ON}),
        (("--workload", "sh -c lost"), {"lost"}),
        (("--find", "IT IS LOST"), {"lost"}),
        (("--find", DECIDED), {DECIDED}),
        (("--since", "2026-11-22T16:00+00:00"), {DECIDED, GOING_ON, "lost", HOSTILE}),
        (("--since", "9000-01-01"), set()),
        (("--tag", "good"), {DECIDED}),
        (("--tag", "goo"), set()),
        (("--kernel", "debian", "--tag", "good"), {DECIDED}),
    ],
)
def test_a_list_is_filtered(commands: Commands, words: tuple[str, ...], expected: set[str]) -> None:
    made = more_runs(commands)
    commands.json("store", "tag", DECIDED, "good")
    assert set(listed(commands, *words)) == {made.get(name, name) for name in expected}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("report", "--since", "yesterday"), "--since yesterday: expected a day such as 2026-11-30"),
        (("report", DECIDED, "--tag", "x"), "filters conflict with RUN"),
        (("report", DECIDED, GOING_ON, "--trials"), "apply to one run"),
        (("report", DECIDED, "none"), "run 'none' not found"),
        (("store", "tag", DECIDED, "two words"), "tag 'two words': expected 1 to 40 printable characters"),
        (("store", "tag", DECIDED, "--note", "x" * 10_001), "the note has 10,001 characters; expected at most 10,000"),
        (("store", "tag", DECIDED, "--remove"), "--remove requires a tag or --pin"),
        (("store", "tag", DECIDED, "nope", "--remove"), "has no tag nope; expected one of its tags: none"),
        (("store", "prune"), "a condition is required"),
        (("store", "prune", "--untagged"), "nobody can be asked"),
        (("store", "delete", DECIDED), "nobody can be asked"),
        (("store", "backup", "/no/such/place/b.sqlite"), "expected a file in an existing directory"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    commands: Commands, words: tuple[str, ...], message: str
) -> None:
    before = commands.json("report")
    code, _, complained = commands.run(*words)
    assert (code, message in complained) == (2, True), complained
    assert commands.json("report") == before


def test_tags_are_added_and_removed(commands: Commands) -> None:
    assert commands.json("store", "tag", DECIDED, "good", "paper")["tags"] == ["good", "paper"]
    assert commands.json("store", "tag", DECIDED, "new")["tags"] == ["good", "new", "paper"]
    assert commands.json("store", "tag", DECIDED, "good", "new", "--remove")["tags"] == ["paper"]
    code, _, complained = commands.run("store", "tag", DECIDED, "nope", "paper", "--remove")
    assert (code, "has no tag nope; expected one of its tags: paper" in complained) == (2, True), complained
    assert commands.json("store", "tag", DECIDED)["tags"] == ["paper"]
    assert commands.json("report", DECIDED)["digest"] == DIGEST
    assert "#paper" in commands.run("report")[1]
    assert commands.json("store", "check")["intact"]


def test_a_run_is_pinned_and_has_a_note_until_it_is_deleted(commands: Commands) -> None:
    lost = more_runs(commands)["lost"]
    assert listed(commands)[0] != lost
    marks = commands.json("store", "tag", lost, "--pin", "--note", f"see the mail\n{HOSTILE}")
    assert marks == {"run": lost, "tags": ["pinned"], "note": f"see the mail\n{HOSTILE}"}
    assert commands.json("store", "tag", lost, "paper")["note"] == marks["note"]
    assert commands.json("store", "tag", lost)["tags"] == ["paper", "pinned"]
    assert commands.json("report")[0] | {"note": marks["note"]} == commands.json("report", "--find", "THE MAIL")[0]
    for words in (("report",), ("report", lost), ("store", "tag", lost)):
        output = commands.run(*words)[1]
        assert "see the mail" in output
        assert "\x1b" not in output
    assert commands.json("store", "tag", lost, "--pin", "--remove")["tags"] == ["paper"]
    assert listed(commands)[0] != lost
    commands.json("store", "delete", lost, "--yes")
    assert not list((commands.home / "data" / "notes").iterdir())


def test_an_empty_note_removes_the_note(commands: Commands) -> None:
    commands.json("store", "tag", DECIDED, "--note", "see the mail")
    assert commands.json("store", "tag", DECIDED, "--note", "")["note"] == ""
    assert "see the mail" not in commands.run("report")[1]


def test_two_runs_are_shown_side_by_side(commands: Commands) -> None:
    with Store(f"sqlite:///{commands.store}") as store:
        first = store.find_run(DECIDED)
        environment = {"debian:5.10": {"kernel": f"5.10.0-1{HOSTILE}", "clock": "virtual"}}
        second = store.new_run(
            study="again",
            fingerprint="g",
            seed=1,
            ajuste="0",
            named="again",
            resolved=first.resolved,
            environment=environment,
            base=first.id,
        )
        store.stop_run(second, "decided", "the verdict is in")
    comparison = commands.json("report", DECIDED, "again")
    assert [run["run"] for run in comparison["runs"]] == [DECIDED, f"{DECIDED}.2"]
    assert [run["digest"] for run in comparison["runs"]] == [DIGEST, DIGEST]
    (effect,) = [effect for effect in comparison["effects"] if effect["metric"] == "involuntary-switches"]
    assert effect["verdicts"][0] == effect["verdicts"][1]
    assert comparison["environment"] == [{"name": "debian:5.10 / kernel", "values": ["5.10.0-0", f"5.10.0-1{HOSTILE}"]}]
    code, output, _ = commands.run("report", DECIDED, "again")
    assert code == 0
    assert output.startswith(f"A  {DECIDED}  small\n   ")
    assert "What differs between their environments" in output
    assert "\x1b" not in output


def test_prune_spares_a_run_that_is_measured_now(commands: Commands) -> None:
    with Store(f"sqlite:///{commands.store}") as store:
        run = store.find_run(GOING_ON)
    with exclusive(commands.store.parent.parent / "state" / lock_name(run.fingerprint, run.seed), "a study"):
        assert commands.json("store", "prune", "--untagged", "--yes")["deleted"] == [DECIDED]
    assert [run["run"] for run in commands.json("report")] == [GOING_ON]


def test_prune_deletes_what_meets_all_conditions(commands: Commands) -> None:
    lost = more_runs(commands)["lost"]
    commands.json("store", "tag", lost, "kept")
    assert commands.json("store", "prune", "--failed", "--untagged", "--dry-run")["deleted"] == []
    assert commands.json("store", "prune", "--failed", "--dry-run") == {"dry_run": True, "deleted": [lost]}
    assert lost in listed(commands)
    assert commands.json("store", "prune", "--failed", "--yes")["deleted"] == [lost]
    assert lost not in listed(commands)
    assert commands.json("store", "prune", "--older", "36500d", "--untagged", "--dry-run")["deleted"] == []
    assert commands.json("store", "check")["intact"]


def test_deleted_runs_leave_no_bytes(commands: Commands) -> None:
    with Store(f"sqlite:///{commands.store}") as store:
        run = store.find_run(GOING_ON)
        store.add_trials(run, [spare_trial().model_copy(update={"attempt": 1, "events": "x" * 4_000_000})])
    before = commands.store.stat().st_size
    assert commands.json("store", "delete", GOING_ON, "--yes")["deleted"] == [GOING_ON]
    assert commands.store.stat().st_size < before - 3_000_000
    assert commands.json("report", DECIDED)["digest"] == DIGEST


def test_a_run_that_is_being_measured_is_not_deleted(commands: Commands) -> None:
    with Store(f"sqlite:///{commands.store}") as store:
        run = store.find_run(GOING_ON)
    state = commands.home / "state"
    state.mkdir(exist_ok=True)
    with exclusive(state / lock_name(run.fingerprint, run.seed), "a study"):
        code, _, complained = commands.run("store", "delete", GOING_ON, "--yes")
    assert (code, "another process runs the study small" in complained) == (2, True)
    assert GOING_ON in listed(commands)


def test_the_size_is_told_by_run_and_kind(commands: Commands) -> None:
    sizes = commands.json("store", "size")
    assert {run["run"] for run in sizes["runs"]} == {DECIDED, GOING_ON}
    with closing(sqlite3.connect(commands.store)) as connection:
        query = "SELECT sum(length(outputs)) FROM trials WHERE run_id = ?"
        ((outputs,),) = connection.execute(query, [DECIDED])
    (size,) = [run["size_bytes"] for run in sizes["runs"] if run["run"] == DECIDED]
    assert size["outputs"] == outputs
    assert sizes["file_bytes"] >= sum(sum(run["size_bytes"].values()) for run in sizes["runs"])


def test_a_backup_is_the_store_while_it_is_written_to(commands: Commands, tmp_path: Path) -> None:
    file = tmp_path / "backup.sqlite"
    with Store(f"sqlite:///{commands.store}") as store:
        store.tag(store.find_run(DECIDED), ["new"])  # In SQLite's journal, not yet in the file.
        summary = commands.json("store", "backup", str(file))
    assert (summary["runs"], summary["trials"]) == (2, 15)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("backup")] == ["backup.sqlite"]
    with Store(f"sqlite:///{file}") as store:
        assert {run.id: run.tags for run in store.runs()} == {DECIDED: "new", GOING_ON: ""}
    code, _, complained = commands.run("store", "backup", str(file))
    assert (code, "exists; expected a new file" in complained) == (2, True)


def test_a_damaged_store_is_not_backed_up(commands: Commands, tmp_path: Path) -> None:
    with closing(sqlite3.connect(commands.store)) as connection, connection:
        connection.execute("UPDATE trials SET outputs = x'' WHERE number = 1")
    code, _, complained = commands.run("store", "backup", str(tmp_path / "b.sqlite"))
    assert (code, "damaged" in complained) == (1, True)
    assert "ajuste store salvage" in complained
    assert not list(tmp_path.glob("b.sqlite*"))


def test_a_server_has_its_own_backup(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is on a server") as refused:
        back_up("postgresql://me:secret@host/runs", tmp_path / "b.dump")
    assert "pg_dump --format=custom" in str(refused.value.hint)
    assert "secret" not in f"{refused.value} {refused.value.hint}"


def test_runs_of_one_configuration_have_no_effects_and_it_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    run = decided(configurations=(Measured(name="as it is", levels={}, baseline=True),))
    compared = side_by_side([run, run])
    print_side_by_side(compared)
    assert "each run has one configuration" in capsys.readouterr().out
