"""Search for profiles: where they are found, and what is said of those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.model.error import RequestError, nearest_names
from ajuste.run.testbed import UnpackedPackage
from ajuste_profiles.source import Sources, read_profile
from ajuste_profiles.tuned import Folders, MachineFacts

FACTS = MachineFacts((0,), cpuinfo="")


def write(root: Path, path: str, text: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """tuned with a profile ``fast`` is installed, and another one, with ``fast`` and ``far``, can be fetched."""
    write(tmp_path, "installed/fast/tuned.conf", "[sysctl]\nvm.swappiness=1\n")
    for suite in ("old", "new"):
        write(tmp_path, f"{suite}/usr/lib/tuned/fast/tuned.conf", f"[sysctl]\nkernel.{suite}=1\n")
        write(tmp_path, f"{suite}/usr/lib/tuned/far/tuned.conf", "[main]\ninclude=fast\n")
    return Sources(
        fetch=lambda suite: UnpackedPackage(tmp_path / (suite or "new"), "tuned 1", suite),
        known=("vm.swappiness",),
        installed=Folders([tmp_path / "installed"]),
        root=tmp_path,
    )


def elsewhere(sources: Sources) -> Sources:
    return Sources(sources.fetch, sources.known, True, sources.installed, sources.root)


def without(sources: Sources) -> Sources:
    return Sources(sources.fetch, sources.known, False, Folders([]), sources.root)


def names(spec: str, sources: Sources) -> list[str]:
    return [line.option for line in read_profile(spec, sources, FACTS).lines]


def test_the_installed_one_counts_unless_a_suite_is_named_or_the_machine_is_another(sources: Sources) -> None:
    assert names("tuned:fast", sources) == ["vm.swappiness"]
    assert names("tuned:fast", elsewhere(sources)) == ["kernel.new"]
    assert names("tuned@old:fast", sources) == ["kernel.old"]
    assert names("tuned:far", without(sources)) == ["kernel.new"]
    assert read_profile("tuned@old:fast", sources, FACTS).origin == "tuned 1 of old"


def test_a_profile_that_only_this_machine_has_is_found_for_a_guest_too(sources: Sources, tmp_path: Path) -> None:
    write(tmp_path, "installed/mine/tuned.conf", "[sysctl]\nvm.laptop_mode=1\n")
    assert names("tuned:mine", elsewhere(sources)) == ["vm.laptop_mode"]


def test_a_path_is_a_profile_of_tuned_or_of_sysctl(sources: Sources, tmp_path: Path) -> None:
    assert names(str(tmp_path / "installed" / "fast"), sources) == ["vm.swappiness"]
    assert names(str(tmp_path / "installed" / "fast" / "tuned.conf"), sources) == ["vm.swappiness"]
    assert names(str(write(tmp_path, "own.conf", "vm.laptop_mode = 1\n")), sources) == ["vm.laptop_mode"]
    assert names(str(write(tmp_path, "odd.conf", "[sysctl]\na=1\n")), sources) == ["a"]
    write(tmp_path, "folder/2.conf", "b = 2\n")
    write(tmp_path, "folder/1.conf", "a = 1\n")
    assert names(f"sysctl:{tmp_path / 'folder'}", sources) == names(str(tmp_path / "folder"), sources) == ["a", "b"]


def test_the_systems_own_files_go_by_name_and_sysctl_conf_comes_last(sources: Sources, tmp_path: Path) -> None:
    write(tmp_path, "etc/sysctl.d/10.conf", "a = 1\n")
    write(tmp_path, "usr/lib/sysctl.d/20.conf", "b = 1\n")
    write(tmp_path, "etc/sysctl.conf", "c = 1\na = 2\n")
    assert names("sysctl:system", sources) == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        ("tuned:fest", "profile 'fest' not found", "tuned:fast"),
        ("tuned:../x", "profile '../x' not found in", None),
        ("tuned@old:nothing", "profile 'nothing' not found in tuned 1 of old", None),
        ("fast", "profile 'fast' not found", "tuned:fast"),
        ("sysctl:/nowhere", "/nowhere not found", "sysctl:FILE"),
    ],
)
def test_what_is_not_there_is_told_with_what_may_be_meant(
    sources: Sources, spec: str, message: str, hint: str | None
) -> None:
    with pytest.raises(RequestError, match=message) as raised:
        read_profile(spec, sources, FACTS)
    assert hint is None or hint in (raised.value.hint or "")


def test_a_name_that_is_only_a_little_like_a_part_of_another_is_not_suggested() -> None:
    assert nearest_names("nope", ["openshift"], likeness=55) == []
    assert nearest_names("shift", ["openshift"], likeness=55) == ["openshift"]
