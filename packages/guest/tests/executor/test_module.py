"""Modules and their order, on objects that are compiled here."""

from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
from pathlib import Path
from typing import Any

import backports.zstd as zstd
import pytest

from ajuste.model.error import RequestError
from ajuste.model.kernel import KernelImage
from ajuste_guest.executor.module import modules_for

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@pytest.fixture
def kernel(tmp_path: Path) -> KernelImage:
    modules = tmp_path / "lib/modules/6.1.0-test"
    (modules / "kernel/net").mkdir(parents=True)
    (modules / "modules.builtin").write_text("kernel/lib/built-in-one.ko\n")
    vmlinuz = tmp_path / "vmlinuz"
    vmlinuz.touch()
    return KernelImage(spec="path:x", release="6.1.0-test", vmlinuz=vmlinuz, modules=modules, sha256="0" * 64)


def add(kernel: KernelImage, name: str, **info: str) -> bytes:
    """Compile an object with such a .modinfo, and put it where the kernel's modules are."""
    lines = "".join(f'.asciz "{key}={value}"\n' for key, value in info.items())
    assert kernel.modules is not None
    path = kernel.modules / "kernel/net" / name
    plain = path.with_name(path.name.split(".")[0])
    subprocess.run(
        ["gcc", "-c", "-x", "assembler", "-", "-o", plain], input=f".section .modinfo\n{lines}", text=True, check=True
    )
    content = plain.read_bytes()
    plain.unlink()
    packers: dict[str, Any] = {".xz": lzma.compress, ".gz": gzip.compress, ".zst": zstd.compress}
    path.write_bytes(packers.get(path.suffix, bytes)(content))
    return content


def test_modules_come_after_what_they_need_and_unpacked(kernel: KernelImage) -> None:
    contents = {
        "top": add(kernel, "top.ko.xz", depends="middle,low-er", softdep="pre: soft post: later"),
        "middle": add(kernel, "middle.ko.zst", depends="low_er,built_in_one"),
        "low_er": add(kernel, "low-er.ko.gz", depends=""),
        "soft": add(kernel, "soft.ko", license="GPL"),
    }
    modules = modules_for(("top",), kernel)
    order = [module.name for module in modules]
    assert sorted(order) == sorted(contents)
    assert order.index("low_er") < order.index("middle") < order.index("top")
    assert order.index("soft") < order.index("top")
    for module in modules:
        assert module.content == contents[module.name]
    assert str(modules[-1].path) == "/lib/modules/6.1.0-test/kernel/net/top.ko"


def test_soft_dependencies_may_be_algorithms_or_missing(kernel: KernelImage) -> None:
    add(kernel, "ext4.ko", depends="", softdep="pre: crypto-crc32c nowhere")
    add(kernel, "crc32c_generic.ko", depends="")
    assert [module.name for module in modules_for(("ext4",), kernel)] == ["crc32c_generic", "ext4"]


def test_what_is_built_in_needs_no_loading(kernel: KernelImage) -> None:
    assert modules_for(("built_in_one", "built-in-one"), kernel) == ()


def test_modules_that_need_each_other_end(kernel: KernelImage) -> None:
    add(kernel, "a.ko", depends="b")
    add(kernel, "b.ko", depends="a")
    assert {module.name for module in modules_for(("a",), kernel)} == {"a", "b"}


def test_an_unknown_module_is_answered_with_the_nearest(kernel: KernelImage) -> None:
    add(kernel, "null_blk.ko")
    with pytest.raises(RequestError, match="no module nul_blk") as caught:
        modules_for(("nul_blk",), kernel)
    assert "null_blk" in (caught.value.hint or "")
    with pytest.raises(RequestError, match="no module"):
        modules_for((f"../{kernel.modules.name if kernel.modules else ''}/null_blk",), kernel)


def test_a_kernel_without_modules_says_so(kernel: KernelImage) -> None:
    with pytest.raises(RequestError, match="has no modules"):
        modules_for(("null_blk",), kernel.model_copy(update={"modules": None}))
    assert modules_for((), kernel.model_copy(update={"modules": None})) == ()


def test_parameters_follow_a_name(kernel: KernelImage) -> None:
    add(kernel, "top.ko", depends="low")
    add(kernel, "low.ko", depends="")
    modules = modules_for(("top size=1  mode=2", "low"), kernel)
    assert [(module.name, module.parameters) for module in modules] == [("low", ""), ("top", "size=1  mode=2")]
    assert [module.line.partition("/kernel/")[2] for module in modules] == ["net/low.ko", "net/top.ko size=1  mode=2"]


def test_what_is_built_in_takes_its_parameters_from_the_command_line(kernel: KernelImage) -> None:
    with pytest.raises(RequestError, match="built into") as refused:
        modules_for(("built-in-one size=1",), kernel)
    assert "built_in_one.size=1" in (refused.value.hint or "")
