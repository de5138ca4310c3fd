"""The programs of BPF schedulers in a guest, and kernels that have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste_guest.executor.initramfs import scheduler_file


def kernel(schedulers: Path | None, spec: str = "mine:fast") -> KernelImage:
    return KernelImage(spec=spec, release="6.12.1", vmlinuz=Path("vmlinuz"), schedulers=schedulers, sha256="0" * 64)


def test_a_program_is_the_one_that_was_built_with_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "scx_simple").touch()
    assert scheduler_file(kernel(tmp_path), "scx_simple") == tmp_path / "scx_simple"
    with pytest.raises(RequestError, match="mine:fast: scheduler scx_qmap not found; expected one of scx_simple"):
        scheduler_file(kernel(tmp_path), "scx_qmap")


@pytest.mark.parametrize(("spec", "name"), [("mine:fast", "fast"), ("debian:6.12", "ext")])
def test_a_kernel_without_any_is_refused_with_the_command_that_builds_one(spec: str, name: str) -> None:
    with pytest.raises(RequestError, match=f"{spec} was built without BPF schedulers") as refused:
        scheduler_file(kernel(None, spec), "scx_simple")
    assert str(refused.value.hint).endswith(f"--config lab-ext --name {name}")


def test_a_kernel_that_loads_any_asks_for_the_program(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("CONFIG_SCHED_CLASS_EXT=y\n")
    image = kernel(None, "debian:6.18").model_copy(update={"config": config})
    with pytest.raises(RequestError, match="program of scx_mine not found") as refused:
        scheduler_file(image, "scx_mine")
    assert str(refused.value.hint) == "name its file: --scheduler DIR/scx_mine"
