"""``ajuste schema``: the JSON Schema of study files, for editors."""

from __future__ import annotations

import json

import typer

from ajuste.catalogue.loader import catalogue
from ajuste.cli.options import example
from ajuste.study.read import json_schema


@example("ajuste schema > study.schema.json")
def schema() -> None:
    """Print the JSON Schema of study files, for completion and checks in an editor."""
    typer.echo(json.dumps(json_schema(catalogue()), indent=2, ensure_ascii=False))
