"""``ajuste worker``: this machine carries out trials for others."""

from __future__ import annotations

from typing import Annotated

import typer

from ajuste.cli.elsewhere import check_address
from ajuste.cli.example import example
from ajuste.home import home
from ajuste.model.error import RequestError
from ajuste.target.cluster.serving import serve


@example("ajuste worker --scheduler tcp://lab1:8786", "ajuste worker --bench --scheduler tcp://lab1:8786")
def worker(
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Of the Dask scheduler: tcp://HOST:8786.", show_default=False)
    ],
    threads: Annotated[
        int | None, typer.Option(min=1, help="Guests at once; as many as CPUs if not given.", show_default=False)
    ] = None,
    bench: Annotated[
        bool,
        typer.Option(
            "--bench", help="Offer this machine for measuring by its own clock: its settings are changed and put back."
        ),
    ] = False,
) -> None:
    """Carry out trials of studies that run elsewhere, with `--cluster`.

    Whoever reaches the scheduler can run anything here, as the user who started this.
    """
    check_address("--scheduler", scheduler)
    if bench and threads is not None:
        raise RequestError("--threads is for guests; a machine that measures does one thing at a time (--bench)")
    serve(scheduler, home(), lambda text: typer.echo(text, err=True), threads=threads, bench=bench)
