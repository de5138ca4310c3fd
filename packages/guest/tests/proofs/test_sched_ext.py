"""Evidence of sched_ext: the kernel's files and, where there is a program, a scheduler that is loaded."""

from __future__ import annotations

import pytest

from ajuste_guest.proofs.feature import KernelFacts
from ajuste_guest.proofs.prove import FEATURES

FEATURE = FEATURES["sched_ext"]
(LOAD,) = FEATURE.runs
FILES = {"/sys/kernel/sched_ext/state": "disabled", "/sys/kernel/sched_ext/switch_all": "0"}


@pytest.mark.parametrize(
    ("facts", "present", "seen"),
    [
        (KernelFacts(build="#1", unreadable=dict.fromkeys(FILES, "No such file")), False, "No such file"),
        (KernelFacts(build="#1", reads=FILES, failed={LOAD: "cannot start scx_simple: No such file"}), True, "0"),
        (
            KernelFacts(build="#1", reads=FILES, output={LOAD: "scheduler loaded=simple\n"}),
            True,
            "name for it is simple",
        ),
        (KernelFacts(build="#1", reads=FILES, failed={LOAD: "scx_simple did not load: EINVAL"}), False, "EINVAL"),
    ],
)
def test_a_kernel_has_it_if_a_scheduler_that_can_be_tried_is_loaded(
    facts: KernelFacts, present: bool, seen: str
) -> None:
    finding = FEATURE.judge(facts)
    assert finding.present is present
    assert seen in finding.evidence[-1].found
