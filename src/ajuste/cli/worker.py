"""``ajuste worker``: this machine carries out trials for others."""

from __future__ import annotations

from typing import Annotated

import typer

from ajuste.cli.choice import chosen_channel
from ajuste.cli.options import ClusterKeys, Insecure, example
from ajuste.machine.home import home
from ajuste.model.error import RequestError


@example("ajuste worker --scheduler tls://lab1:8786", "ajuste worker --bench --scheduler tls://lab1:8786")
def worker(
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Of the scheduler: tls://HOST:8786.", show_default=False)
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
    cluster_keys: ClusterKeys = None,
    insecure: Insecure = False,
) -> None:
    """Carry out trials of studies that run elsewhere, with `--cluster`.

    With --bench, anyone with the coordinator's key can run commands here, as the user who started this.
    """
    channel = chosen_channel("--scheduler", scheduler, cluster_keys, insecure=insecure)
    if bench and threads is not None:
        raise RequestError("--threads is for guests; a machine that measures does one thing at a time (--bench)")
    from ajuste.executor.cluster.serving import serve

    serve(channel, home(), lambda text: typer.echo(text, err=True), threads=threads, bench=bench)
