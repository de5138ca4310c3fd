"""The kernels that ``ajuste compare`` builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.cli.choice import built_kernels
from ajuste.model.error import RequestError
from small_kernel import PATCH, RELEASE, small_kernel


def kernels(source: str | None, *patches: Path, kernel: str | None = None, option: str = "") -> str | None:
    options = [option] if option else []
    return built_kernels(source, patches, options, kernel=kernel, dry_run=False, quiet=True)


def test_a_patch_gives_the_kernel_without_and_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path / "home"))
    tree = str(small_kernel(tmp_path / "linux"))
    (tmp_path / "turns.patch").write_text(PATCH)
    assert kernels(tree, tmp_path / "turns.patch") == f"mine:{RELEASE}-lab,mine:{RELEASE}-lab-turns"
    assert kernels(tree, option="HZ=100") == f"mine:{RELEASE}-lab,mine:{RELEASE}-lab-hz-100"


def test_an_option_that_changes_nothing_is_nothing_to_compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AJUSTE_HOME", str(tmp_path / "home"))
    with pytest.raises(RequestError, match="these changes give the same kernel"):
        kernels(str(small_kernel(tmp_path / "linux")), option="EXPERT=y")


def test_what_does_not_go_together() -> None:
    with pytest.raises(RequestError, match="requires --patch or --option"):
        kernels("debian:6.1")
    with pytest.raises(RequestError, match="--patch and --option require --source"):
        kernels(None, Path("my.patch"))
    with pytest.raises(RequestError, match=r"conflicts with --kernel debian:5\.10"):
        kernels("debian:6.1", Path("my.patch"), kernel="debian:5.10")
    assert kernels(None, kernel="debian:5.10") == "debian:5.10"
