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
            help="Where to listen: tls://HOST:8786, a name or number of this machine.",
            show_default=False,
        ),
    ],
    cluster_keys: ClusterKeys = None,
    insecure: Insecure = False,
) -> None:
    """Pass trials on from `--cluster` to every `ajuste worker`, until it is interrupted.

    It needs no rights and keeps nothing; only who has a key of the cluster gets in.
    """
    channel = chosen_channel("--listen", listen, cluster_keys, insecure=insecure)
    from ajuste.executor.cluster.channel import listen_at

    listen_at(channel, lambda text: typer.echo(text, err=True))
