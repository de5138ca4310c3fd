"""``ajuste cluster``: trials on other machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ajuste.cli.choice import chosen_channel
from ajuste.cli.command_line import Commands
from ajuste.cli.options import ClusterKeys, Insecure, example, examples, help_if_alone
from ajuste.machine.home import home
from ajuste.model.error import RequestError

app = Commands(
    help=examples(
        "Run trials on other machines: make the keys, start a scheduler, and a worker on each machine.",
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
    """Make keys for a scheduler, its workers and its coordinators, one file each.

    Give every machine authority.pem and the file of what it is, and no other: a worker's key gives no orders.
    """
    from ajuste.executor.cluster.channel import make_keys

    for path in make_keys(directory or home().cluster_keys):
        typer.echo(path)


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
    """Run trials of studies that were started with `--cluster`.

    With --bench, anyone with the coordinator's key can run commands here, as the user who started this.
    """
    channel = chosen_channel("--scheduler", scheduler, cluster_keys, insecure=insecure)
    if bench and threads is not None:
        raise RequestError("--threads conflicts with --bench, which runs one trial at a time")
    from ajuste.executor.cluster.serving import serve

    serve(channel, home(), lambda text: typer.echo(text, err=True), threads=threads, bench=bench)


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
    """Distribute trials from `--cluster` to every `ajuste cluster worker`, until interrupted.

    Needs no privileges and stores nothing. Only holders of a cluster key can connect.
    """
    channel = chosen_channel("--listen", listen, cluster_keys, insecure=insecure)
    from ajuste.executor.cluster.scheduler import listen_at

    listen_at(channel, lambda text: typer.echo(text, err=True))
