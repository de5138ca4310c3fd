from __future__ import annotations

import os
from pathlib import Path

import pytest

from ajuste.machine.home import Home
from ajuste.model.error import RequestError, RunError
from ajuste_guest.executor import qemu as accelerator
from ajuste_guest.executor.qemu import choose_accelerator


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(accelerator, "DEVICE", device)
    return Home(tmp_path / "data", tmp_path / "cache", tmp_path / "state")


def never() -> str:
    raise AssertionError("booted")


def test_kvm_is_used_only_after_a_boot_succeeded_and_that_is_remembered(place: Home) -> None:
    assert choose_accelerator(place, "7.2", "k", lambda: "", {}).name == "kvm"
    assert choose_accelerator(place, "7.2", "k", never, {}).name == "kvm"


def test_a_failed_boot_means_emulation_with_the_reason(place: Home) -> None:
    accelerator = choose_accelerator(place, "7.2", "k", lambda: "it printed nothing", {})
    assert (accelerator.name, accelerator.reason) == ("tcg", "a trial boot with KVM failed: it printed nothing")
    assert choose_accelerator(place, "7.2", "k", never, {}) == accelerator

    def dies() -> str:
        raise RunError("QEMU did not start")

    assert "QEMU did not start" in choose_accelerator(place, "8", "k", dies, {}).reason


@pytest.mark.parametrize(("emulator", "kernel"), [("10.0", "k"), ("7.2", "other")])
def test_another_emulator_or_kernel_is_tried_anew(place: Home, emulator: str, kernel: str) -> None:
    choose_accelerator(place, "7.2", "k", lambda: "", {})
    assert choose_accelerator(place, emulator, kernel, lambda: "no", {}).name == "tcg"


def test_another_process_of_the_same_pid_that_is_writing_is_no_trouble(place: Home) -> None:
    """Write as if it were in another container that shares the home."""
    (place.state / f"accelerator.{os.getpid()}").mkdir(parents=True)
    assert choose_accelerator(place, "7.2", "k", lambda: "", {}).name == "kvm"
    assert choose_accelerator(place, "7.2", "k", never, {}).name == "kvm"


def test_a_damaged_memory_is_no_memory(place: Home) -> None:
    choose_accelerator(place, "7.2", "k", lambda: "", {})
    (place.state / "accelerator.json").write_text("{")
    assert choose_accelerator(place, "7.2", "k", lambda: "no", {}).name == "tcg"


def test_nothing_is_booted_where_kvm_is_not_there_or_not_wanted(place: Home, tmp_path: Path) -> None:
    assert choose_accelerator(place, "7.2", "k", never, {"AJUSTE_ACCELERATOR": "tcg"}).name == "tcg"
    accelerator.DEVICE.unlink()
    assert "has no" in choose_accelerator(place, "7.2", "k", never, {}).reason
    with pytest.raises(RequestError, match="expected tcg"):
        choose_accelerator(place, "7.2", "k", never, {"AJUSTE_ACCELERATOR": "xen"})
