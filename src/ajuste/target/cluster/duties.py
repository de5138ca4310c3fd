"""What a worker does when it is asked. What was asked wrongly is refused; nothing is raised."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from ajuste.home import Home
from ajuste.model.error import AjusteError
from ajuste.target.cluster.answer import Answer, Asked, failure, from_here, piece_of
from ajuste.target.cluster.wire import Broken, What, read_as

if TYPE_CHECKING:
    from ajuste.target.cluster.bench import Bench
    from ajuste.target.cluster.workplace import Workplace


class Duties:
    """Those of one process. Only what ``benches`` measures by its machine's clock, and only then settings of this
    machine are changed.
    """

    def __init__(self, home: Home, *, bench: bool = False) -> None:
        self.benches = bench
        self._home = home
        self._lock = threading.Lock()
        self._parcels: dict[int, set[str]] = {}

    @cached_property
    def _workplace(self) -> Workplace:
        from ajuste.target.cluster.workplace import Workplace

        return Workplace(self._home)

    @cached_property
    def _bench(self) -> Bench:
        from ajuste.target.cluster.bench import Bench, on_this_machine

        return Bench(on_this_machine(self._home))

    def do(self, what: What, body: bytes, coordinator: int = 0) -> Answer:
        try:
            if what == "receive":
                return self._workplace.receive(piece_of(body))
            asked = read_as(Asked, body, "the request")
            if what.startswith("bench") and not self.benches:
                return from_here(refusal="it was not started with --bench")
            if what == "bench-carry-out":
                with self._lock:
                    self._parcels.setdefault(coordinator, set()).add(asked.parcel)
            return self._duty(what)(asked)
        except Broken as broken:
            return from_here(refusal=f"{broken}"[:2000])
        except AjusteError as error:
            return failure(error)

    def _duty(self, what: What) -> Callable[[Asked], Answer]:
        match what:
            case "survey":
                return lambda asked: self._workplace.survey(asked.parcel)
            case "open":
                return lambda asked: self._workplace.open(asked.parcel)
            case "carry-out":
                return lambda asked: self._workplace.carry_out(asked.parcel, asked.plans)
            case "close":
                return lambda asked: self._workplace.close(asked.parcel)
            case "bench-survey":
                return lambda asked: self._bench.survey(asked.parcel)
            case "bench-carry-out":
                return lambda asked: self._bench.carry_out(asked.parcel, asked.plans)
            case "bench-close":
                return lambda asked: self._bench.close_of(asked.parcel)
            case _:
                raise Broken(f"nothing known is asked: {what!r}")

    def forget(self, coordinator: int) -> None:
        """It is gone: what it had measured here is put back."""
        with self._lock:
            parcels = self._parcels.pop(coordinator, set())
        for parcel in parcels:
            self._bench.close_of(parcel)

    def close_all(self) -> None:
        """End all machines, and put everything back."""
        if "_workplace" in self.__dict__:
            self._workplace.close_all()
        if "_bench" in self.__dict__:
            self._bench.close()
