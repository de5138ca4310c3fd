"""The Debian package, installed and removed by dpkg in an overlay over this machine, which stays as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ajuste.cli.main import COMMANDS
from installed import ROOT

PACKAGES = sorted((ROOT / "dist").glob("*.deb"))

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make overlays"),
    pytest.mark.skipif(not PACKAGES, reason="there is no package in dist/; build it with make deb"),
    pytest.mark.timeout(1200),
]

OVERLAY = """set -eu
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" none "$1/root"
mount --bind /proc "$1/root/proc"
mount --bind /dev "$1/root/dev"
mount --bind /run "$1/root/run"
cp "$2" "$1/root/package.deb"
chroot "$1/root" /bin/sh -euc "$3"
"""


def in_overlay(place: Path, script: str) -> str:
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", OVERLAY, "sh", place, PACKAGES[-1], script],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.usefixtures("machine_lock")
@pytest.mark.slow
def test_it_installs_measures_and_leaves_only_data(tmp_path: Path) -> None:
    ordinary = "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/home/someone"
    script = f"""
        mkdir -p /home/someone; chown 65534:65534 /home/someone; cd /
        find /opt /usr /etc /var/lib/ajuste -not -type d 2>/dev/null | sort >/before || true
        dpkg --force-depends -i /package.deb >/dev/null
        {ordinary} ajuste --version --verbose
        {ordinary} ajuste compare --max-time 5s -- sleep 0.01
        {ordinary} /opt/ajuste/bin/python -c 'import matplotlib, optuna, sklearn, cryptography, psycopg'
        test -e /usr/share/bash-completion/completions/ajuste
        for page in {" ".join(("ajuste", *(f"ajuste-{name}" for name in COMMANDS)))}; do
            test -e /usr/share/man/man1/$page.1.gz
        done
        dpkg --verify ajuste
        dpkg -r ajuste
        dpkg --purge ajuste
        find /opt /usr /etc /var/lib/ajuste -not -type d 2>/dev/null | sort >/after || true
        diff /before /after && echo nothing left
        test -e /home/someone/.local/share/ajuste/store.sqlite
    """
    output = in_overlay(tmp_path, script)
    assert "installed:  by deb, in /opt/ajuste/" in output
    assert output.count("results in ~/.local/share/ajuste") == 1
    assert "nothing left" in output


def test_it_says_for_which_python_it_is_and_names_no_path_of_the_build(tmp_path: Path) -> None:
    fields = subprocess.run(["dpkg-deb", "-f", PACKAGES[-1]], capture_output=True, text=True, check=True).stdout
    assert "Depends: python3 (>= 3." in fields
    subprocess.run(["dpkg-deb", "-x", PACKAGES[-1], tmp_path], check=True)
    scripts = [file for file in (tmp_path / "opt/ajuste/bin").iterdir() if not file.is_symlink()]
    assert not [file.name for file in scripts if str(ROOT).encode() in file.read_bytes()]
    assert not list(tmp_path.rglob("direct_url.json"))
    shutil.rmtree(tmp_path / "opt")
