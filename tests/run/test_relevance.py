"""Looking whether what varies can matter on this machine, by the kernel's counters."""

from __future__ import annotations

from pathlib import Path

from ajuste.catalogue.loader import catalogue
from ajuste.machine.inventory.source import InventorySource
from ajuste.run.relevance import HostObserver
from ajuste.run.runner import Executors
from played import PlayedExecutor, study_for_5_10
from shell import small


def test_a_host_is_read_before_and_after_its_first_block(
    tmp_path: Path,
) -> None:
    text = small(3, 12)
    for old, new in (("sched_min_granularity_ns", "vm.swappiness"), ("750000, 75000000", "10, 60")):
        text = text.replace(old, new)
    proc = tmp_path / "root" / "proc"
    proc.mkdir(parents=True)
    scans = "pgscan_anon {}\npgscan_file 1\n"
    (proc / "meminfo").write_text("SwapTotal: 10 kB\n")
    (proc / "vmstat").write_text(scans.format(1))
    observer = HostObserver(study_for_5_10(text, tmp_path), catalogue(), InventorySource(tmp_path / "root"))
    assert observer.before() == ()
    with Executors(lambda _: PlayedExecutor(), lambda *_: None) as executors:
        observer.begin()
        (no_chance,) = observer.end(executors)
        assert no_chance.saw == "memory never became short: no page was scanned for reclaim"
        observer.begin()
        (proc / "vmstat").write_text(scans.format(2))
        assert observer.end(executors) == (), "something moved it"
    (proc / "meminfo").write_text("SwapTotal: 0 kB\n")
    assert [reason.saw for reason in observer.before()] == ["no swap is on"]
