"""Fixtures and hooks that several test folders share."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from ajuste.machine.files import locked
from ajuste.store.store import Store
from guests import in_guests
from own_home import own_home
from postgresql import Server, server
from shell import SMALL, Shell, end_started
from tiers import insist

if TYPE_CHECKING:
    from tests.debian_archive import Archive

# A busy machine is slow for no fault of the code: no test of ours asserts a time.
# `make fuzz` asks for more examples.
settings.register_profile("ajuste", deadline=None, max_examples=int(os.environ.get("AJUSTE_EXAMPLES", "40")))
settings.load_profile("ajuste")


STANDS_ALONE = ("tests/studies/test_claims.py::",)
"""Modules of long tests that share nothing."""

ASLEEP = ("packages/live/tests/test_live.py::", "packages/live/tests/test_live_installed.py::")
"""Modules that wait most of their time, and for no lock: one worker does them all, while the others compute."""

LONGEST = (
    "tests/dist/test_install.py",
    "tests/docs/test_commands.py",
    "tests/docs/test_extending.py",
    "packages/course/tests/test_marking.py",
    "packages/fleet/tests/test_cluster.py",
    "packages/guest/tests/executor/test_modelled_time.py",
    "packages/guest/tests/executor/test_vm.py",
)
"""Modules that take minutes."""


class ByModule(LoadScopeScheduling):
    """Distribution of the tests over several workers: module by module, because those of one share what they boot, one
    by one where each stands alone, and all of a group by one worker (pytest-xdist puts its name after an "@").
    """

    def _split_scope(self, nodeid: str) -> str:
        _, _, group = nodeid.rpartition("@")
        if group in GROUPS:
            return group
        return nodeid if nodeid.startswith(STANDS_ALONE) else nodeid.partition("::")[0]


GROUPS = ("locked", "asleep")
"""The tests that take the machine's lock, so that no worker waits for another's, and those that sleep."""


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByModule:
    return ByModule(config, log)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what takes longest, so that in the end no worker waits for another: the groups, then modules that take
    minutes, then those that boot guests.
    """
    for item in items:
        if "machine_lock" in getattr(item, "fixturenames", ()):
            item.add_marker("machine")
        if item.nodeid.startswith(ASLEEP):
            item.add_marker(pytest.mark.xdist_group("asleep"))
        elif item.get_closest_marker("machine"):
            item.add_marker(pytest.mark.xdist_group("locked"))
    for item in items:
        if item.get_closest_marker("vm"):
            item.add_marker(in_guests)
    booting = {item.path for item in items if item.get_closest_marker("vm")}
    items.sort(
        key=lambda item: (
            item.get_closest_marker("xdist_group") is None,
            not item.nodeid.startswith(LONGEST),
            item.path not in booting,
        )
    )


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A name that has all of a large value in it takes seconds in every worker: one of 64 MiB was."""
    if isinstance(val, str | bytes) and len(val) > 200:
        return f"{argname} of {len(val)}"
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    insist(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is collected to the end: no look through all of it finds anything to free."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def ajuste_home(tmp_path: Path) -> Path:
    """A new AJUSTE_HOME whose cache is the ordinary one, so that kernels are downloaded only once."""
    return own_home(tmp_path / "ajuste-home")


@pytest.fixture
def ajuste(tmp_path: Path, ajuste_home: Path) -> Shell:
    """A shell to type commands into, in a directory with a small study."""
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "small.toml").write_text(SMALL)
    return Shell(directory, ajuste_home)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of a test's own."""
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


@pytest.fixture(scope="session")
def settled_lock() -> Path:
    """The lock of the tests that change settings; what such tests had changed when they were killed is put back."""
    lock = Path("/run/lock/ajuste-tests")
    with locked(lock):
        ajuste = Path(sys.executable).with_name("ajuste")
        subprocess.run([ajuste, "restore"], check=False, capture_output=True, timeout=60)
    return lock


@pytest.fixture
def machine_lock(settled_lock: Path) -> Iterator[None]:
    """Keep other tests that change settings of this machine from running meanwhile, in whatever process."""
    with locked(settled_lock):
        yield
        end_started()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A server, for databases that a test makes."""
    with server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store, of each kind that there is."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    running: Server = request.getfixturevalue("postgresql")
    return running.new_database()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    """A signed archive, which the settings name as the mirror."""
    from tests.debian_archive import archive_of_this_machine  # its keys are made by what only guests need

    with archive_of_this_machine(tmp_path, monkeypatch) as made:
        yield made
