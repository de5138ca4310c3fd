"""Packages in a guest: their files, the links that their scripts would make, and nothing beyond."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.packed import deb, entry

from ajuste.model.error import RunError
from ajuste_guest.executor.root import Alternative, GuestRoot, build_root, read_alternatives, root_arguments, with_users
from ajuste_guest.executor.tree import read_archive
from ajuste_guest.kernel.archive.deb import unpack

DIRECTORY, LINK, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def laid_out(tmp_path: Path, *packages: bytes) -> GuestRoot:
    files = []
    for number, content in enumerate(packages):
        files.append(tmp_path / f"{number}.deb")
        files[-1].write_bytes(content)
    return build_root(files, (), "bookworm", tmp_path / "root.cpio")


def contents(root: GuestRoot) -> dict[str, bytes]:
    return dict(read_archive(root.path.read_bytes()))


def test_directories_that_are_links_into_usr_are_those_of_usr(tmp_path: Path) -> None:
    root = laid_out(tmp_path, deb(entry("./bin/sh", mode=0o755), entry("./lib64/ld.so"), entry("./usr/bin/env")))
    assert {"usr/bin/sh", "usr/lib64/ld.so", "usr/bin/env"} <= set(contents(root))
    assert not {"bin", "lib64"} & set(root.entries)
    assert root.has("/bin/sh")
    assert root.has("/usr/bin/sh")
    assert not root.has("/usr/bin/bash")


def test_programs_are_found_as_by_a_shell(tmp_path: Path) -> None:
    root = laid_out(
        tmp_path,
        deb(
            entry("./usr/bin/python3.11", mode=0o755),
            entry("./usr/bin/python3", LINK, "python3.11"),
            entry("./usr/bin/dangling", LINK, "nowhere"),
            entry("./usr/bin/circle", LINK, "circle"),
            entry("./usr/share/data"),
            entry("./usr/games/rogue", mode=0o755),
        ),
    )
    assert root.find("python3") == "/usr/bin/python3"
    assert root.find("/bin/python3") == "/bin/python3"
    assert root.find("rogue") == "/usr/games/rogue"
    for name in ("dangling", "circle", "data", "/usr/share/data", "./python3", "usr/bin/python3", ""):
        assert root.find(name) is None, name


def test_an_archive_that_follows_another_is_read_too(tmp_path: Path) -> None:
    root = laid_out(tmp_path, deb(entry("./usr/bin/a"))).path.read_bytes()
    assert list(read_archive(root + root)) == 2 * list(read_archive(root))
    assert list(read_archive(root + b"garbage")) == list(read_archive(root))


def test_documentation_and_translations_are_left_out(tmp_path: Path) -> None:
    names = ("doc/x/copyright", "man/man1/x.1.gz", "locale/de/x.mo", "zoneinfo/UTC")
    root = laid_out(tmp_path, deb(*(entry(f"./usr/share/{name}") for name in names)))
    assert [name for name in contents(root) if name.startswith("usr")] == ["usr/share/zoneinfo/UTC"]


def test_of_two_packages_with_the_same_file_the_first_counts(tmp_path: Path) -> None:
    root = laid_out(tmp_path, deb(entry("./etc/x"), content=b"first"), deb(entry("./etc/x"), content=b"second"))
    assert contents(root)["etc/x"] == b"first"


def test_the_same_packages_give_the_same_archive(tmp_path: Path) -> None:
    packages = (deb(entry("./usr/bin/a", mode=0o755), entry("./etc/b")), deb(entry("./usr/bin/c", HARD, "./etc/b")))
    assert laid_out(tmp_path, *packages).sha256 == laid_out(tmp_path, *packages).sha256


@pytest.mark.parametrize(
    "members",
    [
        [entry("../outside")],
        [entry("/outside")],
        [entry("./usr/../../outside")],
        [entry("./a", HARD, "../secret")],
        [entry("./dev/mem", tarfile.CHRTYPE)],
        [entry("./dev/sda", tarfile.BLKTYPE)],
        [entry("./a", tarfile.FIFOTYPE)],
        [entry("./a"), entry("./a/b")],
    ],
)
def test_names_that_lead_out_and_special_files_are_refused(tmp_path: Path, members: list[tarfile.TarInfo]) -> None:
    with pytest.raises(RunError):
        laid_out(tmp_path, deb(*members))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.deb", "root.cpio"]


def test_power_and_the_guests_own_files_are_not_taken(tmp_path: Path) -> None:
    guest_files = ("init", "ajuste/bin/ajuste-workloads", "proc/x", "sys/x", "dev/null", "study/x")
    root = laid_out(tmp_path, deb(entry("./usr/bin/su", mode=0o6755), *(entry(f"./{name}") for name in guest_files)))
    assert not set(guest_files) & set(contents(root))
    listed = subprocess.run(["cpio", "-tv", "--quiet"], input=root.path.read_bytes(), capture_output=True, check=True)
    (line,) = [line for line in listed.stdout.decode().splitlines() if line.endswith("usr/bin/su")]
    assert line.startswith("-rwxr-xr-x")


@pytest.mark.parametrize("target", ["/ajuste", "/", "../../..", "/proc", "..", "/bin"])
def test_nothing_is_written_through_a_link_to_what_is_the_guests_own(tmp_path: Path, target: str) -> None:
    way = entry("./etc/way", LINK, target)
    names = ("bin/ajuste-workloads", "init", "ajuste/boot.json")
    root = laid_out(tmp_path, deb(way, *(entry(f"./etc/way/{name}") for name in names)), deb(entry("./etc/way/init")))
    assert not {"init", "ajuste/boot.json", "ajuste/bin/ajuste-workloads"} & set(contents(root))
    assert not any(name.startswith("etc/way/") for name in contents(root))


def test_a_link_to_a_directory_of_the_packages_is_followed(tmp_path: Path) -> None:
    root = laid_out(
        tmp_path,
        deb(entry("./usr/share/real", DIRECTORY), entry("./usr/lib/way", LINK, "../share/real")),
        deb(entry("./usr/lib/way/file")),
    )
    assert "usr/share/real/file" in contents(root)
    assert root.has("/usr/lib/way/file")


SCRIPT = """\
#!/bin/sh
update-alternatives --install /usr/bin/awk awk /usr/bin/mawk 5 \\
    --slave /usr/bin/nawk nawk /usr/bin/mawk
update-alternatives --quiet --install /usr/bin/$x $x /usr/bin/y 10
update-alternatives --install /usr/bin/../../x x /etc/y 10
update-alternatives --install /usr/bin/late late /usr/bin/$(id) 10
update-alternatives --install "unclosed
"""


def test_alternatives_are_those_that_a_script_names_in_plain_words() -> None:
    assert read_alternatives(SCRIPT) == [
        Alternative("/usr/bin/awk", "awk", "/usr/bin/mawk", 5),
        Alternative("/usr/bin/nawk", "nawk", "/usr/bin/mawk", 5),
    ]


def test_no_maintainer_script_is_run(tmp_path: Path) -> None:
    mark, program = tmp_path / "mark", entry("./usr/bin/own", mode=0o755)
    laid_out(tmp_path, deb(program, content=b"#!/bin/sh\ntouch mark\n", postinst=f"#!/bin/sh\ntouch {mark}\n"))
    unpack([tmp_path / "0.deb"], tmp_path / "unpacked")
    assert (tmp_path / "unpacked/usr/bin/own").is_file()
    assert not mark.exists()


def test_of_alternatives_the_one_of_highest_priority_that_is_there(tmp_path: Path) -> None:
    def awk(name: str, priority: int, *files: tarfile.TarInfo) -> bytes:
        return deb(*files, postinst=f"update-alternatives --install /usr/bin/awk awk /usr/bin/{name} {priority}\n")

    mawk, gawk = entry("./usr/bin/mawk", mode=0o755), entry("./usr/bin/gawk", mode=0o755)
    root = laid_out(tmp_path, awk("mawk", 5, mawk), awk("gawk", 10, gawk), awk("absent", 90))
    assert root.entries["usr/bin/awk"] == "l/etc/alternatives/awk"
    assert root.entries["etc/alternatives/awk"] == "l/usr/bin/gawk"
    assert root.find("awk") == "/usr/bin/awk"


def test_the_alternatives_of_java_are_in_a_file_of_its_own(tmp_path: Path) -> None:
    java = entry("./usr/lib/jvm/java-17/bin/java", mode=0o755)
    listed = b"name=java-17\npriority=1711\nhl java /usr/lib/jvm/java-17/bin/java\n"
    root = laid_out(tmp_path, deb(entry("./usr/lib/jvm/.java-17.jinfo"), content=listed), deb(java))
    assert root.find("java") == "/usr/bin/java"


def test_users_are_those_of_a_new_system_and_of_every_guest(tmp_path: Path) -> None:
    master = b"root:*:0:0:root:/root:/bin/bash\nwww-data:*:33:33:www-data:/var/www:/usr/sbin/nologin\n"
    root = laid_out(tmp_path, deb(entry("./usr/share/base-passwd/passwd.master"), content=master))
    users = contents(root)["etc/passwd"].decode().splitlines()
    assert [line.split(":")[0] for line in users] == ["root", "ajuste", "nobody", "www-data"]
    assert users[0] == "root:x:0:0:root:/root:/bin/sh"
    assert with_users("", "a:\n") == "a:\n"


def test_the_kernel_keeps_the_packages_where_memory_is_not_halved(tmp_path: Path) -> None:
    assert root_arguments(laid_out(tmp_path, deb())) == ("rootfstype=ramfs",)
    assert root_arguments(None) == ()


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_cpio_reads_it(tmp_path: Path) -> None:
    root = laid_out(tmp_path, deb(entry("./usr/bin/ünusual", mode=0o755), entry("./usr/bin/link", LINK, "ünusual")))
    listed = subprocess.run(["cpio", "-t", "--quiet"], input=root.path.read_bytes(), capture_output=True, check=True)
    assert set(listed.stdout.decode().splitlines()) == set(root.entries)
