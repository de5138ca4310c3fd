"""A target that a test plays: nothing to make ready, nothing to end."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ajuste.model.event import Hello
from ajuste.model.plan import Plan


class PlayedTarget:
    """Keeps the ``plans`` that it was given; what becomes of them is the test's to say, in ``run``."""

    environment: dict[str, str] = {}  # noqa: RUF012
    parallel = 1

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    @property
    def hello(self) -> Hello:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
