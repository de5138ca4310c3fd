"""The search: which chance is tried next, from the outcomes of all before.

It draws from one generator in batches of a fixed size, and looks at outcomes only between batches. So a hunt is the
same on every machine, however many trials it has side by side.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ajuste_hunt.chance import WAYS, Chance, Ground, after_access, at_places, blocks_of, changed

BATCH: Final = 8
CHANGED: Final = "changed"
PLACES: Final = "places"
ACCESS: Final = "access"
# So many trials are kept to change: those that came nearest, and those that ran as no other did.
_MOST_PARENTS: Final = 24


@dataclass(frozen=True)
class Tried:
    """A chance and its outcome. ``near`` grows towards the goal; trials with one ``signature`` ran alike, as far as
    their switches, migrations and time tell.
    """

    chance: Chance
    met: bool
    near: float
    signature: tuple[int, ...]
    words: str = ""


@dataclass
class Search:
    """Draws chances, first by all ways alike, then more often by those that brought something new."""

    ground: Ground
    seed: int
    plain_only: bool = False
    _rng: random.Random = field(init=False)
    _signatures: set[tuple[int, ...]] = field(default_factory=set, init=False)
    _parents: list[Tried] = field(default_factory=list, init=False)
    _news: dict[str, int] = field(default_factory=dict, init=False)
    _drawn: int = field(default=0, init=False)
    _places_left: list[list[int]] = field(default_factory=list, init=False)
    _sites_left: list[tuple[int, int, int]] = field(default_factory=list, init=False)
    _rounds: int = field(default=0, init=False)
    _rounds_of_sites: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)  # noqa: S311 - it draws experiments

    def batch(self) -> list[Chance]:
        """Return the next chances to try."""
        return [self._draw() for _ in range(BATCH)]

    def learn(self, outcomes: Sequence[Tried]) -> None:
        """Take in the outcomes of a batch, in its order."""
        nearest = max((parent.near for parent in self._parents), default=float("-inf"))
        for tried in outcomes:
            is_new = tried.signature not in self._signatures
            self._signatures.add(tried.signature)
            if is_new or tried.near > nearest:
                self._news[tried.chance.way] = self._news.get(tried.chance.way, 0) + 1
                self._parents.append(tried)
        self._parents.sort(key=lambda parent: -parent.near)
        half = _MOST_PARENTS // 2
        if len(self._parents) > _MOST_PARENTS:
            # The nearest, and the latest of the others, which the way to them was the longest to.
            self._parents = self._parents[:half] + self._parents[half:][-half:]

    @property
    def ways_seen(self) -> int:
        """Return how many trials ran as none before them."""
        return len(self._signatures)

    @property
    def tries_of_site(self) -> int:
        """Return how many times each site was paused at, at least."""
        return max(0, self._rounds_of_sites - bool(self._sites_left))

    def _next_places(self) -> list[int]:
        # One place after the other, each once before any comes again; then two together.
        if not self._places_left:
            blocks = blocks_of(self.ground.places)
            self._rng.shuffle(blocks)
            self._rounds += 1
            size = min(2, self._rounds // 2 + 1)
            self._places_left = [blocks[place : place + size] for place in range(0, len(blocks), size)]
        return self._places_left.pop()

    def _next_site(self) -> tuple[int, int, int]:
        # One after the other, each once before any comes again.
        if not self._sites_left:
            self._rounds_of_sites += 1
            self._sites_left = self._rng.sample(list(self.ground.sites), len(self.ground.sites))
        return self._sites_left.pop()

    def _draw(self) -> Chance:
        self._drawn += 1
        seed = self._drawn
        if self.plain_only:
            return Chance(seed)
        names = [*WAYS, *([CHANGED] if self._parents else []), *([PLACES, ACCESS] if self.ground.shared else [])]
        # Where memory is shared most bugs are, and a trial there is worth some hundred others.
        bases = {PLACES: 4.0, ACCESS: 8.0}
        weights = [bases.get(name, 1.0) + 0.1 * min(10, self._news.get(name, 0)) for name in names]
        way = self._rng.choices(names, weights)[0]
        if way == CHANGED:
            parent = self._rng.choice(self._parents).chance
            return Chance(parent.seed, changed(self._rng, parent, self.ground), CHANGED)
        if way == PLACES:
            return Chance(0, way=PLACES, places=at_places(self._rng, self.ground, self._next_places()))
        if way == ACCESS:
            return Chance(0, after_access(self._rng, self.ground, self._next_site()), ACCESS)
        # Other seeds have other layouts; half of the trials keep one, so that what changes is known to be the pauses.
        return Chance(self._rng.choice((0, seed)), WAYS[way](self._rng, self.ground), way)
