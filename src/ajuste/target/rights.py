"""What a trial on this machine may do to it with the rights that there are, known before anything runs."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable

from ajuste.model.error import RequestError
from ajuste.model.plan import Attributes, Command, Plan

WITHOUT_ROOT = (
    "call it with sudo; without root there are nice values from 0 to 19, affinity and the policies batch and idle, and "
    'in a virtual machine (kind = "vm") everything'
)
_REAL_TIME = ("fifo", "rr")


def require_rights(plan: Plan) -> None:
    """Raises RequestError for what ``plan`` does and only root may (credentials(7), getrlimit(2))."""
    if os.geteuid() == 0:
        return
    if plan.writes:
        raise _refusal(f"changing {', '.join(write.tunable for write in plan.writes)}")
    if plan.scratch is not None:
        raise _refusal("making a file system for the trial")
    for command in _commands(plan):
        if reason := _beyond_rights(command.attributes):
            raise _refusal(reason)


def _refusal(what: str) -> RequestError:
    return RequestError(f"{what} needs root on this machine", hint=WITHOUT_ROOT)


def _commands(plan: Plan) -> Iterable[Command]:
    yield from (*plan.before, *plan.background, *plan.after)
    if plan.workload is not None:
        yield plan.workload


def _beyond_rights(attributes: Attributes) -> str:
    """What of it needs root; empty if nothing does."""
    if attributes.nice is not None and attributes.nice < _least_nice():
        return f"nice {attributes.nice}"
    if attributes.policy in _REAL_TIME and (attributes.priority or 1) > _limit(resource.RLIMIT_RTPRIO):
        return f"the policy {attributes.policy}"
    if attributes.cgroup_weight is not None or attributes.cgroup_limits:
        return "a control group of its own"
    return ""


def _least_nice() -> int:
    return min(os.getpriority(os.PRIO_PROCESS, 0), 20 - _limit(resource.RLIMIT_NICE))


def _limit(which: int) -> int:
    soft, _ = resource.getrlimit(which)
    return 99 if soft == resource.RLIM_INFINITY else soft
