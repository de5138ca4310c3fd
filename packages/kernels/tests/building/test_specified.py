"""Kernels are built as specifications ask for them, once all of these are known to be right."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ajuste.kernel.spec import KernelToBuild, parse_spec
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelVersion
from ajuste_kernels.building.build import (
    BuildRequest,
    build_kernel,
    build_specified,
    require_different,
    version_to_build,
)
from ajuste_kernels.building.built import built_names
from small_kernel import PATCH, RELEASE, small_kernel


@dataclass
class Watcher:
    """Remembers what it was told."""

    messages: list[str] = field(default_factory=list)
    builds: int = 0

    def say(self, text: str) -> None:
        self.messages.append(text)

    def compiling(self, expected: int | None) -> None:
        self.builds += 1

    def compiled(self, count: int) -> None: ...


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return small_kernel(tmp_path / "linux")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


def patch(directory: Path, name: str, granularity: int) -> Path:
    file = directory / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(PATCH.replace("3000000", str(granularity)))
    return file


def version_of(text: str, home: Home) -> KernelVersion:
    spec = parse_spec(text)
    assert isinstance(spec, KernelToBuild)
    return version_to_build(spec, home)


def test_each_is_built_once_and_stands_by_its_name(tree: Path, home: Home) -> None:
    watcher = Watcher()
    texts = [f"build:{tree}", f"build:{tree}+HZ=100", f"build:{tree}+CONFIG_HZ=100"]
    built = build_specified(texts, home, watcher)
    names = [f"mine:{RELEASE}-lab", f"mine:{RELEASE}-lab-hz-100", f"mine:{RELEASE}-lab-hz-100"]
    assert [built[text].image.spec for text in texts] == names
    assert (watcher.builds, len(built_names(home))) == (2, 2)
    again = Watcher()
    assert build_specified(texts, home, again) == built
    assert (again.builds, again.messages) == (0, [])


def test_the_configuration_of_a_specification_is_what_is_built(tree: Path, home: Home) -> None:
    text = f"build:{tree}+config=distro"
    assert build_specified([text], home, Watcher())[text].provenance.config == "distro"


def test_kernels_that_are_there_are_no_business_of_it(tree: Path, home: Home) -> None:
    build_kernel(BuildRequest(str(tree), name="base"), home, Watcher())
    watcher = Watcher()
    assert build_specified(["mine:base"], home, watcher) == {}
    assert list(build_specified(["mine:base", f"build:{tree}"], home, watcher)) == [f"build:{tree}"]
    assert watcher.builds == 0


def test_patches_of_one_file_name_make_kernels_with_names_of_their_own(tree: Path, home: Home, tmp_path: Path) -> None:
    files = [patch(tmp_path, "a/turns.patch", 1), patch(tmp_path, "b/turns.patch", 2)]
    built = build_specified([f"build:{tree}+{file}" for file in files], home, Watcher())
    first, second = (kernel.image.spec for kernel in built.values())
    assert first == f"mine:{RELEASE}-lab-turns"
    assert second.startswith(f"mine:{RELEASE}-lab-turns-")
    assert len({kernel.key for kernel in built.values()}) == 2


def test_what_gives_the_same_kernel_is_nothing_to_compare(tree: Path, home: Home) -> None:
    built = build_specified([f"build:{tree}", f"build:{tree}+EXPERT=y"], home, Watcher())
    with pytest.raises(RequestError, match=r"build:\S+ and build:\S+EXPERT=y give the same kernel; there is nothing"):
        require_different(built)


@pytest.fixture
def untouched(tree: Path, home: Home) -> Iterator[None]:
    """Nothing was made of the tree: building runs its Makefile, which leaves a file."""
    makefile = tree / "Makefile"
    makefile.write_text(f"$(shell touch {tree.parent}/ran)\n{makefile.read_text()}")
    yield
    assert not (tree.parent / "ran").exists()
    assert built_names(home) == []
    assert not home.kernels.exists()


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        ("mine:bse", "built kernel 'bse' not found", "ajuste kernel build"),
        ("path:no/bzImage", "no/bzImage", ""),
        ("build:{tree}+HZZ=100", "option HZZ is not supported by {tree}", "nearest: HZ"),
        ("build:{tree}+NUMA=of", 'option NUMA has no value "of"; expected y or n', "NUMA=VALUE"),
        ("build:{tree}+NUMA=m", "option NUMA has no value m; expected y or n", "NUMA=VALUE"),
        ("build:{tree}+HZ=fast", 'option HZ has no value "fast"; expected a number', "HZ=VALUE"),
        ("build:{tree}+none.patch", "patch none.patch: No such file or directory", "check that the file exists"),
        ("build:{tree}+{tree}/Kconfig", "is not a patch", "git diff"),
        ("build:{tree}+{tree}/../old.patch", "old.patch does not apply: a hunk is rejected", "@@ -2,6 +2,6 @@"),
        ("build:{tree}/nowhere", "linux/nowhere: directory not found", "Makefile"),
        ("build:debain:6.1", "debain:6.1: directory not found", "did you mean debian:6.1"),
        ("build:{tree}/kernel", "is not a Linux kernel source", "Makefile"),
        ("build:git:{tree}@v6.1", "is not a readable git repository", ""),
        ("debian:6.13", "kernel 6.13 not found in debian", "debian:6.12"),
    ],
)
def test_nothing_is_built_or_fetched_where_one_of_them_is_wrong(
    tree: Path, home: Home, wrong: str, message: str, hint: str
) -> None:
    (tree.parent / "old.patch").write_text(PATCH.replace("750000", "500000"))
    with pytest.raises(RequestError) as caught:
        build_specified([f"build:{tree}+HZ=100", "debian:5.10", wrong.format(tree=tree)], home, Watcher())
    assert message.format(tree=tree) in caught.value.message
    assert hint in (caught.value.hint or "")


HZ = """
choice
    prompt "Timer frequency"
config HZ_100
    bool "100 HZ"
config HZ_250
    bool "250 HZ"
endchoice
config TICKS
    int
    default 100 if HZ_100
    default 250 if HZ_250
"""


@pytest.mark.usefixtures("untouched")
def test_an_option_that_follows_from_a_choice_names_what_to_set(tree: Path, home: Home) -> None:
    """Read the sources where they are here; know HZ of a package without fetching it."""
    with (tree / "Kconfig").open("a") as kconfig:
        kconfig.write(HZ)
    for spec, hint in ((f"build:{tree}+TICKS=250", "HZ_250=y"), ("build:debian:6.1+HZ=100", "HZ_100=y")):
        for check in (lambda: version_of(spec, home), lambda: build_specified([spec], home, Watcher())):  # noqa: B023
            with pytest.raises(RequestError, match="follows from others") as caught:
                check()
            assert "HZ_250=y" in caught.value.message
            assert hint in (caught.value.hint or "")
    with pytest.raises(RequestError, match=r"expected one of HZ_100=y, HZ_250=y$") as caught:
        version_of(f"build:{tree}+TICKS=99", home)


@pytest.mark.usefixtures("untouched")
def test_the_version_is_known_before_anything_is_fetched_or_built(tree: Path, home: Home) -> None:
    assert version_of(f"build:{tree}+HZ=100", home) == KernelVersion.parse(RELEASE)
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message=one")):
        who = ("-c", "user.name=Someone", "-c", "user.email=s@example.org")
        subprocess.run(["git", "-C", tree, *who, *words], check=True)
    assert version_of(f"build:git:{tree}@HEAD+HZ=100", home) == KernelVersion.parse(RELEASE)
    with pytest.raises(RequestError, match="option HZZ is not supported"):
        version_of(f"build:git:{tree}+HZZ=100", home)
    assert version_of("build:debian:6.1+NUMA=n", home) == KernelVersion.parse("6.1")
    assert version_of("build:debian:6.12.94", home) == KernelVersion.parse("6.12.94")
    assert KernelVersion.parse("7.0") < version_of("build:debian:7", home) < KernelVersion.parse("8.0")
