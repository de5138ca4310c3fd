"""``ajuste report --format lkml``: a run of the store as a mail, with its study as others can run it."""

from __future__ import annotations

from collections.abc import Sequence

from ajuste.cli.saving import study_text
from ajuste.machine.home import Home
from ajuste.model.continuation import REPRODUCE
from ajuste.model.results import Results
from ajuste.store.store import Store
from ajuste_share.mail import mail, study_file
from ajuste_share.shared_study import shared_study


def run_mail(results: Results, metrics: Sequence[str], mechanism: Results | None, place: Home) -> str:
    """Return the text of a mail on the run of ``results``, as an entry point of ``ajuste.texts``."""
    with Store(place.store_url) as store:
        shared = shared_study(store.find_run(results.run), place)
    command = "" if shared.built else next(iter(REPRODUCE.of(results)), f"ajuste report {results.run}")
    if shared.built:  # No command of this machine names a kernel that others have.
        results = results.with_facet(REPRODUCE, (f"ajuste run {study_file(results)} --build",))
    study = study_text(shared.study.document(), command)
    return mail(results, metrics, study, mechanism, shared.remarks, shared.built)
