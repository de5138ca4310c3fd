"""``ajuste studies`` and ``ajuste schema``: the built-in studies, and the schema of study files for editors."""

from __future__ import annotations

import json

import typer
from rich.padding import Padding

from ajuste.cli.command_line import Commands
from ajuste.cli.options import Json, StudyName, example
from ajuste.model.caller import open_given
from ajuste.model.error import RequestError
from ajuste.report.console import Console
from ajuste.study.builtin import builtin_studies, find_study

app = Commands(invoke_without_command=True)


@app.callback()
@example("ajuste studies")
def studies(context: typer.Context, as_json: Json = False) -> None:
    """List the built-in studies; `ajuste run NAME` runs one, `ajuste plan NAME` shows what it would do."""
    if context.invoked_subcommand is not None:
        if as_json:
            raise RequestError("--json applies only to the list of studies", hint="use ajuste studies --json")
        return
    builtin = builtin_studies()
    if as_json:
        rows = [{"name": s.name, "title": s.title, "question": s.question} for s in builtin]
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    console = Console()
    for study in builtin:
        console.print(study.name, style="bold")
        for text in (study.title, study.question):
            if console.is_terminal:
                console.print(Padding(text, (0, 0, 0, 4), expand=False))
            else:
                console.print(f"    {text}", soft_wrap=True)


@app.command()
@example("ajuste studies show granularity", "ajuste studies show granularity > my-study.toml")
def show(study: StudyName) -> None:
    """Print the TOML of STUDY, to change it and run it as your own file."""
    with open_given(find_study(study)) as file:
        print(file.read().decode(errors="replace"), end="")


@example("ajuste schema > study.schema.json")
def schema() -> None:
    """Print the JSON Schema of study files, for completion and checks in an editor."""
    from ajuste.catalogue.loader import catalogue  # a list of the studies takes neither of them, which load long
    from ajuste.study.read import json_schema

    typer.echo(json.dumps(json_schema(catalogue()), indent=2, ensure_ascii=False))
