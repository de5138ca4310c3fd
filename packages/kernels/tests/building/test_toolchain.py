"""Requirements of building are asked for before anything is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from ajuste.model.error import RequestError
from ajuste_kernels.building.make import require_tools, require_tools_for


def test_missing_programs_come_with_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RequestError, match=r"bison.*flex") as caught:
        require_tools()
    assert "apt install bc binutils bison flex gcc" in str(caught.value.hint)


def test_options_take_programs_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    require_tools_for({"DEBUG_INFO_BTF": "n", "KERNEL_GZIP": "y"})
    with pytest.raises(RequestError, match="pahole") as caught:
        require_tools_for({"DEBUG_INFO_BTF": "y"})
    assert "dwarves" in str(caught.value.hint)
