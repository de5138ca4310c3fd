"""Targets: where trials run. The one interface that the runner knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, Self, runtime_checkable

from ajuste.model.event import Hello
from ajuste.model.plan import Plan
from ajuste.model.trial import Observation
from ajuste.study.resolved import ResolvedStudy

NOTES: Final = "notes"
"""Where the environment of a target has what a reader of the results must know, in sentences."""


LEFT_OUT: Final = "workers left out"
"""In a target's environment: who gave what is not so."""


class Executor(Protocol):
    """A place that carries out plans. A context manager: entering makes it ready (a guest boots), leaving removes
    all of it.

    ``environment`` describes it to people, once entered: a mapping of text, such as kernel, QEMU version and
    command line.
    """

    @property
    def hello(self) -> Hello: ...

    @property
    def environment(self) -> dict[str, str]: ...

    @property
    def parallel(self) -> int:
        """How many plans may run at once without disturbing what is measured (1 on a wall clock)."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def run(self, plan: Plan) -> Observation:
        """Carry out one plan from the target's initial state. Safe to call from several threads at once.

        Never raises for what the guest does: that is in ``Observation.problem``. Raises RunError where the target
        itself
        is lost (no QEMU, no disk space).
        """
        ...


@runtime_checkable
class Brisk(Protocol):
    """A target that carries out short plans with nothing in between."""

    def run_in_turn(self, plans: Sequence[Plan]) -> list[tuple[str, Observation]]:
        """What ``Target.run`` gives for each of ``plans``, with when it began; raises what that raises. What came of
        them is read when the last one has ended.
        """
        ...


class Batch(NamedTuple):
    """Plans that one machine carries out, one after the other."""

    plans: tuple[Plan, ...]


class Done(NamedTuple):
    """A batch that was carried out: its ``number`` in the order in which it was given, for each of its plans when it
    began and what came of it, and what names the machine that did it.
    """

    number: int
    observed: list[tuple[str, Observation]]
    where: str


class Untrusted(Exception):
    """The machines ``where`` gave what is not so: nothing that they gave may be kept. They are not asked again."""

    def __init__(self, where: Sequence[str]) -> None:
        super().__init__(", ".join(where))
        self.where = tuple(where)


@runtime_checkable
class SpreadExecutor(Protocol):
    """A target of many machines."""

    def run_spread(self, batches: Iterable[Batch]) -> Iterator[list[Done]]:
        """Carry out ``batches``, many at once and in any order: they are taken as there is room for them, and given
        back as they are done. Ends early if the target is left meanwhile. Raises Untrusted, and
        what ``Target.run`` does.
        """
        ...


class Block(NamedTuple):
    """Trials that one machine carries out, one after the other; ``number`` tells it from other blocks.

    ``plans`` makes their plans of the study as that machine has resolved it. ``where`` is the machine that it must be;
    empty where any will do.
    """

    number: int
    plans: Callable[[ResolvedStudy], tuple[Plan, ...]]
    where: str = ""


class BlockDone(NamedTuple):
    """A block that the machine ``where`` has carried out: its plans, and for each when it began and what came of it."""

    number: int
    plans: tuple[Plan, ...]
    observed: list[tuple[str, Observation]]
    where: str


@runtime_checkable
class Benches(Protocol):
    """A target of machines that measure by their own clocks, each one block at a time."""

    @property
    def machines(self) -> dict[str, dict[str, Any]]:
        """What each machine is that has been there, by its name."""
        ...

    def run_blocks(self, blocks: Sequence[Block]) -> Iterator[BlockDone]:
        """Carry out ``blocks``, one on each machine at a time, and give them back as they are done, whole. What a
        machine that is lost had begun is begun anew by another one. A block for a machine that is not there (any more)
        is left out. Ends early if the target is left meanwhile. Raises what ``Target.run`` does.
        """
        ...
