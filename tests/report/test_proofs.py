"""Proofs of what kernels have, in terminal and HTML."""

from __future__ import annotations

import io

from rich.console import Console
from tests.report.simulated import HOSTILE

from ajuste.model.kernel import PROOFS, Proof, ShownFeature, Sight
from ajuste.model.results import Results
from ajuste.report.document import Table
from ajuste.report.html import render_html
from ajuste.report.listings import proofs_section
from ajuste.report.results import results_report
from ajuste.report.terminal import print_report

SEEN = ShownFeature(
    feature="numa",
    title="NUMA",
    present=False,
    evidence=(Sight(what="/sys/devices/system/node/online", found=f"No such file {HOSTILE}"),),
    options={"CONFIG_NUMA": "n"},
    claim="no-numa",
)
PROOF = Proof(kernel="mine:non-numa", release="6.1.0", build="#1 SMP", features=(SEEN,))


def proved(results: Results) -> Results:
    proofs = {"mine:non-numa": PROOF.model_dump(mode="json"), "spoilt": {"features": 7}}
    return results.model_copy(update={"environment": {**results.environment, PROOFS: proofs}})


def test_a_run_without_proofs_has_no_table_of_them(granularity: Results) -> None:
    assert proofs_section(granularity) is None


def test_the_table_has_each_claim_with_what_was_seen(granularity: Results) -> None:
    section = proofs_section(proved(granularity))
    assert section is not None
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    (group,) = table.groups
    assert group.title == "mine:non-numa", "what is not understood is left out"
    assert [row.cells for row in group.rows] == [("numa", "no-numa", "no", "NUMA=n")]


def test_terminal_and_page_show_it_once(granularity: Results) -> None:
    results = proved(granularity)
    console = Console(file=io.StringIO(), width=200)
    print_report(results_report(results), console, verbose=True)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count("no-numa") == 1
    page = render_html(results_report(results))
    assert "Features found in the running kernels" in page
    assert HOSTILE not in page.split("<script", 1)[0] + page.split("</script>")[1]
