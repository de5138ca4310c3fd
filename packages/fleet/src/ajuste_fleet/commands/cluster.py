"""``ajuste cluster``: trials on other machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ajuste.cli.choice import cluster_of
from ajuste.cli.command_line import Commands
from ajuste.cli.options import ClusterKeys, Insecure, example, examples, help_if_alone
from ajuste.machine.home import home
from ajuste.model.error import RequestError

app = Commands(
    help=examples(
        "Run trials on other machines: make a key, start a scheduler, and a worker on each machine.",
        "ajuste cluster keys",
    ),
    invoke_without_command=True,
    callback=help_if_alone,
)


@app.command()
@example("ajuste cluster keys", "ajuste cluster keys lab-keys")
def keys(
    directory: Annotated[
        Path | None,
        typer.Argument(help="Output directory (default: cluster-keys in the data directory).", show_default=False),
    ] = None,
) -> None:
    """Make the key of a cluster. Copy it to all its machines.

    As with an SSH key, anyone who has it can run commands on every machine of the cluster.
    """
    from ajuste_fleet.cluster.keys import make_key

    typer.echo(make_key(directory or home().cluster_keys))


@app.command()
@example(
    "ajuste cluster worker --scheduler tls://lab1:8786", "ajuste cluster worker --bench --scheduler tls://lab1:8786"
)
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
    """Run trials of studies that were started with `--cluster`, as a Dask worker.

    Anyone with the cluster's key can run commands here, as the user who started this.
    """
    cluster = cluster_of("--scheduler", scheduler, cluster_keys, insecure=insecure)
    if bench and threads is not None:
        raise RequestError("--threads conflicts with --bench, which runs one trial at a time")
    from ajuste_fleet.cluster.processes import serve

    serve(cluster, lambda text: typer.echo(text, err=True), threads=threads, bench=bench)


@app.command()
@example("ajuste cluster scheduler --listen tls://lab1:8786")
def scheduler(
    listen: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Listen at tls://HOST:8786, a name or IP address of this machine.",
            show_default=False,
        ),
    ],
    cluster_keys: ClusterKeys = None,
    insecure: Insecure = False,
) -> None:
    """Distribute trials from `--cluster` to every worker, until interrupted: a Dask scheduler.

    Needs no privileges and stores nothing. Only holders of the cluster's key can connect.
    """
    cluster = cluster_of("--listen", listen, cluster_keys, insecure=insecure)
    from ajuste_fleet.cluster.processes import schedule

    schedule(cluster, lambda text: typer.echo(text, err=True))
