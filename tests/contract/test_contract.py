"""Python's side of the contract: the same files are read by ``native/agent/tests/contract.rs``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from ajuste.model.event import parse_event
from ajuste.model.plan import Plan
from looped import each

CONTRACT = Path(__file__).parents[2] / "contract"
PLANS = sorted((CONTRACT / "plan").glob("*.json"))


def lines(place: str) -> list[str]:
    return (CONTRACT / place).read_text(encoding="utf-8").splitlines()


@each(PLANS)
def test_every_plan_is_written_again_as_it_was_with_its_defaults(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    written = json.loads(Plan.model_validate_json(path.read_text(encoding="utf-8")).model_dump_json())
    assert written == json.loads(Plan(id="m").model_dump_json()) | document


def test_there_are_plans_to_read() -> None:
    assert {"minimal.json", "reads.json", "trial.json"} <= {path.name for path in PLANS}


@each(lines("events/trial.jsonl") + lines("events/restore.jsonl"))
def test_every_event_is_written_again_as_it_was(line: str) -> None:
    assert json.loads(parse_event(line).model_dump_json()) == json.loads(line)


@each(lines("events/malformed.jsonl"))
def test_no_malformed_event_is_read(line: str) -> None:
    with pytest.raises(ValidationError):
        parse_event(line)


@each(lines("plan/malformed.jsonl"))
def test_no_malformed_plan_is_read(line: str) -> None:
    with pytest.raises(ValidationError):
        Plan.model_validate_json(line)
