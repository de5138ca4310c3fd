"""The search and the minimisation, against programs of which is known what they need."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajuste.model.plan import CpuPause
from ajuste_hunt.chance import LARGEST_SHARE, WAYS, Chance, Ground, after_access, blocks_of, changed
from ajuste_hunt.minimise import minimal
from ajuste_hunt.search import BATCH, Search, Tried

GROUND = Ground(
    cpus=2,
    length_ns=10_000_000,
    longest_ns=100_000,
    moments=tuple((place % 2, 50_000 * place) for place in range(200)),
    shared=tuple(
        (place % 2, 70_000 * place + 100 * at, 0x4000 + 20 * place) for place in range(100) for at in range(9)
    ),
)


DRAWN = dict(WAYS) | {"access": lambda rng, ground: after_access(rng, ground, rng.choice(list(ground.sites)))}


@pytest.mark.parametrize("name", DRAWN)
@given(seed=st.integers(0, 2**32))
def test_what_is_drawn_is_within_bounds_and_in_order(name: str, seed: int) -> None:
    pauses = DRAWN[name](random.Random(seed), GROUND)
    assert list(pauses) == sorted(pauses, key=lambda pause: (pause.at_ns, pause.cpu, pause.for_ns))
    for cpu in range(GROUND.cpus):
        lengths = [pause.for_ns for pause in pauses if pause.cpu == cpu]
        assert sum(lengths) <= max(LARGEST_SHARE * GROUND.length_ns, GROUND.longest_ns)
        assert all(length <= GROUND.longest_ns for length in lengths)
    again = changed(random.Random(seed), Chance(0, pauses), GROUND)
    assert again == changed(random.Random(seed), Chance(0, pauses), GROUND)


def shows(chance: Chance) -> bool:
    """Two windows: CPU 0 must stand still within one for 20 µs or more, and CPU 1 within the other."""

    def meets(cpu: int, begin_ns: int, end_ns: int) -> bool:
        return any(p.cpu == cpu and begin_ns <= p.at_ns < end_ns and p.for_ns >= 20_000 for p in chance.pauses)

    return meets(0, 3_000_000, 3_200_000) and meets(1, 7_000_000, 7_400_000)


def test_a_bug_of_two_moments_is_searched_out_and_reduced_to_them() -> None:
    search = Search(GROUND, seed=1)
    for _ in range(200):
        batch = search.batch()
        assert len(batch) == BATCH
        tried = [Tried(chance, shows(chance), 0.0, (len(chance.pauses),)) for chance in batch]
        if any(attempt.met for attempt in tried):
            break
        search.learn(tried)
    hit = next(attempt for attempt in tried if attempt.met)
    least = minimal(hit.chance, shows)
    assert shows(least)
    assert [pause.cpu for pause in least.pauses] == [0, 1]
    assert all(20_000 <= pause.for_ns < 40_001 for pause in least.pauses)


def test_a_window_of_one_instruction_after_an_access_is_met_in_few_trials() -> None:
    needed = 0
    for seed in range(20):
        search = Search(GROUND, seed)
        (cpu, _, _), times = random.Random(seed).choice(list(GROUND.sites.items()))

        def is_met(chance: Chance, cpu: int = cpu, times: Sequence[int] = times) -> bool:
            return any(p.cpu == cpu and p.at_ns in times and p.for_ns > 2_000 for p in chance.pauses)

        while not any(map(is_met, batch := search.batch())):
            needed += BATCH
            search.learn([Tried(chance, False, 0.0, (0,)) for chance in batch])
    # Half of the trials are after an access, and each of some two hundred sites comes before any comes again.
    assert needed / 20 < 700


def test_the_same_seed_draws_the_same() -> None:
    def drawn(seed: int) -> list[Chance]:
        search = Search(GROUND, seed)
        chances = []
        for _ in range(5):
            batch = search.batch()
            search.learn([Tried(chance, False, float(len(chance.pauses)), (len(chance.pauses),)) for chance in batch])
            chances += batch
        return chances

    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_a_chance_that_needs_no_pause_has_none() -> None:
    finding = Chance(4, (CpuPause(cpu=0, at_ns=5, for_ns=600),))
    assert minimal(finding, lambda chance: chance.seed == 4) == Chance(4)
    assert minimal(finding, lambda _: True) == Chance(0)


def test_a_budget_that_ends_leaves_what_is_known() -> None:
    finding = Chance(1, tuple(CpuPause(cpu=0, at_ns=1000 * place, for_ns=900) for place in range(9)))
    assert minimal(finding, lambda _: False).pauses == finding.pauses


def test_places_that_are_close_are_one() -> None:
    assert blocks_of([100, 104, 110, 200, 400, 405]) == [100, 200, 400]


def test_how_often_each_site_was_paused_at_is_counted() -> None:
    search = Search(GROUND, seed=3)
    for _ in range(200):
        batch = search.batch()
        search.learn([Tried(chance, False, 0.0, (0,)) for chance in batch])
    # Some half of 1,600 trials, over two hundred sites.
    assert 2 <= search.tries_of_site <= 1600 / len(GROUND.sites)
