"""Faults in kernels that were built here: each is one clear error, and nothing wrong is used."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste_guest.kernel.cache import write_record
from ajuste_kernels.building.built import find_built, give_name, kept_by, read_built
from spoilt import SPOILT

KEY = "a" * 64


@pytest.fixture
def built(place: Home, bzimage: Callable[[str], bytes]) -> Path:
    """A kernel as ``ajuste kernel build`` keeps it, by the name ``base``."""
    directory = place.cache / "built" / KEY
    (directory / "schedulers").mkdir(parents=True)
    (directory / "vmlinuz").write_bytes(bzimage("6.1.0"))
    (directory / "config").write_text("CONFIG_SMP=y\n")
    (directory / "schedulers/scx_simple").write_bytes(b"a program")
    (directory / "provenance.json").write_text(
        '{"source": "a", "source_digest": "b", "config": "lab", "compiler": "gcc"}'
    )
    image = KernelImage(
        spec="mine:",
        release="6.1.0",
        vmlinuz=Path("vmlinuz"),
        config=Path("config"),
        schedulers=Path("schedulers"),
        sha256="0" * 64,
    )
    write_record(directory, image)
    kernel = read_built(KEY, place)
    assert kernel is not None
    give_name(kernel, "base", place)
    return directory


@pytest.mark.usefixtures("built")
def test_another_process_of_the_same_pid_that_names_a_kernel_is_no_trouble(place: Home) -> None:
    """The process is in another container that shares the home."""
    kernel = find_built("base", place)
    (kept_by(place) / "names" / f".other.{os.getpid()}").mkdir()
    give_name(kernel, "other", place)
    assert find_built("other", place).directory == kernel.directory


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize(
    "name", ["vmlinuz", "config", "schedulers/scx_simple", "provenance.json", "kernel.json", "checksums.json"]
)
def test_a_built_kernel_that_is_not_what_was_built_is_refused(built: Path, place: Home, name: str, how: str) -> None:
    find_built("base", place)
    SPOILT[how](built / name)
    with pytest.raises(RequestError, match="mine:base is damaged on the disk") as caught:
        find_built("base", place)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("build it again")


@pytest.mark.parametrize("how", SPOILT)
def test_a_damaged_name_is_no_kernel(built: Path, place: Home, how: str) -> None:
    SPOILT[how](place.cache / "built/names/base")
    if how in ("last bit", "cut off"):  # The end of its line, which says nothing.
        assert find_built("base", place).directory == built
        return
    with pytest.raises(RequestError):
        find_built("base", place)
