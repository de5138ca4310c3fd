"""``ajuste scheduler``: brings coordinators and workers together."""

from __future__ import annotations

from typing import Annotated

import typer

from ajuste.cli.choice import chosen_channel
from ajuste.cli.options import ClusterKeys, Insecure, example


@example("ajuste scheduler --listen tls://lab1:8786")
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
    """Distribute trials from `--cluster` to every `ajuste worker`, until interrupted.

    Needs no privileges and stores nothing. Only holders of a cluster key can connect.
    """
    channel = chosen_channel("--listen", listen, cluster_keys, insecure=insecure)
    from ajuste.executor.cluster.channel import listen_at

    listen_at(channel, lambda text: typer.echo(text, err=True))
