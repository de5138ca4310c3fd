"""Facets of results: documents with keys of their own, read as what they are."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from ajuste.model.continuation import CONTINUATION, REPRODUCE, Continuation
from ajuste.model.facets import FACETS, RECORDED, stored_results
from ajuste.model.history import HISTORIES
from ajuste.model.results import Results
from verdicts import decided

AGAIN = ("ajuste run small.toml",)


@pytest.fixture
def results() -> Results:
    return decided()


def test_a_value_is_read_from_the_results_and_from_their_document(results: Results) -> None:
    changed = results.with_facet(REPRODUCE, AGAIN).with_facet(CONTINUATION, Continuation(command="go on"))
    again = stored_results(changed.model_dump_json())
    assert again == changed
    assert REPRODUCE.of(again) == AGAIN
    assert CONTINUATION.of(again) == Continuation(command="go on")
    assert REPRODUCE.of(results) == ()


def test_what_is_absent_has_a_key_only_if_it_always_has(results: Results) -> None:
    gone = results.with_facet(CONTINUATION, Continuation(command="x")).with_facet(CONTINUATION, None)
    document = json.loads(gone.with_facet(REPRODUCE, ()).model_dump_json())
    assert "continuation" not in document
    assert document["reproduce"] == []


def test_a_facet_of_another_form_is_refused_where_results_are_read(results: Results) -> None:
    for key in (HISTORIES.key, RECORDED):
        document = json.loads(results.model_dump_json()) | {key: [{"of": "another version"}]}
        with pytest.raises(ValidationError):
            stored_results(json.dumps(document))


def test_no_facet_has_the_name_of_a_field() -> None:
    assert not {facet.key for facet in FACETS} & Results.model_fields.keys()
    assert len(Results.model_fields) <= 29
