"""Options that several commands have. Nothing heavy is loaded for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="A built-in study (see `ajuste studies`) or a study file.")
]
Kernel = Annotated[
    str | None,
    typer.Option(
        help="Another kernel than the study's, such as debian:6.12 or mine:NAME; several, with commas between."
    ),
]
Target = Annotated[
    Literal["vm", "host"] | None,
    typer.Option(help="Elsewhere than the study says: in a guest, or on this machine by its own clock."),
]
Disk = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE",
        help="With --target host: the disk that a study about one may overwrite. Without it a loop device is made.",
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Another seed than the study's.")]
Parameter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE", help="Another value of a parameter of the workload than the study's (repeatable)."
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(metavar="FACTOR=LEVEL", help="Leave out a level of one of the study's factors (repeatable)."),
]
Report = Annotated[Path | None, typer.Option(help="Where to write the HTML report.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Guests at once under the virtual clock; as many as CPUs if not given.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print all details of the results.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
AcceptRisk = Annotated[
    bool,
    typer.Option("--accept-risk", help="Set on this machine even values that can hang it (`ajuste plan` names them)."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Share trials out among N processes of this machine.", show_default=False),
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Share trials out among the workers of a scheduler: tls://HOST:8786; on hosts: whole blocks.",
        show_default=False,
    ),
]
ClusterKeys = Annotated[
    Path | None,
    typer.Option(
        "--cluster-keys",
        metavar="DIRECTORY",
        help="Keys for tls:// (see `ajuste cluster keys`); default: cluster-keys of the data directory.",
        show_default=False,
    ),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow tcp://, where anyone can listen in and give orders; not for root.")
]
