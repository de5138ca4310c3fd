"""Installing from a file as an ordinary user in an empty home, outside of the source tree: the commands of the page,
and from the file to a verdict on a fresh system without apt and dpkg.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from benchmarks.install import MOST_MB
from benchmarks.reboots.image import MIRROR

from ajuste.machine.home import SUDO_PATH
from installed import ROOT
from pages import blocks, commands

PAGE = ROOT / "docs" / "install.md"
NOBODY = 65534
SYSTEM = "/usr/bin/python3"
"""The distribution's, which every user can run."""
INHERITED = ("PIP_", "SSL_", "REQUESTS_", "http", "HTTP")
"""Variables that say how packages are downloaded here."""

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not Path(SYSTEM).exists(), reason=f"{SYSTEM} is not installed"),
]


FRESH = """set -eu
debootstrap --foreign --variant=minbase --include=python3-venv,util-linux trixie "$1" "$2"
for package in "$1"/var/cache/apt/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar --extract --directory "$1" --keep-directory-symlink --skip-old-files
done
cd "$1"
rm -rf usr/bin/apt* usr/bin/dpkg* usr/bin/sqv usr/lib/apt usr/share/keyrings etc/apt
rm -rf var/lib/apt var/lib/dpkg var/cache/apt
[ ! -L proc ] || rm proc # within a container
mkdir -p proc etc/ssl/certs
cp /etc/ssl/certs/ca-certificates.crt etc/ssl/certs
cp -L /etc/resolv.conf etc
"""
"""Debian's programs, unpacked and not configured, without those that manage packages, and without their keys."""

INSIDE = """set -eu
mount -t proc none "$0/proc"
mount --rbind /dev "$0/dev"
mount --rbind /sys "$0/sys"
mount -t tmpfs none "$0/run"
mkdir -m 1777 "$0/run/lock"
exec chroot "$0" "$@"
"""


@dataclass(frozen=True)
class User:
    """An ordinary user with a home that has the wheel and the script in ``downloads``, and else nothing."""

    home: Path
    root: Path = Path("/")

    def run(self, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        who = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        place = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", INSIDE, str(self.root)]
        inherited = {name: value for name, value in os.environ.items() if name.startswith(INHERITED)}
        home = f"/{self.home.relative_to(self.root)}"
        return subprocess.run(
            [*(place if self.root != Path("/") else ()), *who, "/bin/sh", "-c", f"cd {home}/downloads; {command}"],
            env={
                **inherited,
                "HOME": home,
                "PATH": f"{home}/.local/bin:{home}/tools/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "PYTHON": SYSTEM,
                "PIPX_DEFAULT_PYTHON": SYSTEM,
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=1000,
        )

    def must(self, command: str) -> str:
        done = self.run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    def megabytes(self) -> float:
        """Return the size of the installation, with the bytecode of all that was used."""
        files = (file for file in (self.home / ".local" / "lib").rglob("*") if file.is_file() and not file.is_symlink())
        return sum(file.stat().st_size for file in files) / 1e6

    def files(self) -> set[str]:
        """Return all files that are there, without what pip and pipx keep to be quick."""
        paths = (file.relative_to(self.home) for file in self.home.rglob("*") if not file.is_dir() or file.is_symlink())
        return {str(file) for file in paths if file.parts[0] not in ("tools", "downloads") and "pip" not in str(file)}

    def empty(self) -> list[Path]:
        """Directories that an installation could have made and not removed."""
        made = (place for place in (self.home / ".local").rglob("*") if place.is_dir() and "ajuste" not in place.parts)
        return [place for place in made if not any(place.iterdir())]


@pytest.fixture
def user(wheel: Path) -> Iterator[User]:
    home = Path(tempfile.mkdtemp(prefix="ajuste-user-"))
    yield User(furnished(home, wheel))
    shutil.rmtree(home)


@pytest.fixture
def user_of_a_fresh_system(wheel: Path) -> Iterator[User]:
    root = Path(tempfile.mkdtemp(prefix="ajuste-system-"))
    root.chmod(0o755)
    try:
        made = subprocess.run(["sh", "-c", FRESH, "sh", root, MIRROR], capture_output=True, text=True, check=False)
        assert made.returncode == 0, f"{made.stdout[-2000:]}\n{made.stderr[-2000:]}"
        home = root / "home" / "someone"
        home.mkdir()
        yield User(furnished(home, wheel), root)
    finally:
        shutil.rmtree(root)


def furnished(home: Path, wheel: Path) -> Path:
    """A home with what was downloaded."""
    (home / "downloads").mkdir()
    for each in wheel.parent.glob("*.whl"):
        shutil.copy(each, home / "downloads")
    shutil.copy(ROOT / "setup" / "install", home / "downloads" / "install")
    if os.geteuid() == 0:
        for place in (home, home / "downloads"):
            os.chown(place, NOBODY, NOBODY)
    return home


def is_data(file: str) -> bool:
    return file.startswith((".local/share/ajuste/", ".cache/ajuste/", ".local/state/ajuste/"))


@pytest.mark.usefixtures("machine_lock")
@pytest.mark.slow
def test_every_command_of_the_page_works_in_its_order(user: User) -> None:
    user.must(f"{SYSTEM} -m venv ~/tools && ~/tools/bin/python -m pip install --quiet pipx")
    for block in blocks(PAGE):
        for command in commands(block):
            if not command.startswith("sudo "):
                user.must(command)
    left = user.files()
    assert ".local/share/ajuste/store.sqlite" in left
    assert {file for file in left if not is_data(file)} == set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs for all users")
def test_root_installs_for_all_users_where_sudo_finds_it(user: User) -> None:
    """Install into a /usr/local of its own."""
    script = f"""set -eu
    mount -t tmpfs -o mode=0755 none /usr/local
    mkdir -p /usr/local/bin /usr/local/share/man
    sh "$1"/install "$1"/ajuste-*.whl
    env -i PATH={SUDO_PATH} ajuste --version --verbose
    find /usr/local/lib/ajuste -name "__init__.*.pyc" -path "*/ajuste/__pycache__/*" | grep -q .
    setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups ajuste --version
    sh "$1"/install remove
    find /usr/local | sort | tr '\\n' ' '
    """
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", user.home / "downloads"],
        env={**os.environ, "PYTHON": SYSTEM, "PATH": SUDO_PATH},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ajuste 0.1.0\n") == 3
    assert "setup/install, in /usr/local/lib/ajuste" in done.stdout
    *_, removed, left = done.stdout.splitlines()
    assert removed.startswith("Ajuste is removed")
    assert left.split() == ["/usr/local", "/usr/local/bin", "/usr/local/share", "/usr/local/share/man"]


@pytest.fixture
def private() -> Iterator[Path]:
    """A Python that root alone can start, and a wheel that needs nothing else."""
    with tempfile.TemporaryDirectory() as directory:
        private = Path(directory)
        shutil.copy(Path(SYSTEM).resolve(), private / "python3")
        with zipfile.ZipFile(private / "ajuste-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("ajuste_here.py", "def main():\n    print('here')\n")
            about = "ajuste-1.dist-info"
            wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: ajuste\nVersion: 1\n")
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\najuste = ajuste_here:main\n")
            wheel.writestr(f"{about}/RECORD", "")
        (private / "ajuste_stats-1-py3-none-any.whl").touch()
        yield private


def installed_by_root(private: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Install as root into a /usr/local of its own and run the ``script`` after it; return what both say."""
    begin = 'mount -t tmpfs -o mode=0755 none /usr/local; sh "$1" "$2"/ajuste-*.whl; code=$?; '
    return subprocess.run(
        [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            begin + script,
            "sh",
            ROOT / "setup/install",
            private,
        ],
        env={"PATH": f"{private}:{SUDO_PATH}", **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs for all users")
def test_a_python_that_others_cannot_run_is_refused_and_changes_nothing(private: Path) -> None:
    done = installed_by_root(private, "ls -A /usr/local; exit $code", PYTHON=str(private / "python3"))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"other users cannot run {private}/python3" in done.stderr.splitlines()[0]
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs for all users")
@pytest.mark.slow
def test_root_installs_with_a_python_that_everybody_can_run(private: Path) -> None:
    done = installed_by_root(private, f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups env ajuste --version")
    assert (done.returncode, done.stdout) == (0, "here\nhere\n"), done.stderr


@pytest.mark.vm
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a system of its own")
@pytest.mark.skipif(shutil.which("debootstrap") is None, reason="debootstrap is not installed")
@pytest.mark.usefixtures("machine_lock")
@pytest.mark.slow
def test_from_the_file_to_a_verdict_in_a_guest_and_back_on_a_system_without_apt(user_of_a_fresh_system: User) -> None:
    user = user_of_a_fresh_system
    assert user.run("command -v apt-get || command -v dpkg || command -v qemu-system-x86_64").returncode != 0
    output = user.must("SHELL=/bin/zsh sh install ajuste-*.whl")
    assert output.startswith("ajuste 0.1.0\n")
    assert "Add fpath=(/home/someone/.local/share/zsh/site-functions $fpath) to ~/.zshrc" in output
    assert "setup/install, in" in user.must("ajuste --version --verbose")
    assert json.loads(user.must("ajuste compare --blocks 20 --json -- sleep 0.01"))["study"] == "compare"
    verdicts = json.loads(user.must("ajuste run granularity --json"))["verdicts"]
    assert {verdict["verdict"] for verdict in verdicts if verdict["metric"] == "involuntary-switches"} == {"differs"}
    offered = user.must("COMP_WORDS='ajuste report ' COMP_CWORD=2 _AJUSTE_COMPLETE=complete_bash ajuste")
    assert set(offered.splitlines()) >= {"granularity", "compare"}
    user.must("bash -c '. ~/.local/share/bash-completion/completions/ajuste && complete -p ajuste'")
    missing = user.run("ajuste report granularity --pictures pictures")
    assert missing.stderr.splitlines()[1].strip() == "install it: sh install 'WHEEL[pictures]'"
    assert user.megabytes() <= MOST_MB
    output = user.must("sh install remove")
    assert "/home/someone/.local/share/ajuste" in output
    assert {file for file in user.files() if not is_data(file)} == set()
    assert user.empty() == []


@pytest.mark.parametrize(
    ("command", "message", "environment"),
    [
        ("sh install", "expected one argument", {}),
        ("sh install no-such.whl", "wheel not found", {}),
        ("sh install remove", "Ajuste is not installed in", {}),
        ("touch a-1-py3-none-linux_riscv64.whl; sh install a-*.whl", "is for another kind of machine; this one is", {}),
        ("sh install ajuste-*.whl", "Ajuste requires Python 3.11 or later", {"PYTHON": "./old-python"}),
        ("sh install ajuste-*.whl", "cannot write to /proc/.local", {"HOME": "/proc"}),
        ("rm ajuste_stats-*.whl; sh install ajuste-*.whl", "ajuste_stats-*.whl is not beside ajuste-", {}),
    ],
)
def test_a_wrong_request_is_one_message_and_changes_nothing(
    user: User, command: str, message: str, environment: dict[str, str]
) -> None:
    old = user.home / "downloads" / "old-python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 && exit\nexit 1\n')
    old.chmod(0o755)
    done = user.run(command, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr.splitlines()[0]
    assert len(done.stderr.splitlines()) == 2
    assert user.files() == set()


@pytest.mark.slow
def test_nothing_of_the_present_directory_is_imported(user: User) -> None:
    downloads = user.home / "downloads"
    for name in ("venv", "ensurepip", "pip", "compileall"):
        (downloads / f"{name}.py").write_text(f"open('/tmp/imported-{user.home.name}', 'a').write('{name}\\n')\n")
    user.must("sh install ajuste-*.whl")
    assert not Path(f"/tmp/imported-{user.home.name}").exists()


@pytest.mark.slow
def test_a_failed_installation_leaves_the_one_before(user: User) -> None:
    (user.home / "downloads" / "broken-1-py3-none-any.whl").write_bytes(b"no wheel")
    environment = user.home / ".local" / "lib" / "ajuste"
    user.must("mkdir -p ~/.local/lib/ajuste && touch ~/.local/lib/ajuste/mark")
    assert user.run("sh install broken-1-py3-none-any.whl").returncode != 0
    assert [file.name for file in environment.iterdir()] == ["mark"]
    assert user.files() == {".local/lib/ajuste/mark"}
