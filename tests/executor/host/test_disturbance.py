from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.executor.host.disturbance import (
    LEAST_HISTORY,
    OTHER_FLOOR_CPUS,
    DisturbanceReading,
    DisturbanceWatch,
    Surroundings,
    between,
    reading,
)

STAT = "cpu  {user} 10 {system} 90000 400 20 30 {stolen} 77 88\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n"


def machine(user: int, system: int = 0, stolen: int = 0, throttles: int = 0) -> DisturbanceReading:
    return reading(STAT.format(user=user, system=system, stolen=stolen), [f"{throttles}\n", "0\n"], 100)


def quiet(watch: DisturbanceWatch, number: int = LEAST_HISTORY, other_cpus: float = 0.02) -> None:
    for _ in range(number):
        assert watch.judge("a", Surroundings(other_cpus, 0.0, 0)) == ()


def test_what_is_not_the_trials_own_is_other_load() -> None:
    disturbance = between(machine(1000, 500, 7, 3), machine(1150, 550, 17, 5), wall_s=2.0, cpu_s=1.5)
    assert (disturbance.other_cpus, disturbance.stolen_cpus, disturbance.throttles) == (
        pytest.approx(0.25),
        pytest.approx(0.05),
        2,
    )
    assert str(disturbance) == "other load 0.25 CPUs, stolen 0.05 CPUs, throttled 2 times"


def test_ticks_can_count_less_than_the_trial_itself() -> None:
    assert between(machine(1000), machine(1010), wall_s=1.0, cpu_s=0.2).other_cpus == 0


def test_a_backup_that_begins_is_told() -> None:
    watch = DisturbanceWatch()
    quiet(watch)
    assert watch.judge("a", Surroundings(0.9, 0.0, 0)) == ("other work took 0.90 CPUs, usually 0.02",)
    assert watch.judge("a", Surroundings(0.02, 0.3, 0)) == ("the hypervisor took 0.30 CPUs away, usually 0.00",)
    assert watch.judge("a", Surroundings(0.02, 0.0, 4)) == ("a CPU was throttled 4 times, being too hot",)


def test_the_first_trials_only_say_what_is_usual() -> None:
    watch = DisturbanceWatch()
    assert [watch.judge("a", Surroundings(1.5, 1.0, 9)) for _ in range(LEAST_HISTORY)] == [()] * LEAST_HISTORY


def test_what_a_configuration_always_does_is_no_disturbance() -> None:
    watch = DisturbanceWatch()
    quiet(watch)
    for _ in range(20):
        assert watch.judge("the kernel writes back", Surroundings(0.8, 0.0, 0)) == ()


@given(st.lists(st.floats(0, 2), min_size=1, max_size=60), st.floats(0.0, OTHER_FLOOR_CPUS))
def test_a_machine_that_is_busy_all_the_time_is_not_told_off_for_it(levels: list[float], width: float) -> None:
    """However busy: as long as it stays within the floor's width, nothing is flagged."""
    watch = DisturbanceWatch()
    base = levels[0]
    for level in levels:
        assert watch.judge("a", Surroundings(base + width * (level / 2), 0.0, 1)) == ()
