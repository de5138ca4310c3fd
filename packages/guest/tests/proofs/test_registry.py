"""Claims about kernels, as people write them."""

from __future__ import annotations

import pytest

from ajuste.model.error import RequestError
from ajuste_guest.proofs.feature import ProofFinding
from ajuste_guest.proofs.prove import FEATURES, parse_claim, parse_claims


@pytest.mark.parametrize("text", ["numa", "no-numa", "hz=250", "no-sched_ext", "preempt=voluntary"])
def test_a_claim_is_said_as_it_was_written(text: str) -> None:
    assert str(parse_claim(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nuna", "did you mean numa"),
        ("no-kybr", "did you mean no-kyber"),
        ("xyz", "expected one of autogroup, cgroup2"),
        ("hz=", "expected a value as in"),
        ("no-hz=250", "expected a value as in"),
        ("", "not found"),
    ],
)
def test_what_is_no_claim_is_refused_with_what_would_be(text: str, words: str) -> None:
    with pytest.raises(RequestError) as refused:
        parse_claim(text)
    assert words in f"{refused.value.message} {refused.value.hint}"


def test_claims_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(RequestError, match="numa is given twice"):
        parse_claims(["numa", "no-numa"])
    assert len(parse_claims(["numa", "kyber", "numa"])) == 2


@pytest.mark.parametrize(
    ("claim", "present", "value", "holds"),
    [
        ("numa", True, "", True),
        ("numa", False, "", False),
        ("no-numa", False, "", True),
        ("no-numa", True, "", False),
        ("hz=250", True, "250", True),
        ("hz=1000", True, "250", False),
        ("preempt=none", True, "none", True),
        ("preempt=none", True, "none or voluntary", False),
        ("preempt=full", True, "none or voluntary", False),
    ],
)
def test_a_claim_holds_if_it_is_what_was_seen(claim: str, present: bool, value: str, holds: bool) -> None:
    assert parse_claim(claim).holds(ProofFinding(present, (), value)) is holds


@pytest.mark.parametrize("claim", ["numa", "no-numa", "hz=250"])
def test_no_claim_holds_where_nothing_can_be_told(claim: str) -> None:
    assert not parse_claim(claim).holds(ProofFinding(None, ()))


def test_every_feature_has_an_option_beside_its_evidence() -> None:
    assert all(feature.options and name == feature.name for name, feature in FEATURES.items())
