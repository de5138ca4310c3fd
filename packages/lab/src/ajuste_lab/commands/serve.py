"""``ajuste serve`` and ``ajuste mcp``: the lab, as a page in a browser and for agents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.edge import ServerStopped
from ajuste.cli.options import Json, example
from ajuste.machine.home import home, require_extra
from ajuste.model.error import RequestError


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
    from ajuste_lab.application import serve as serve_lab

    def tell(details: dict[str, Any]) -> None:
        typer.echo(json.dumps(details) if as_json else f"Lab page: {details['address']}")
        sys.stdout.flush()

    with _until_stopped():
        serve_lab(home(), port=port, browser=not no_browser, allow_host=allow_host, tell=tell)


@example("ajuste mcp --trials 500 --minutes 30", "ajuste mcp --http --port 8643")
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve by streamable HTTP on this machine only (default: standard input).")
    ] = False,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, metavar="N", help="With --http: the port (0: any free).")
    ] = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="The client may measure so many trials.")] = 2000,
    minutes: Annotated[
        float,
        typer.Option("--minutes", min=0.1, help="It may use so many minutes of this machine; then its jobs are ended."),
    ] = 120.0,
    calls: Annotated[int, typer.Option("--calls", min=1, help="It may call so often in any minute.")] = 120,
    allow_host: Annotated[
        str | None,
        typer.Option(
            "--allow-host",
            metavar="NAME,...",
            help="As root: let it change these tunables of this machine; its commands run as the user nobody (default: "
            "none; guests only).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Serve agents by the Model Context Protocol.

    An agent lists tunables and runs, plans studies, runs them in guests, reads verdicts and proposes to campaigns. It
    changes nothing of this machine, unless you name tunables with --allow-host. Its client starts this command, or
    connects to the address of --http with the token that is printed.
    """
    require_extra("mcp")
    if port is not None and not http:
        raise RequestError("--port requires --http", hint="add --http")
    if as_json and not http:
        raise RequestError("--json requires --http: standard output belongs to the protocol", hint="remove --json")
    names = [] if allow_host is None else [name.strip() for name in allow_host.split(",")]
    allowed = tuple(dict.fromkeys(catalogue().find_tunable(name).name for name in names))
    from ajuste_lab.agents.budget import AgentBudget, AgentLimits
    from ajuste_lab.agents.desk import AgentDesk
    from ajuste_lab.agents.protocol import serve_http, serve_stdio
    from ajuste_lab.service import LabService

    limits = AgentLimits(trials, minutes, calls)
    service = LabService(home(), allow_host=bool(allowed))
    desk = AgentDesk(service, AgentBudget(limits), allowed)
    if http:
        with _until_stopped():
            serve_http(desk, port, as_json=as_json)
    else:
        serve_stdio(desk)


@contextmanager
def _until_stopped() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise ServerStopped from None
