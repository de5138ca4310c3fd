"""``ajuste doctor`` as a person uses it."""

from __future__ import annotations

import re

from ajuste.doctor.diagnosis import Diagnosis
from shell import Shell


def test_the_doctor_ends_with_a_verdict(ajuste: Shell) -> None:
    said, complained = ajuste("doctor", "--quick")
    assert complained == "", "no progress where nobody looks"
    last = said.rstrip().splitlines()[-1]
    assert re.fullmatch(
        r"This machine is (quiet|usable|noisy): 2 % effects need (about|more than) [\d,]+ blocks\.", last
    )
    for title in ("What a study could see here", "What disturbs, most important first"):
        assert title in said


def test_the_document_has_the_figures_and_the_findings(ajuste: Shell) -> None:
    document = ajuste.json("doctor", "--quick")
    diagnosis = Diagnosis.model_validate(document)
    assert diagnosis.sentence.startswith(diagnosis.verdict)
    assert len(diagnosis.measured.runs) >= 10
    assert len(diagnosis.effects) == 4
    for finding in diagnosis.findings:
        assert (finding.value is None) == (finding.severity in ("unknown", "note"))
