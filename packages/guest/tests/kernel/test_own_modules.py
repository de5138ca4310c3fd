"""Machines of a study that need a module of Ajuste's own, and what is said where it cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.catalogue.loader import catalogue
from ajuste.executor.host.rights import require_possible
from ajuste.machine.home import Home
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage, KernelVersion
from ajuste.study.builtin import find_study
from ajuste.study.overrides import without_levels
from ajuste.study.read import read_study
from ajuste.study.resolve import HOST_KERNEL, resolve
from ajuste.study.resolved import ResolvedStudy
from ajuste_guest.kernel.own_module import built_modules

KERNEL = "debian:5.10"
RUNG = "isolation=in the kernel, interrupts off"

ON_THE_HOST = """\
schema = 1
name = "here"
factor = []

[workload]
kind = "linpack"
parameters = { code = "kernel" }

[target]
kind = "host"

[analysis]
metrics = ["elapsed"]
"""


def ladder(*without: str) -> ResolvedStudy:
    study = without_levels(read_study(find_study("linpack-isolation"), catalogue()), without)
    return resolve(study, catalogue(), {KERNEL: KernelVersion.parse("5.10")}, lambda name: f"/usr/bin/{name}")


def test_only_the_last_rung_needs_the_module() -> None:
    needing = {c.configuration.name: c.modules for c in ladder().configurations if c.modules}
    assert needing == {RUNG: ("ajuste_linpack",)}
    assert not any(c.modules for c in ladder(RUNG).configurations)


def test_a_missing_compiler_says_how_to_do_without_the_rung(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    place = Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")
    image = KernelImage(spec=KERNEL, release="5.10.0-11-cloud-amd64", vmlinuz=tmp_path / "vmlinuz", sha256="0" * 64)
    with pytest.raises(RequestError, match="requires gcc") as caught:
        built_modules(ladder(), {KERNEL: image}, place, lambda _: None)
    assert f'--without "{RUNG}"' in str(caught.value.hint)
    assert built_modules(ladder(RUNG), {KERNEL: image}, place, lambda _: None) == {}


def test_it_is_never_loaded_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "here.toml").write_text(ON_THE_HOST)
    study = read_study(tmp_path / "here.toml", catalogue())
    here = resolve(study, catalogue(), {HOST_KERNEL: KernelVersion.parse("6.1")}, lambda name: f"/usr/bin/{name}")
    with pytest.raises(RequestError, match="needs the kernel module ajuste_linpack, which Ajuste loads only in guests"):
        require_possible(here, catalogue(), accept_risk=True)
