"""The story of a trial, from streams of decisions that were made up."""

from __future__ import annotations

from ajuste.model.plan import CpuPause
from ajuste_hunt.story import running_at, story, waiting_at_end
from decisions import on_cpus

# Tasks 3 and 4 of the workload on CPUs 0 and 1; each decision comes 200 ns after the one before.
SLEEPING = on_cpus([("switch", 0, 0, 3), ("switch", 1, 1, 4), ("switch", 0, 3, 0), ("switch", 1, 4, 1)])
WOKEN = on_cpus([("switch", 0, 0, 3), ("switch", 0, 3, 0), ("wakeup", 1, 1, 3), ("switch", 0, 0, 3)])
NEVER_NS = 10**12


def asleep(names: tuple[str, ...]) -> list[int]:
    return [int(name.rpartition("#")[2]) for name in names]


def test_who_sleeps_at_the_end_waits_unless_somebody_woke_it() -> None:
    sleeping = SLEEPING.model_copy(update={"stays": (False,) * 4})
    assert asleep(tuple(then.name for then in waiting_at_end(sleeping, NEVER_NS))) == [3, 4]
    woken = WOKEN.model_copy(update={"stays": (False,) * 4})
    assert waiting_at_end(woken, NEVER_NS) == ()


def test_who_is_woken_by_being_killed_has_waited() -> None:
    woken = WOKEN.model_copy(update={"stays": (False,) * 4})
    killed_ns = woken.time_ns(2)
    assert asleep(tuple(then.name for then in waiting_at_end(woken, killed_ns - 1))) == [3]


def test_a_pause_says_who_ran_and_which_function_had_accessed_memory() -> None:
    pause = CpuPause(cpu=1, at_ns=SLEEPING.time_ns(1) + 1, for_ns=500)
    assert running_at(SLEEPING, pause).endswith("#4")
    account = story(SLEEPING, None, (pause,), {pause: "take (job+0x1234)"}, NEVER_NS)
    assert (account.pauses[0].running, account.pauses[0].after) == ("workload #4", "take (job+0x1234)")
