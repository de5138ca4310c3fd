"""``ajuste serve``: the lab page, in a browser."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from ajuste.cli.options import Json, example
from ajuste.machine.home import home
from ajuste.machine.installation import require_extra


@example("ajuste serve", "ajuste serve --port 8700 --no-browser")
def serve(
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            metavar="N",
            help="Listen on this port (default: 8642, or a free one).",
            show_default=False,
        ),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    allow_host: Annotated[
        bool,
        typer.Option("--allow-host", help="As root: let the page run studies that change settings of this machine."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Open the lab page: see runs, watch and compare them, and start new ones.

    Listens on this machine only. The address has a token; all who have it may use the page. Press Ctrl-C to stop; runs
    that were started go on.
    """
    require_extra("serve")
    from ajuste.lab.application import serve as serve_lab

    def tell(found: dict[str, Any]) -> None:
        typer.echo(json.dumps(found) if as_json else f"Lab page: {found['address']}")
        sys.stdout.flush()

    serve_lab(home(), port=port, browser=not no_browser, allow_host=allow_host, tell=tell)
