"""Companions: what the kernel changes along with a tunable is named, so that it can be put back."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.model.kernel import KernelVersion
from ajuste.model.plan import FileLocation
from looped import each

NOW = KernelVersion.parse("6.18")
FILES = {
    "/sys/block/sda/queue/iosched": ("/sys/block/sda/queue/iosched/write_expire", "/sys/block/sda/queue/iosched/a")
}


def test_companions_are_of_the_same_instance_and_directories_are_listed(every_kind: Catalogue) -> None:
    directories: list[str] = []

    def files(directory: str) -> tuple[str, ...]:
        directories.append(directory)
        return FILES.get(directory, ())

    companions = every_kind.companions(every_kind.find_tunable("block.scheduler[sda]"), NOW, files)
    assert companions == (
        FileLocation(path="/sys/block/sda/queue/nr_requests"),
        FileLocation(path="/sys/block/sda/queue/iosched/a"),
        FileLocation(path="/sys/block/sda/queue/iosched/write_expire"),
    )
    assert directories == ["/sys/block/sda/queue/iosched"]


def test_of_a_machine_that_cannot_be_listed_only_the_named_ones_are_known(every_kind: Catalogue) -> None:
    companions = every_kind.companions(every_kind.find_tunable("block.scheduler[sda]"), NOW)
    assert companions == (FileLocation(path="/sys/block/sda/queue/nr_requests"),)


def test_two_can_be_each_others(every_kind: Catalogue) -> None:
    first, second = (every_kind.find_tunable(name) for name in ("vm.one", "vm.other"))
    assert every_kind.companions(first, NOW) == (FileLocation(path="/proc/sys/vm/other"),)
    assert every_kind.companions(second, NOW) == (FileLocation(path="/proc/sys/vm/one"),)


def test_most_have_none(every_kind: Catalogue) -> None:
    assert every_kind.companions(every_kind.find_tunable("irq.affinity[3]"), NOW) == ()


@each(catalogue().tunables.values(), name=attrgetter("name"))
def test_every_companion_is_another_entry_for_the_same_parts(tunable: Any) -> None:
    others = [catalogue().tunables[name] for name in tunable.companions]
    assert tunable not in others
    assert all(set(other.parts) <= set(tunable.parts) for other in others)
    example = catalogue().example(tunable)
    assert all("{" not in getattr(place, "path", "") for place in catalogue().companions(example, NOW, lambda d: [d]))


def test_what_a_machine_cannot_change_is_no_companion(every_kind: Catalogue) -> None:
    scheduler = every_kind.find_tunable("block.scheduler[sda]")
    names: list[str] = []
    companions = every_kind.companions(scheduler, NOW, can_change=lambda other: bool(names.append(other.name)))  # type: ignore[func-returns-value]
    assert companions == ()
    assert names == ["block.depth[sda]"]
