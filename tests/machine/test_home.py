"""Directories of Ajuste's files: never where another user decides what is written, and for this user alone."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ajuste.executor.host.host import HostExecutor
from ajuste.machine.files import make_directory, replace_file, write_text
from ajuste.machine.home import Home, home
from ajuste.model.error import RequestError
from ajuste.store.store import Store
from played import begin
from tiers import slow

ADA, BOB = 65534, 65533

AS_ADA = """
import os, sys
from ajuste.machine.home import home
os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
from ajuste.model.error import AjusteError
try:
    print(home(dict(AJUSTE_HOME=sys.argv[1])).data)
except AjusteError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""

BY_ADA = {"SUDO_UID": str(ADA), "SUDO_GID": str(ADA)}


@dataclass(frozen=True)
class FakeEntry:
    """Entry of the user database."""

    pw_dir: str
    pw_name: str = "ada"


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="files of several users need root")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may enter; what is in it is root's."""
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def directory_of(path: Path, uid: int, mode: int = 0o700) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    os.chown(path, uid, uid)
    path.chmod(mode)
    return path


def at(path: Path, **more: str) -> Home:
    return home({"AJUSTE_HOME": str(path), **more})


def test_a_new_home_is_fine_and_nothing_is_made_by_asking(place: Path) -> None:
    assert at(place / "new").data == place / "new/data"
    assert not (place / "new").exists()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
@pytest.mark.parametrize("below", ["", "data", "state", "state/journals", "state/sessions"])
def test_a_directory_that_others_can_write_is_refused(place: Path, below: str, mode: int) -> None:
    directory_of(place / "lab" / below, os.geteuid(), mode)
    with pytest.raises(RequestError, match="is writable by every user") as caught:
        at(place / "lab")
    assert (caught.value.hint or "").startswith(f"chmod o-w {(place / 'lab' / below)}")


def test_a_link_of_ones_own_is_followed_to_where_it_leads(place: Path) -> None:
    (place / "there").mkdir()
    (place / "lab").symlink_to("there")
    assert at(place / "lab").data == place / "lab/data"
    (place / "there").chmod(0o777)
    with pytest.raises(RequestError, match=f"{place / 'there'} is writable by every user"):
        at(place / "lab")


def test_links_in_a_circle_are_refused(place: Path) -> None:
    (place / "lab").symlink_to("lab")
    with pytest.raises(RequestError, match="too many symbolic links"):
        at(place / "lab")


def test_directories_are_made_for_this_user_alone(place: Path) -> None:
    make_directory(place / "a/b/c")
    assert [stat.S_IMODE((place / name).stat().st_mode) for name in ("a", "a/b", "a/b/c")] == [0o700] * 3
    assert stat.S_IMODE(place.stat().st_mode) == 0o755
    (place / "file").touch()
    with pytest.raises(NotADirectoryError):
        make_directory(place / "file")


@needs_root
@pytest.mark.usefixtures("machine_lock")
@pytest.mark.parametrize(
    "command", [("run", "hackbench-granularity"), ("restore",), *slow(("doctor", "--quick")), ("report",)]
)
def test_a_command_says_so_in_one_message_and_writes_nothing(place: Path, command: tuple[str, ...]) -> None:
    lab = directory_of(place / "lab", BOB)
    done = subprocess.run(
        [Path(sys.executable).with_name("ajuste"), *command],
        env={"PATH": os.environ["PATH"], "AJUSTE_HOME": str(lab)},
        capture_output=True,
        text=True,
        check=False,
    )
    if command == ("doctor", "--quick"):  # It keeps nothing.
        assert done.returncode == 0
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert f"cannot store files in {lab}" in done.stderr
    assert list(lab.iterdir()) == []


@needs_root
class TestOfSeveralUsers:
    @pytest.mark.parametrize("below", ["", "data", "cache", "state", "state/journals", "state/sessions"])
    def test_root_keeps_nothing_in_a_directory_of_another(self, place: Path, below: str) -> None:
        directory_of(place / "lab" / below, BOB)
        with pytest.raises(RequestError, match=f"{place / 'lab' / below} belongs to the user {BOB}") as caught:
            at(place / "lab")
        assert caught.value.exit_code == 2

    def test_nor_in_that_of_a_user_who_is_not_the_one_who_called_sudo(self, place: Path) -> None:
        directory_of(place / "lab", BOB)
        with pytest.raises(RequestError, match="belongs to"):
            at(place / "lab", SUDO_UID=str(ADA), SUDO_GID=str(ADA))

    def test_but_where_the_one_who_called_sudo_names_an_own_one(self, place: Path) -> None:
        directory_of(place / "lab", ADA)
        assert at(place / "lab", SUDO_UID=str(ADA), SUDO_GID=str(ADA)).state == place / "lab/state"

    def test_a_link_of_another_is_not_followed(self, place: Path) -> None:
        directory_of(place / "shared", 0, 0o1777)
        (place / "roots").mkdir()
        link = place / "shared/lab"
        link.symlink_to(place / "roots")
        os.chown(link, BOB, BOB, follow_symlinks=False)
        with pytest.raises(RequestError, match=f"{link} is a link owned by the user {BOB}"):
            at(link)

    def test_nor_one_of_the_user_who_called_sudo(self, place: Path) -> None:
        ada = directory_of(place / "ada", ADA)
        directory_of(place / "ada/lab", ADA)
        (ada / "lab/state").symlink_to("/etc")
        os.chown(ada / "lab/state", ADA, ADA, follow_symlinks=False)
        with pytest.raises(RequestError, match=f"is a link owned by the user {pwd.getpwuid(ADA).pw_name}"):
            at(ada / "lab", SUDO_UID=str(ADA), SUDO_GID=str(ADA))

    @pytest.mark.parametrize("below", ["data/reports", "data/cluster-keys", "data/store.sqlite"])
    def test_nor_one_below_it(self, place: Path, below: str) -> None:
        directory_of(place / "ada", ADA)
        directory_of(place / "ada/lab", ADA)
        directory_of(place / "ada/lab/data", ADA)
        link = place / "ada/lab" / below
        link.symlink_to("/etc")
        os.chown(link, ADA, ADA, follow_symlinks=False)
        with pytest.raises(RequestError, match=f"{link} is a link owned by"):
            at(place / "ada/lab", SUDO_UID=str(ADA), SUDO_GID=str(ADA))

    def test_root_writes_no_files_into_a_directory_by_the_link_of_another(self, place: Path) -> None:
        link = directory_of(place / "bob", BOB, 0o755) / "pictures"
        link.symlink_to("/etc")
        os.chown(link, BOB, BOB, follow_symlinks=False)
        for directory in (link, link / "runs"):
            with pytest.raises(RequestError, match=f"{link} is a link owned by the user {BOB}"):
                make_directory(directory)
        assert not Path("/etc/runs").exists()

    def test_root_opens_no_store_of_another(self, place: Path) -> None:
        directory_of(place / "bob", BOB, 0o755)
        with pytest.raises(RequestError, match=f"{place / 'bob'} belongs to the user {BOB}"):
            at(place / "lab", AJUSTE_STORE=f"sqlite:///{place / 'bob/store.sqlite'}")

    @pytest.mark.parametrize("what", ["link", "file", "dangling", "fifo"])
    def test_root_writes_no_report_where_another_has_put_something(self, place: Path, what: str) -> None:
        shared, victim = directory_of(place / "shared", 0, 0o1777), place / "victim"
        victim.write_text("precious")
        path = shared / "report.md"
        match what:
            case "link":
                path.symlink_to(victim)
            case "dangling":
                path.symlink_to(place / "made")
            case "fifo":
                os.mkfifo(path)
            case "file":
                path.touch()
        os.chown(path, BOB, BOB, follow_symlinks=False)
        with pytest.raises(RequestError, match=f"belongs to the user {BOB}; it is not overwritten"):
            write_text(path, "report")
        assert victim.read_text() == "precious"
        assert not (place / "made").exists()

    def test_what_lies_in_the_directory_of_another_can_be_exchanged(self, place: Path) -> None:
        directory_of(place / "bob", BOB, 0o755)
        directory_of(place / "bob/lab", 0)
        with pytest.raises(RequestError, match=f"{place / 'bob'} belongs to the user {BOB}"):
            at(place / "bob/lab")

    def test_a_malformed_caller_is_no_reason_to_trust(self, place: Path) -> None:
        with pytest.raises(RequestError, match="SUDO_UID = 'x'"):
            at(place / "lab", SUDO_UID="x", SUDO_GID="1")

    def test_groups_with_other_members_count_as_others(self, place: Path) -> None:
        lab = directory_of(place / "lab", 0, 0o770)
        os.chown(lab, 0, pwd.getpwnam("nobody").pw_gid)
        with pytest.raises(RequestError, match="other users of its group"):
            at(lab)

    def test_who_was_faster_is_looked_at(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        shared = directory_of(place / "shared", 0, 0o1777)
        ordinary = os.mkdir

        def taken_just_now(name: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
            if name == "lab":
                ordinary(shared / "lab")
                os.chown(shared / "lab", BOB, BOB)
            ordinary(name, mode, dir_fd=dir_fd)

        monkeypatch.setattr(os, "mkdir", taken_just_now)
        with pytest.raises(RequestError, match="belongs to"):
            make_directory(shared / "lab/state")

    @pytest.mark.parametrize(("uid", "ends"), [(ADA, 0), (BOB, 2), (0, 0)])
    def test_an_ordinary_user_has_an_own_one_or_one_of_root(self, place: Path, uid: int, ends: int) -> None:
        directory_of(place / "lab", uid, 0o755)
        done = subprocess.run(
            [sys.executable, "-c", AS_ADA, place / "lab"], capture_output=True, text=True, check=False
        )
        assert done.returncode == ends, done.stderr
        assert ("belongs to" in done.stderr) == bool(ends)

    def test_root_without_sudo_uses_its_own_home_even_if_home_names_another(self, place: Path) -> None:
        ada = directory_of(place / "ada", ADA)
        directories = home({"HOME": str(ada), "XDG_DATA_HOME": str(ada / "data")})
        assert directories.data == Path(pwd.getpwuid(0).pw_dir, ".local/share/ajuste")

    @pytest.mark.parametrize("keeps_home", [True, False])
    def test_under_sudo_results_are_the_callers_and_what_root_carries_out_is_roots(
        self, place: Path, monkeypatch: pytest.MonkeyPatch, keeps_home: bool
    ) -> None:
        ada = directory_of(place / "ada", ADA)
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: FakeEntry(str(ada if uid == ADA else "/root")))
        directories = home({"HOME": str(ada) if keeps_home else "/root", **BY_ADA})
        assert (directories.data, directories.followed) == (ada / ".local/share/ajuste", ada / ".local/state/ajuste")
        assert {directories.cache, directories.state, directories.journals.parent} == {
            Path("/root/.cache/ajuste"),
            Path("/root/.local/state/ajuste"),
        }

    def test_what_root_makes_in_the_callers_directories_is_the_callers(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ada, roots = directory_of(place / "ada", ADA), directory_of(place / "roots", 0)
        for name, value in BY_ADA.items():
            monkeypatch.setenv(name, value)
        for directory in (ada, roots):
            make_directory(directory / "a/b")
            write_text(directory / "a/b/report.md", "report")
            replace_file(directory / "a/b/page.html", b"page")
            with Store(f"sqlite:///{directory}/a/store.sqlite") as store:
                begin(store)
        owners = {root: {path.stat().st_uid for path in root.rglob("*")} for root in (ada, roots)}
        assert owners == {ada: {ADA}, roots: {0}}

    @pytest.mark.parametrize("kind", ["no home", "no user", "home of root", "link out"])
    def test_a_caller_without_a_home_is_told_what_to_set(
        self, place: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        ada = directory_of(place / "ada", ADA)
        if kind == "link out":
            (ada / ".local").symlink_to(directory_of(place / "roots", 0))
        where = {"no home": "/nonexistent", "home of root": str(directory_of(place / "other", 0)), "link out": str(ada)}

        def entry(uid: int) -> FakeEntry:
            if uid == ADA and kind == "no user":
                raise KeyError(uid)
            return FakeEntry("/root" if uid != ADA else where[kind])

        monkeypatch.setattr(pwd, "getpwuid", entry)
        with pytest.raises(RequestError) as caught:
            home({"HOME": "/root", **BY_ADA})
        assert "sudo AJUSTE_HOME=" in (caught.value.hint or "")
        assert not (place / "roots").exists() or not list((place / "roots").iterdir())

    @pytest.mark.usefixtures("machine_lock")
    def test_what_an_experiment_makes_is_for_root_alone(self, place: Path) -> None:
        with HostExecutor(at(place / "lab")):
            pass
        made = [path for path in (place / "lab").rglob("*") if path.is_dir()]
        assert place / "lab/state/journals" in made
        assert {stat.S_IMODE(path.stat().st_mode) for path in (place / "lab", *made)} == {0o700}
