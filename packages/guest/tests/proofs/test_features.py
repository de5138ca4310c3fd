"""Judgement of what was seen of a kernel."""

from __future__ import annotations

import pytest

from ajuste_guest.proofs.feature import KernelFacts, ProofFinding
from ajuste_guest.proofs.prove import FEATURES

NODES = {
    "/sys/devices/system/node/online": "0-1",
    "/sys/devices/system/node/node0/distance": "10 31",
    "/sys/devices/system/node/node1/distance": "31 10",
}
MPTCP = {"/proc/sys/net/mptcp/enabled": "1"}
FAR, TRANSFER, TOLD = (FEATURES[name].runs[0] for name in ("numa", "mptcp", "hz"))
PLACED = "pages policy=remote nodes=2 pages=1024 local=0 remote=1024 unknown=0 fill_ns=1 read_ns=1 sum=0\n"
SENT = (
    "paths protocol=mptcp paths=2 elapsed_ns=1000000000 received_bytes=1547888 stall_ns=10426338 "
    "path_bytes=1238998,{second}\nsubflows token=0x583615be fallback={fallback} acked_bytes={acked}\n"
)


def seen(feature: str, **facts: object) -> ProofFinding:
    return FEATURES[feature].judge(KernelFacts(**{"build": "#1 SMP", **facts}))  # type: ignore[arg-type]


def test_nodes_count_only_if_memory_can_be_had_on_the_far_one() -> None:
    assert seen("numa", reads=NODES, output={FAR: PLACED}).present
    near = PLACED.replace("local=0 remote=1024", "local=1024 remote=0")
    assert seen("numa", reads=NODES, output={FAR: near}).present is False
    assert seen("numa", reads=NODES, failed={FAR: "no other node"}).present is False
    assert seen("numa", unreadable={"/sys/devices/system/node/online": "No such file or directory"}).present is False


def test_nodes_whose_distances_are_not_those_of_the_machine_prove_nothing() -> None:
    flat = {**NODES, "/sys/devices/system/node/node0/distance": "10 20"}
    assert seen("numa", reads=flat, output={FAR: PLACED}).present is False


@pytest.mark.parametrize(
    ("second", "fallback", "acked", "present"),
    [
        (453170, "no", "1139201,402993", True),
        (600, "no", "1139201,300", False),
        (453170, "yes", "1139201", False),
        (453170, "no", "1139201", False),
    ],
)
def test_multipath_is_data_on_both_links(second: int, fallback: str, acked: str, present: bool) -> None:
    output = {TRANSFER: SENT.format(second=second, fallback=fallback, acked=acked)}
    assert seen("mptcp", reads=MPTCP, output=output).present is present


def test_multipath_of_a_kernel_that_tells_nothing_of_subflows_is_seen_by_its_links() -> None:
    first_line = SENT.format(second=453170, fallback="", acked="").splitlines()[0]
    assert seen("mptcp", reads=MPTCP, output={TRANSFER: first_line}).present


def test_a_kernel_without_links_was_not_tried() -> None:
    no_links = "cannot make a pair of interfaces (veth): Operation not supported"
    assert seen("mptcp", reads=MPTCP, failed={TRANSFER: no_links}).present is None
    assert seen("mptcp", reads=MPTCP, failed={TRANSFER: "cannot connect: Connection refused"}).present is False
    assert seen("mptcp", unreadable=dict.fromkeys(MPTCP, "No such file or directory")).present is False


def test_a_scheduler_counts_if_the_queue_has_it_when_it_was_chosen() -> None:
    queue = {"/sys/block/nullb0/queue/scheduler": "[none] mq-deadline kyber"}
    assert seen("kyber", disk="nullb0", reads=queue, chosen={"kyber": "kyber"}).present
    assert seen("bfq", disk="nullb0", reads=queue, refused={"bfq": "Invalid argument"}).present is False
    assert seen("bfq").present is None, "there is no disk"


@pytest.mark.parametrize(
    ("build", "preempt", "value", "rt"),
    [
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2", "none (voluntary) full", "voluntary", False),
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.12", "none voluntary [full] lazy", "full", False),
        ("#1 SMP PREEMPT_RT Debian 6.1.192-2", None, "rt", True),
        ("#1 SMP Debian 5.10.262-1", None, "none or voluntary", False),
        ("#1 SMP PREEMPT Debian 5.10.262-1", None, "full", False),
    ],
)
def test_the_preemption_model_is_what_the_kernel_says_of_itself(
    build: str, preempt: str | None, value: str, rt: bool
) -> None:
    reads = {"/sys/kernel/debug/sched/preempt": preempt} if preempt else {}
    assert seen("preempt", build=build, reads=reads).value == value
    assert seen("rt", build=build, reads=reads).present is rt


@pytest.mark.parametrize(("tick_ns", "hz"), [(4000000, "250"), (1000000, "1000"), (10000000, "100"), (3333333, "300")])
def test_a_tick_is_a_frequency(tick_ns: int, hz: str) -> None:
    facts = f"facts tick_ns={tick_ns} memory_policies=yes pressure=no build=#1 SMP"
    assert seen("hz", output={TOLD: facts}).value == hz
    assert seen("psi", output={TOLD: facts}).present is False


def test_what_did_not_run_tells_nothing() -> None:
    assert seen("hz", failed={TOLD: "it took too long"}).present is None
    assert seen("psi", failed={TOLD: "it took too long"}).present is None


def test_a_file_that_no_other_kernel_has_is_evidence() -> None:
    path = "/proc/sys/kernel/sched_autogroup_enabled"
    assert seen("autogroup", reads={path: "0"}).present
    missing = seen("autogroup", unreadable={path: "No such file or directory"})
    assert (missing.present, missing.evidence[0].found) == (False, "No such file or directory")
