"""``ajuste doctor`` as a person uses it."""

from __future__ import annotations

import re
from contextlib import ExitStack, suppress

import pytest

from ajuste.executor.host.machine_lock import MachineLock
from ajuste.model.error import RequestError
from ajuste_doctor.diagnosis import Diagnosis
from shell import Shell

pytestmark = pytest.mark.usefixtures("machine_lock")


def test_the_doctor_says_its_verdict_first(ajuste: Shell) -> None:
    output, complained = ajuste("doctor", "--quick")
    assert complained == "", "no progress where nobody looks"
    first = output.splitlines()[0]
    assert re.fullmatch(
        r"This machine is (quiet|usable|noisy): 2 % effects need (about|more than) [\d,]+ blocks\.", first
    )
    for title in ("What a study could see here", "Disturbances, most important first"):
        assert title in output


def test_the_document_has_the_figures_and_the_findings(ajuste: Shell) -> None:
    document = ajuste.json("doctor", "--quick")
    diagnosis = Diagnosis.model_validate(document)
    assert diagnosis.sentence.startswith(diagnosis.verdict)
    assert len(diagnosis.measured.runs) >= 10
    assert len(diagnosis.effects) == 4
    for finding in diagnosis.findings:
        assert (finding.value is None) == (finding.severity in ("unknown", "note"))


def test_while_an_experiment_goes_on_nothing_is_measured(ajuste: Shell) -> None:
    with ExitStack() as stack:
        with suppress(RequestError):  # one that is none of the tests' will do as well
            stack.enter_context(MachineLock("measurement"))
        output, complained = ajuste("doctor", "--quick", expect=2)
    assert output == ""
    assert "another experiment is running on this machine" in complained
