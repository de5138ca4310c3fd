"""The programs of BPF schedulers in a guest, and kernels that have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.executor.guest.initramfs import scheduler_file
from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage


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
