"""Costs that do not add up are none."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ajuste.model.cost import CostCode, Costs, NamedCosts, PackedCosts
from costs import documents


@given(documents())
def test_what_the_lens_writes_is_read_and_written_alike(document: dict[str, Any]) -> None:
    read = Costs.model_validate(document)
    assert Costs.model_validate_json(read.model_dump_json()) == read
    assert read.instructions == sum(f["instructions"] for task in document["tasks"] for f in task["frames"])


@given(documents().filter(lambda document: document["tasks"]), st.data())
def test_every_instruction_is_accounted_for(document: dict[str, Any], data: st.DataObject) -> None:
    task = data.draw(st.sampled_from(document["tasks"]))
    where = data.draw(st.sampled_from([document, task]))
    where[data.draw(st.sampled_from(["user", "kernel"]))] += 1
    with pytest.raises(ValidationError, match="do not add up"):
        Costs.model_validate(document)


@given(documents().filter(lambda document: document["tasks"]), st.data())
def test_every_frame_counts(document: dict[str, Any], data: st.DataObject) -> None:
    frame = data.draw(st.sampled_from(data.draw(st.sampled_from(document["tasks"]))["frames"]))
    frame["instructions"] += 1
    with pytest.raises(ValidationError, match="the frames of task"):
        Costs.model_validate(document)


@given(documents().filter(lambda document: document["tasks"]), st.data())
def test_a_frame_stands_after_the_one_that_called_it(document: dict[str, Any], data: st.DataObject) -> None:
    frames = data.draw(st.sampled_from(document["tasks"]))["frames"]
    place = data.draw(st.integers(0, len(frames) - 1))
    frames[place]["parent"] = data.draw(st.integers(place, 2 * len(frames)))
    with pytest.raises(ValidationError, match="must be an earlier frame"):
        Costs.model_validate(document)


@given(documents())
def test_no_more_is_begun_again_than_was_begun(document: dict[str, Any]) -> None:
    document["faulted"] = document["user"] + document["kernel"] + 1
    with pytest.raises(ValidationError, match="more instructions faulted"):
        Costs.model_validate(document)


@given(documents().filter(lambda document: len(document["tasks"]) > 1))
def test_tasks_have_numbers_of_their_own(document: dict[str, Any]) -> None:
    document["tasks"][1]["number"] = 0
    with pytest.raises(ValidationError, match="same number"):
        Costs.model_validate(document)


@given(documents())
def test_counts_have_no_frames(document: dict[str, Any]) -> None:
    document["depth"] = "counts"
    if document["tasks"]:
        with pytest.raises(ValidationError, match="which the depth counts does not have"):
            Costs.model_validate(document)
    for task in document["tasks"]:
        task["frames"] = []
    assert Costs.model_validate(document).depth == "counts"


@pytest.mark.parametrize("code", ["", "9", "zz", "90" * 17, "FF"])
def test_code_is_a_few_bytes_in_hexadecimal(code: str) -> None:
    with pytest.raises(ValidationError):
        CostCode(address=0, bytes_=code)


def test_what_is_not_known_is_refused() -> None:
    empty = {"version": 1, "depth": "functions", "user": 0, "kernel": 0, "faulted": 0, "tasks": []}
    assert Costs.model_validate(empty).instructions == 0
    for wrong in ({"version": 2}, {"depth": "all"}, {"cycles": 1}, {"user": -1}):
        with pytest.raises(ValidationError):
            Costs.model_validate(empty | wrong)


EMPTY = {"faulted": 0, "functions": (), "parts": ()}
PACKED: TypeAdapter[NamedCosts] = TypeAdapter(PackedCosts)


def test_packed_costs_are_read_again() -> None:
    notes = tuple(f"note {number}" for number in range(500))
    costs = NamedCosts.model_validate({**EMPTY, "notes": notes})
    packed = PACKED.dump_json(costs)
    assert PACKED.validate_json(packed) == costs
    assert 3 * len(packed) < len(costs.model_dump_json())


@given(st.binary(max_size=50))
def test_what_is_not_packed_costs_is_refused(content: bytes) -> None:
    for text in (content.decode("latin1"), base64.b64encode(content).decode()):
        with pytest.raises(ValidationError):
            PACKED.validate_python(text)


COLUMNS = {"parents": (-1, 0), "functions": (0, 0), "kinds": (0, 0), "calls": (1, 1), "instructions": (3, 4)}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"kinds": (0,)}, "equally long"),
        ({"parents": (-1, 1)}, "must stand after"),
        ({"parents": (-2, 0)}, "must stand after"),
        ({"instructions": (3, 5)}, "do not add up"),
        ({"functions": (0, 1)}, "is not there"),
        ({"kinds": (0, 5)}, "is not there"),
    ],
)
def test_a_merged_tree_is_whole(changed: dict[str, tuple[int, ...]], problem: str) -> None:
    figures = dict.fromkeys(("loads", "stores", "branches", "switches_in"), 0)
    part = {"role": "workload", "tasks": 1, "user": 3, "kernel": 4, **figures, **COLUMNS}
    functions = [{"name": "main", "file": "/bin/true", "space": "user"}]
    assert NamedCosts.model_validate({**EMPTY, "functions": functions, "parts": [part]}).instructions == 7
    with pytest.raises(ValidationError, match=problem):
        NamedCosts.model_validate({**EMPTY, "functions": functions, "parts": [part | changed]})
