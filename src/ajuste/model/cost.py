"""The cost of a trial to the instruction: of every task, and of every function that it called, from the workload's
start to its end.

``native/lens`` writes these documents.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from ajuste.model.base import BaseModel, ClosedModel
from ajuste.model.modelled import Missed, ModelledComparison, ModelledMachine, all_missed

Count = Annotated[int, Field(ge=0, lt=2**64)]
Address = Annotated[int, Field(ge=0, lt=2**64)]
Space = Literal["user", "kernel"]
Kind = Literal["call", "interrupt", "exception", "syscall", "start"]
KINDS: Final = get_args(Kind)
Role = Literal["workload", "background", "agent", "before", "after", "idle", "kernel"]
# Names of the tasks of each role, in the order in which they are shown.
ROLES: Final[dict[str, str]] = {
    "workload": "the workload",
    "background": "the background load",
    "before": "what ran before",
    "after": "what ran after",
    "agent": "the agent",
    "kernel": "the kernel's own tasks",
    "idle": "idle",
}


def _is_left_out(value: object) -> bool:
    # Documents without a modelled machine are as if there were none.
    return not value


class CostModelled(ClosedModel):
    """Accesses in one space, and how many of them the modelled machine missed."""

    loads: Count
    stores: Count
    misses: Missed


class CostModelledTask(ClosedModel):
    """The accesses in both spaces."""

    user: CostModelled
    kernel: CostModelled

    @property
    def loads(self) -> int:
        return self.user.loads + self.kernel.loads

    @property
    def stores(self) -> int:
        return self.user.stores + self.kernel.stores

    @property
    def misses(self) -> Missed:
        return self.user.misses.plus(self.kernel.misses)


class CostFrame(ClosedModel):
    """A node of a call tree: a function, called by the one of frame ``parent`` (-1: by none).

    ``address`` is of the function: the start of the kernel's symbol, or the call's target in user space. It was entered
    ``calls`` times, in the way ``kind``, and carried out ``instructions`` itself, for which a modelled machine had so
    many ``misses``.
    """

    parent: Annotated[int, Field(ge=-1)]
    space: Space
    address: Address
    kind: Kind
    calls: Count
    instructions: Count
    misses: Missed = Missed()


class CostCode(ClosedModel):
    """A few bytes of user code that was carried out, in hexadecimal, by which the file that has it is found."""

    address: Address
    bytes_: Annotated[str, Field(pattern=r"^([0-9a-f]{2}){1,16}$")]


class CostTask(ClosedModel):
    """The cost of one task; ``number`` is in the order in which tasks were first seen, ``parent`` the one that made it.

    ``loads``, ``stores`` and ``branches`` are 0 where the depth does not count them. ``entry`` is the first user
    address after its last exec. With a modelled machine ``modelled`` has what that made of it.
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
    modelled: CostModelledTask | None = None

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        late = next((place for place, frame in enumerate(self.frames) if frame.parent >= place), None)
        if late is not None:
            raise ValueError(f"frame {late} of task {self.number}: its parent must be an earlier frame")
        return self


class Costs(ClosedModel):
    """Instructions of the window, of all tasks together. ``faulted`` of them were begun, ended in a fault and were
    begun again: the emulator's own count is ``user + kernel - faulted``. ``machine`` is the modelled one, if any; the
    lens does not write it.
    """

    version: Literal[1]
    depth: Literal["counts", "functions"]
    user: Count
    kernel: Count
    faulted: Count
    tasks: tuple[CostTask, ...]
    machine: ModelledMachine | None = None

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
            missed = task.modelled.misses if task.modelled else Missed()
            if self.depth == "functions" and all_missed(frame.misses for frame in task.frames) != missed:
                raise ValueError(f"the misses of the frames of task {task.number} do not add up to its own")
            if self.depth == "counts" and task.frames:
                raise ValueError(f"task {task.number} has frames, which the depth counts does not have")
        return self


# The same by name: the costs stored with one trial, and the comparison of two.


class CostFunction(ClosedModel):
    """A function: its ``name``, or its address in hexadecimal where there is no name. ``file`` is the program or
    library that has it; empty for the kernel.
    """

    name: str
    file: str
    space: Space

    @property
    def system_call(self) -> str:
        """Return the name of the system call that it carries out, if it does. Source:
        arch/x86/include/asm/syscall_wrapper.h, where those of 64-bit programs begin with ``__x64_``, those of 32-bit
        programs with ``__ia32_``.
        """
        for prefix in _SYSTEM_CALLS if self.space == "kernel" else ():
            if self.name.startswith(prefix):
                return self.name.removeprefix(prefix)
        return ""


_SYSTEM_CALLS: Final = ("__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_")


class CostPart(ClosedModel):
    """The cost of all tasks of one ``role`` together. Their call trees are merged into one, column by column: for each
    frame the place of the one that called it (-1: none) and of its function, how it was entered (the place in
    ``KINDS``), how often, and what it carried out itself. With a modelled machine ``misses`` has those of each frame
    that had any, by its place.
    """

    role: Role
    tasks: Count
    user: Count
    kernel: Count
    loads: Count
    stores: Count
    branches: Count
    switches_in: Count
    parents: tuple[int, ...]
    functions: tuple[int, ...]
    kinds: tuple[int, ...]
    calls: tuple[int, ...]
    instructions: tuple[int, ...]
    misses: dict[int, Missed] = Field(default={}, exclude_if=_is_left_out)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        columns = (self.parents, self.functions, self.kinds, self.calls, self.instructions)
        if len(set(map(len, columns))) > 1:
            raise ValueError("the columns of a call tree must be equally long")
        if any(not -1 <= parent < place for place, parent in enumerate(self.parents)):
            raise ValueError("a frame must stand after the one that called it")
        if sum(self.instructions) != self.user + self.kernel:
            raise ValueError("the instructions of the frames do not add up")
        if any(not 0 <= place < len(self.parents) for place in self.misses):
            raise ValueError("misses are of a frame that is not there")
        return self

    @property
    def missed(self) -> Missed:
        return all_missed(self.misses.values())


class NamedCosts(ClosedModel):
    """The costs of a trial by function. ``notes`` say which functions have no names, and why. ``machine`` is the
    modelled one, if any.
    """

    faulted: Count
    functions: tuple[CostFunction, ...]
    parts: tuple[CostPart, ...]
    notes: tuple[str, ...] = ()
    machine: ModelledMachine | None = Field(default=None, exclude_if=_is_left_out)

    @property
    def instructions(self) -> int:
        return sum(part.user + part.kernel for part in self.parts)

    def with_files(self, find_path: Callable[[str], str]) -> Self:
        """Return the costs with the files at other paths. Functions of one name in files that are one then are one."""
        places: dict[CostFunction, int] = {}
        renamed = [function.model_copy(update={"file": find_path(function.file)}) for function in self.functions]
        at = [places.setdefault(function, len(places)) for function in renamed]
        parts = [
            part.model_copy(update={"functions": tuple(at[function] for function in part.functions)})
            for part in self.parts
        ]
        return self.model_copy(update={"functions": tuple(places), "parts": tuple(parts)})

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        for part in self.parts:
            for column, most in ((part.functions, len(self.functions)), (part.kinds, len(KINDS))):
                if column and not 0 <= min(column) <= max(column) < most:
                    raise ValueError("a frame is of a function, or was entered in a way, that is not there")
        return self


def packed(document: BaseModel) -> str:
    """Return a document as compressed text: a sixth of its size, or less."""
    return base64.b64encode(zlib.compress(document.model_dump_json().encode())).decode()


def unpacked(kind: type[BaseModel], named: str) -> Callable[[Any], Any]:
    """Return a validator that unpacks a packed document and leaves other values. It raises ValueError if malformed."""

    def unpack(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            content = zlib.decompressobj().decompress(base64.b64decode(value), _MOST_BYTES)
        except zlib.error as error:
            raise ValueError(f"packed {named} are damaged: {error}") from error
        return kind.model_validate_json(content)

    return unpack


_MOST_BYTES: Final = 1 << 28
# Costs, compressed where they are written.
PackedCosts = Annotated[
    NamedCosts, BeforeValidator(unpacked(NamedCosts, "costs")), PlainSerializer(packed, return_type=str)
]


class CostRow(ClosedModel):
    """The cost of something in a trial of the baseline and in one of the configuration, and how often it was entered.
    ``file`` has the function; it is empty for the kernel, and for what is no function.
    """

    name: str
    file: str = ""
    baseline_calls: Count
    own_calls: Count
    baseline: Count
    own: Count

    @property
    def difference(self) -> int:
        return self.own - self.baseline

    @property
    def by_each(self) -> float:
        """Return the part of the difference that comes from the cost of a call, not from the number of calls."""
        if not self.baseline_calls or not self.own_calls:
            return 0.0
        return self.own - self.baseline * self.own_calls / self.baseline_calls


class CostGraph(ClosedModel):
    """The call trees of both trials, one over the other, column by column; the first frame is the root. ``labels`` has
    the place of each frame's name in ``names``; ``baseline`` and ``own`` are what it carried out itself. What is too
    small to be shown is in a frame of its own, whose name is empty.
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    labels: tuple[int, ...]
    baseline: tuple[int, ...]
    own: tuple[int, ...]


class CostComparison(ClosedModel):
    """The difference in instructions between two trials. The rows of ``parts`` add up to the whole of both trials, and
    so do those of ``functions`` (what each carried out itself) with ``others``, the difference that counts most first.
    ``most`` are the functions that carried out most, ``changed`` those of which each call cost more or less, what
    changed most first. Of ``entries`` (system calls, exceptions and interrupts) the instructions are those of all that
    they called, other interrupts left out. ``sentences`` say it, the greatest first. ``kernel_graph`` has what the
    kernel did, whichever function of a program it did that for.
    """

    sentences: tuple[str, ...]

    parts: tuple[CostRow, ...]
    functions: tuple[CostRow, ...]
    others: CostRow
    most: tuple[CostRow, ...]
    changed: tuple[CostRow, ...]
    entries: tuple[CostRow, ...]
    graph: CostGraph
    kernel_graph: CostGraph
    notes: tuple[str, ...] = ()
    modelled: ModelledComparison | None = Field(default=None, exclude_if=_is_left_out)

    @property
    def baseline(self) -> int:
        return sum(part.baseline for part in self.parts)

    @property
    def total(self) -> int:
        return sum(part.own for part in self.parts)

    @property
    def all_sentences(self) -> tuple[str, ...]:
        """Return the counted costs, then the modelled ones."""
        return (*self.sentences, *(self.modelled.sentences if self.modelled else ()))

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        rows = (*self.functions, self.others)
        if (self.baseline, self.total) != (sum(row.baseline for row in rows), sum(row.own for row in rows)):
            raise ValueError("the instructions of the functions do not add up to those of the parts")
        return self


def function_words(name: str, file: str) -> str:
    """Return a function's name, with its file if it is an address, which says nothing without."""
    return f"{name} of {file.rpartition('/')[2]}" if file and name.startswith("0x") else name
