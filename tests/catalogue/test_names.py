"""A tunable goes by its own name, by the one that sysctl(8) has for it, and by its path."""

from __future__ import annotations

import pytest

from ajuste.catalogue.loader import Catalogue, catalogue
from ajuste.model.error import RequestError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("kernel.sched_autogroup_enabled", "sched_autogroup_enabled"),
        ("kernel/sched_autogroup_enabled", "sched_autogroup_enabled"),
        (" sched_autogroup_enabled ", "sched_autogroup_enabled"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "sched_rt_runtime_us"),
        ("kernel.sched_min_granularity_ns", "sched_min_granularity_ns"),
        ("/sys/kernel/debug/sched/min_granularity_ns", "sched_min_granularity_ns"),
        ("/sys/kernel/debug/sched/fair_server/cpu3/runtime", "fair_server_runtime_ns[cpu3]"),
        (
            "/proc/sys/kernel/sched_domain/cpu0/domain1/busy_factor",
            "sched_domain_busy_factor[cpu0/domain1]",
        ),
    ],
)
def test_a_tunable_is_found_by_every_name_that_people_know_it_by(text: str, name: str) -> None:
    assert catalogue().find_tunable(text).name == name


def test_an_alias_is_a_name(every_kind: Catalogue) -> None:
    assert every_kind.find_tunable("the_one").name == "vm.one"
    assert every_kind.find_tunable("vm/one").name == "vm.one"
    assert every_kind.find_tunable("proc/sys/vm/one").name == "vm.one"


@pytest.mark.parametrize(
    "text",
    [
        "/sys/kernel/debug/sched/fair_server/../runtime",
        "/sys/kernel/debug/sched/fair_server/cpu3/x/runtime",
        "/sys/kernel/debug/sched/features",
        "/etc/passwd",
        "/",
        ".",
        "",
        "[]",
        "kernel.",
        "kernel.base_slice_ns",
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        catalogue().find_tunable(text)
