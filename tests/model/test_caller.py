"""Root reads no more of what a person names than the one who called sudo could."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.cli.studies import show
from ajuste.machine.home import Home
from ajuste.model.caller import open_found, open_given
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste.store.head import RunNotes
from ajuste.study.read import read_study
from ajuste_analyse.files import read_files
from ajuste_ci.project import read_project
from ajuste_guest.executor.initramfs import GuestFiles, build_initramfs
from ajuste_guest.kernel.fetch import fetch_kernel
from ajuste_guest.kernel.schedulers import read_schedulers
from ajuste_kernels.building.configuration import read_config_file
from ajuste_kernels.building.patch import read_patches
from ajuste_kernels.building.sources import open_source
from ajuste_kernels.difference import named_config
from ajuste_lab.campaign.candidates import Candidates
from ajuste_live.state import is_asked_to_stop, kept_state, own_state
from ajuste_profiles.tuned import read_text
from namespace import needs_root

CALLER = 54321


def show_study(file: Path) -> None:
    show(str(file))


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of root's with a secret, and one of the caller's; everybody may come there."""
    monkeypatch.setenv("SUDO_UID", str(CALLER))
    monkeypatch.setenv("SUDO_GID", str(CALLER))
    with TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o755)
        (place / "secret").write_text("[secret]\npassword = 1\n")
        (place / "secret").chmod(0o600)
        (place / "callers").mkdir()
        os.chown(place / "callers", CALLER, CALLER)
        yield place


@needs_root
@pytest.mark.parametrize(
    "read", [open_given, read_study, read_project, show_study], ids=lambda function: function.__name__
)
def test_the_callers_link_to_what_the_caller_cannot_read_is_not_followed(
    place: Path, read: Callable[[Path], object]
) -> None:
    link = place / "callers" / "ajuste.toml"
    link.symlink_to(place / "secret")
    with pytest.raises((RequestError, PermissionError)) as refused:
        read(link)
    assert "Permission denied" in str(refused.value)
    assert "password" not in str(refused.value)


@needs_root
def test_nor_is_a_note(place: Path) -> None:
    notes = place / "callers" / "notes"
    notes.mkdir()
    (notes / "run.txt").symlink_to(place / "secret")
    assert RunNotes(Home(place / "callers", place, place)).of("run") == ""


@needs_root
def test_what_the_caller_can_read_is_read_also_through_a_link(place: Path) -> None:
    for name, owner, mode in (("all", 0, 0o644), ("own", CALLER, 0o400), ("group", 0, 0o040)):
        file = place / name
        file.write_text(name)
        os.chown(file, owner, CALLER)
        file.chmod(mode)
        (place / "callers" / name).symlink_to(file)
        with open_given(place / "callers" / name) as opened:
            assert opened.read() == name.encode()


DOORS: dict[str, Callable[[Path], object]] = {
    "file": open_given,
    "study": read_study,
    "analyse": lambda file: read_files([file]),
    "analyse DIRECTORY": lambda file: read_files([file.parent / "closed"]),
    "analyse PATTERN": lambda file: read_files([file.parent / "closed" / "*.csv"]),
    "referee --candidate": lambda file: Candidates(file.parent / "campaign").take(file),
    "referee --candidate DIRECTORY": lambda file: Candidates(file.parent / "campaign").take(file.parent / "closed"),
    "kernel diff, bisect": lambda file: named_config(str(file), home_of(file.parent), print),
    "kernel build --config": lambda file: read_config_file(file, home_of(file.parent)),
    "kernel build --patch": lambda file: read_patches([file]),
    "kernel --source DIRECTORY": lambda file: open_source(str(file.parent / "closed"), home_of(file.parent), print),
    "--scheduler": lambda file: read_schedulers([Path(f"scx_mine={file}")]),
    "path:VMLINUZ": lambda file: fetch_kernel(f"path:{file}", home_of(file.parent)),
    "--machine": lambda file: catalogue().find_machine(str(file), file.parent),
    "profile": read_text,
    "program or file in a guest": lambda file: guest_with(file),
}
"""Readers of files that a person names on the command line or in a study."""


def home_of(directory: Path) -> Home:
    return Home(directory / "data", directory / "cache", directory / "state")


def guest_with(file: Path) -> None:
    kernel = KernelImage(spec="", release="6.1", vmlinuz=file, sha256="")
    files = GuestFiles(study_files={"given": file})
    build_initramfs(files, kernel, file.parent / "initramfs", quiet_gate=False)


@needs_root
@pytest.mark.parametrize("door", DOORS)
def test_what_is_roots_is_not_shown_to_the_one_who_called_sudo(
    place: Path, door: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (place / "secret.toml").write_text("password = 1\n")
    (place / "secret.toml").chmod(0o600)
    (place / "closed").mkdir(mode=0o700)
    (place / "closed" / "password.csv").write_text("password\n1\n2\n")
    with pytest.raises((RequestError, PermissionError)) as refused:
        DOORS[door](place / "secret.toml")
    assert re.search("Permission denied|has no files|empty directory", str(refused.value))
    assert "password" not in str(refused.value) + "".join(capfd.readouterr())
    assert not list(place.glob("campaign/candidates/*/*"))


@needs_root
def test_what_ajuste_finds_and_is_roots_all_the_way_is_read_by_its_own_name_alone(place: Path) -> None:
    with open_found(place / "secret") as opened:
        assert b"password" in opened.read()
    (place / "callers" / "secret").hardlink_to(place / "secret")
    with pytest.raises(PermissionError):
        open_found(place / "callers" / "secret")


@needs_root
def test_the_state_of_a_live_experiment_leads_root_nowhere(place: Path) -> None:
    live = place / "callers" / "state" / "live"
    live.mkdir(parents=True)
    home = home_of(place / "callers")
    (place / "secret").write_text(own_state("run", "study").model_dump_json())
    for target in (place / "secret", Path("/dev/zero")):
        (live / "now.json").symlink_to(target)
        (live / "stop").symlink_to(target)
        assert kept_state(home) is None
        assert not is_asked_to_stop(home, "")
        for name in ("now.json", "stop"):
            (live / name).unlink()
    os.mkfifo(live / "now.json")
    assert kept_state(home) is None


@needs_root
def test_root_is_root_again_afterwards(place: Path) -> None:
    before = Path("/proc/thread-self/status").read_text()
    with open_found(place / "secret"), pytest.raises(FileNotFoundError):
        open_given(place / "nothing")
    lines = ("Uid:", "Gid:", "Groups:", "CapEff:")
    after = Path("/proc/thread-self/status").read_text()
    assert [line for line in after.splitlines() if line.startswith(lines)] == [
        line for line in before.splitlines() if line.startswith(lines)
    ]


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for odd in (tmp_path / "fifo", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            open_given(odd)
