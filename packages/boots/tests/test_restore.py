"""``ajuste restore`` and ``ajuste reboots`` on an experiment across reboots that was interrupted."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.reboots.experiment import played_study

from ajuste.catalogue.loader import catalogue
from ajuste.cli import restore
from ajuste.machine.home import BOOT_STATE, home
from ajuste.model.error import RequestError
from ajuste.model.plugins import plugins
from ajuste.run import testbed
from ajuste.run.testbed import RunOptions
from ajuste_boots.session import BootPlan, BootSession, RebootableMachine
from ajuste_boots.testbed import BootedTestbed
from shell import Shell


@pytest.fixture
def interrupted(ajuste: Shell) -> Path:
    """The state of an experiment by kexec, which has changed no file of this machine."""
    study = played_study()
    plan = BootPlan(
        loader="kexec",
        command=("/usr/bin/ajuste", "run", "played", "--reboots"),
        environment={},
        directory="/",
        kernel="6.12",
        marks={},
        states=study.boots,
        kernels=tuple("6.12" for _ in study.boots),
        each=2,
        warm_up=1,
    )
    directory = home({"AJUSTE_HOME": str(ajuste.home)}).reboots
    BootSession.begin(directory, plan, RebootableMachine())
    return directory / BOOT_STATE


@pytest.mark.usefixtures("machine_lock")
def test_restoring_ends_it_and_a_dry_run_changes_nothing(interrupted: Path, ajuste: Shell) -> None:
    _, dry = ajuste("restore", "--dry-run")
    assert "The experiment across reboots would end; as before it would be: no file" in dry
    assert interrupted.exists()
    status, _ = ajuste("reboots")
    assert "An experiment goes on across reboots, by kexec" in status
    _, done = ajuste("restore")
    assert "Boot entries are as they were before the experiment." in done
    assert not interrupted.exists()
    status, _ = ajuste("reboots")
    assert status == "No experiment goes on across reboots. Boots of the last one: 0.\n"


@pytest.mark.usefixtures("machine_lock")
def test_a_state_that_cannot_be_read_is_named_and_stays(interrupted: Path, ajuste: Shell) -> None:
    interrupted.write_text("{")
    _, message = ajuste("restore", expect=1)
    assert "state.json cannot be read" in message
    assert interrupted.exists()


@pytest.fixture
def core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand for a core without the package."""
    others = {name: plugin for name, plugin in plugins("testbeds").items() if name != "reboots"}
    for module in ("ajuste.run.testbed", "ajuste.machine.home"):
        monkeypatch.setattr(f"{module}.plugins", lambda _: others)
    monkeypatch.setattr("ajuste.machine.home.find_spec", lambda _: None)


@pytest.mark.usefixtures("core_alone")
def test_without_the_package_restoring_names_what_ends_it(
    interrupted: Path, ajuste: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ajuste.cli.restore.home", lambda: home({"AJUSTE_HOME": str(ajuste.home)}))
    with pytest.raises(RequestError, match="an experiment across reboots has not ended") as refused:
        restore.require_ended(restore.end_reboots(dry_run=False))
    assert "the optional part boots" in str(refused.value)
    assert interrupted.exists()
    interrupted.unlink()
    assert restore.end_reboots(dry_run=False) is None


@pytest.mark.usefixtures("core_alone")
def test_without_the_package_a_study_that_reboots_names_it() -> None:
    with pytest.raises(RequestError, match="ajuste_boots is not installed; it belongs to the optional part boots"):
        testbed.testbed_for(played_study().study, RunOptions(home()))


def test_a_study_that_reboots_is_refused_until_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ajuste.run.testbed.require_possible", lambda *_, **__: None)
    study = played_study()
    bed = testbed.testbed_for(study.study, RunOptions(home()))
    assert isinstance(bed, BootedTestbed)
    with pytest.raises(RequestError, match="this study reboots this machine"):
        bed.prepared(study.model_copy(update={"programs": ()}), catalogue())
    allowed = testbed.testbed_for(study.study, RunOptions(home(), reboots_allowed=True))
    assert allowed.prepared(study.model_copy(update={"programs": ()}), catalogue()).fingerprint
