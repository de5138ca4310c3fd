"""``ajuste inventory`` as a person uses it."""

from __future__ import annotations

import json
import platform
from typing import Any

from ajuste.machine.inventory.inventory import Inventory
from ajuste.store.store import Store
from shell import Shell


def test_the_page_has_every_area(ajuste: Shell) -> None:
    output, _ = ajuste("inventory")
    assert output.startswith("CPU\n"), "no empty line"
    for title in ("CPU", "NUMA", "Mitigations", "Kernel", "Memory", "Disks", "Mounts", "Network interfaces", "Limits"):
        assert f"\n{title}\n" in f"\n{output}"
    assert platform.release() in output
    assert max(map(len, output.splitlines())) <= 100


def test_only_the_areas_that_are_named_are_shown(ajuste: Shell) -> None:
    output, _ = ajuste("inventory", "--area", "memory", "--area", "CPU")
    assert [line for line in output.splitlines() if line and not line.startswith(" ")] == ["CPU", "Memory"]
    _, complained = ajuste("inventory", "--area", "Disk", expect=2)
    assert "'Disk' not found; did you mean Disks?" in complained
    for option in (("--json",), ("--diff", "now", "now")):
        assert f"--area conflicts with {option[0]}" in ajuste("inventory", "--area", "CPU", *option, expect=2)[1]


def test_the_document_is_an_inventory(ajuste: Shell) -> None:
    document = ajuste.json("inventory")
    assert Inventory.model_validate(document).model_dump(mode="json") == document


def test_two_files_and_this_machine_can_be_compared(ajuste: Shell) -> None:
    document = ajuste.json("inventory")
    (ajuste.directory / "here.json").write_text(json.dumps(document))
    document["kernel"]["settings"]["vm.swappiness"] = "133"
    document["memory"]["transparent_huge_pages"] = "\x1b[2Jhostile"
    (ajuste.directory / "other.json").write_text(json.dumps(document))
    output, _ = ajuste("inventory", "--diff", "here.json", "here.json")
    assert "do not differ" in output
    output, _ = ajuste("inventory", "--diff", "other.json", "now")
    assert "settings.vm.swappiness: 133 → " in output
    output, _ = ajuste("inventory", "--diff", "other.json", "here.json")
    assert "2 differences" in output
    assert "settings.vm.swappiness: 133 → " in output
    assert "\x1b" not in output
    comparison = ajuste.json("inventory", "--diff", "here.json", "other.json")
    assert {(d["area"], d["field"]) for d in comparison["differences"]} == {
        ("kernel", "settings.vm.swappiness"),
        ("memory", "transparent_huge_pages"),
    }
    assert comparison["differences"][0]["importance"] == "high"


def test_a_run_of_the_store_is_compared_by_its_name_and_by_its_study(ajuste: Shell) -> None:
    document = ajuste.json("inventory")
    document["frequency"]["governor"] = "performance"
    about: dict[str, Any] = {
        "study": "nightly",
        "fingerprint": "f",
        "seed": 1,
        "ajuste": "0",
        "named": "nightly",
        "resolved": "{}",
    }
    with Store(f"sqlite:///{ajuste.home / 'data' / 'store.sqlite'}") as store:
        old = store.new_run(**about | {"study": "earlier"}, environment={"this machine": {}})
        run = store.new_run(**about, environment={"this machine": {}, "inventory": document})
    for name in (run.id, "nightly"):
        differences = ajuste.json("inventory", "--diff", name, "now")["differences"]
        assert "performance" in {d["a"] for d in differences if (d["area"], d["field"]) == ("frequency", "governor")}
    _, complained = ajuste("inventory", "--diff", old.id, "now", expect=2)
    assert "it is older than inventories; compare a newer run" in complained


def test_what_has_no_inventory_is_one_clear_error(ajuste: Shell) -> None:
    (ajuste.directory / "list.json").write_text("[1, 2]")
    (ajuste.directory / "broken.json").write_text("{")
    (ajuste.directory / "wrong.json").write_text('{"inventory": 1, "cpu": {"cpus": "many"}}')
    for name, words in {
        "list.json": "list.json has no inventory",
        "broken.json": "broken.json is not JSON",
        "wrong.json": "the inventory of wrong.json is malformed: cpu.cpus",
        "nothing-like-it": "'nothing-like-it' not found; expected a run in the store, a file or now",
    }.items():
        _, complained = ajuste("inventory", "--diff", name, "now", expect=2)
        assert words in complained
