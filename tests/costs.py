"""Costs as the lens writes them, made up, for tests of what is made of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ajuste.model.cost import Costs

KINDS = ("call", "interrupt", "exception", "syscall", "start")
ROLES = ("workload", "background", "agent", "before", "after", "idle", "kernel")
FEW = st.integers(0, 1_000)
ADDRESSES = {"user": (0x401000, 0x401100, 0x402000), "kernel": (0xFFFFFFFF81000000, 0xFFFFFFFF81000100)}


@st.composite
def tasks(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """A task whose frames have all of its instructions."""
    frames = []
    for place in range(draw(st.integers(1, 7))):
        space = draw(st.sampled_from(("user", "kernel")))
        frames.append({
            "parent": draw(st.integers(-1, place - 1)),
            "space": space,
            "address": draw(st.sampled_from(ADDRESSES[space])),
            "kind": draw(st.sampled_from(KINDS)),
            "calls": draw(FEW),
            "instructions": draw(FEW),
        })  # fmt: skip
    return {
        "number": number,
        "parent": draw(st.none() | st.integers(0, number)),
        "role": draw(st.sampled_from(ROLES)),
        **{space: sum(f["instructions"] for f in frames if f["space"] == space) for space in ("user", "kernel")},
        **{name: draw(FEW) for name in ("loads", "stores", "branches", "switches_in")},
        "entry": draw(st.none() | st.just(0x401000)),
        "frames": frames,
        "code": [],
    }


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what the lens writes at the depth functions."""
    drawn = [draw(tasks(number)) for number in range(draw(st.integers(0, 3)))]
    totals = {space: sum(task[space] for task in drawn) for space in ("user", "kernel")}
    return {
        "version": 1,
        "depth": "functions",
        **totals,
        "faulted": draw(st.integers(0, sum(totals.values()))),
        "tasks": drawn,
    }


def costs() -> st.SearchStrategy[Costs]:
    return documents().map(Costs.model_validate)
