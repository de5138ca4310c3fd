"""The simulation of ablations, in small."""

from __future__ import annotations

import pytest
from benchmarks.ablation import GAMES, Game, simulate

QUIET = [game for game in GAMES if game.noise == 0.01]


@pytest.mark.parametrize("game", QUIET, ids=lambda game: game.name)
def test_of_fourteen_lines_just_those_that_matter_are_named(game: Game) -> None:
    ended = [simulate(game, seed) for seed in range(3)]
    assert all(study.right for study in ended)
