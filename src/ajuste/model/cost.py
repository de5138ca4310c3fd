"""What a trial costs to the instruction: of every task, and of every function that it called, from the workload's
start to its end.

``native/lens`` writes these documents.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=0, lt=2**64)]
Address = Annotated[int, Field(ge=0, lt=2**64)]
Space = Literal["user", "kernel"]
Kind = Literal["call", "interrupt", "exception", "syscall", "start"]
Role = Literal["workload", "background", "agent", "before", "after", "idle", "kernel"]


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CostFrame(_Figures):
    """A node of a call tree: a function, called by the one of frame ``parent`` (-1: by none).

    ``address`` is of the function: the start of the kernel's symbol, or the call's target in user space. It was entered
    ``calls`` times, in the way ``kind``, and carried out ``instructions`` itself.
    """

    parent: Annotated[int, Field(ge=-1)]
    space: Space
    address: Address
    kind: Kind
    calls: Count
    instructions: Count


class CostCode(_Figures):
    """A few bytes of user code that was carried out, in hexadecimal, by which the file that has it is found."""

    address: Address
    bytes_: Annotated[str, Field(pattern=r"^([0-9a-f]{2}){1,16}$")]


class CostTask(_Figures):
    """What one task cost; ``number`` is in the order in which tasks were first seen, ``parent`` the one that made it.

    ``loads``, ``stores`` and ``branches`` are 0 where the depth does not count them. ``entry`` is the first user
    address after its last exec.
    """

    number: Annotated[int, Field(ge=0)]
    parent: int | None
    role: Role
    user: Count
    kernel: Count
    loads: Count
    stores: Count
    branches: Count
    switches_in: Count
    entry: Address | None
    frames: tuple[CostFrame, ...]
    code: tuple[CostCode, ...]

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        late = next((place for place, frame in enumerate(self.frames) if frame.parent >= place), None)
        if late is not None:
            raise ValueError(f"frame {late} of task {self.number}: its parent must be an earlier frame")
        return self


class Costs(_Figures):
    """Instructions of the window, of all tasks together. ``faulted`` of them were begun, ended in a fault and were
    begun again: the emulator's own count is ``user + kernel - faulted``.
    """

    version: Literal[1]
    depth: Literal["counts", "functions"]
    user: Count
    kernel: Count
    faulted: Count
    tasks: tuple[CostTask, ...]

    @property
    def instructions(self) -> int:
        return self.user + self.kernel

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        numbers = [task.number for task in self.tasks]
        if len(set(numbers)) < len(numbers):
            raise ValueError("two tasks have the same number")
        if (self.user, self.kernel) != (sum(t.user for t in self.tasks), sum(t.kernel for t in self.tasks)):
            raise ValueError("the instructions of the tasks do not add up to those of the window")
        if self.faulted > self.instructions:
            raise ValueError("more instructions faulted than were begun")
        for task in self.tasks:
            counted = sum(frame.instructions for frame in task.frames)
            if self.depth == "functions" and counted != task.user + task.kernel:
                raise ValueError(f"the instructions of the frames of task {task.number} do not add up to its own")
            if self.depth == "counts" and task.frames:
                raise ValueError(f"task {task.number} has frames, which the depth counts does not have")
        return self
