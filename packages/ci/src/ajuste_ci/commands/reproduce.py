"""``ajuste reproduce``: a run as a study file that is a regression test for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ajuste.cli.options import Force, example, option
from ajuste.cli.saving import check_save, save_study
from ajuste.machine.home import home
from ajuste.model.continuation import REPRODUCE
from ajuste.model.wording import count_of, listed, visible_line
from ajuste.run.outcome import results_of
from ajuste.study.command_line.request import share
from ajuste.study.schema import ExpectTable
from ajuste_ci.reproducer import reproducer


@example("ajuste reproduce slices -o slices.toml")
def reproduce(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, or a study (its newest run).")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The study file to write.")],
    within: Annotated[
        str | None,
        option("Also expect the means of deciding metrics, give or take this share.", "SHARE"),
    ] = None,
    fixed: Annotated[
        bool,
        typer.Option(
            "--fixed", help="Expect what a fix brings: no failed trial, and less than half of what worsens or differs."
        ),
    ] = False,
    force: Force = False,
) -> None:
    """Write RUN as a study file that expects its verdicts, and its digest under the virtual clock.

    `ajuste run FILE` measures it again: exit code 0 if all comes out as expected, 3 if not. With `ajuste run FILE
    --kernel SPEC` it tests another kernel: then only verdicts and means are compared.
    """
    check_save(output, "--output")
    limit = None if within is None else share("--within", within)
    from ajuste.store.store import Store  # saving a study needs no database

    with Store(home().store_url) as store:
        stored = store.find_run(run)
        results = results_of(stored, store)
        study, notes = reproducer(stored, results, home(), limit, fixed=fixed)
    again = REPRODUCE.of(results)[0] if REPRODUCE.of(results) else ""
    save_study(study.document(), output, again, "--output", force=force)
    expected = study.expect or ExpectTable()
    words = [count_of(len(expected.figures), "figure"), *(["the digest"] if expected.digest else [])]
    typer.echo(f"{output} expects {listed(words)}")
    for note in notes:
        typer.echo(visible_line(note))
