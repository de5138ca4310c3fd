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
        str, typer.Option(metavar="ADDRESS", help="Address of the scheduler: tls://HOST:8786.", show_default=False)
    ],
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Number of guests to run in parallel (default: number of CPUs).", show_default=False),
    ] = None,
    bench: Annotated[
        bool,
        typer.Option(
            "--bench", help="Let studies measure on this machine itself; its settings are changed and restored."
        ),
    ] = False,
    cluster_keys: ClusterKeys = None,
    insecure: Insecure = False,
) -> None:
    """Run trials of studies that were started with `--cluster`.

    With --bench, anyone with the coordinator's key can run commands here, as the user who started this.
    """
    channel = chosen_channel("--scheduler", scheduler, cluster_keys, insecure=insecure)
    if bench and threads is not None:
        raise RequestError("--threads conflicts with --bench, which runs one trial at a time")
    from ajuste.executor.cluster.serving import serve

    serve(channel, home(), lambda text: typer.echo(text, err=True), threads=threads, bench=bench)
