"""``ajuste export``: the winner of a run as a profile, a file or a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ajuste.cli.options import Json, example
from ajuste.machine.files import make_directory, write_text
from ajuste.machine.home import KINDS, home, require_extra
from ajuste.model.error import RequestError, did_you_mean, nearest_names
from ajuste.model.wording import visible_line
from ajuste.run.outcome import results_of
from ajuste.store.record import KeptRecord
from ajuste.store.store import Run, Store
from ajuste.study.resolved import ResolvedStudy
from ajuste_profiles.export import Export, ExportFile, Rendered
from ajuste_profiles.formats import default_format, renderers
from ajuste_profiles.winner import configuration_export, supported


@example(
    "ajuste export granularity sched_min_granularity_ns=750000000 --format sysctl.d",
    "ajuste export granularity sched_min_granularity_ns=750000000 --format tuned --output profiles",
)
def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, or a study (its newest run).")],
    configuration: Annotated[
        str | None, typer.Argument(help="The configuration (default: the best that beats the baseline).")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="tuned: a profile; sysctl.d: a file; systemd: a unit; ansible; shell (default: shell, or systemd for "
            "what belongs to a process).",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write the files to this directory (default: print them).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    as_json: Json = False,
) -> None:
    """Write the winning configuration of RUN as a profile, a file or a script.

    Comments give the evidence and how to undo it. Only proven improvements are exported.
    """
    if kind is not None and kind not in renderers():
        raise RequestError(
            f"--format {kind}: format not found; expected one of {', '.join(renderers())}",
            hint=did_you_mean(nearest_names(kind, renderers())),
        )
    with Store(home().store_url) as store:
        chosen = _chosen(store, store.find_run(run), configuration)
    kind = kind or default_format(chosen)
    rendered = renderers()[kind](chosen)
    if not rendered.files:
        why = (
            "; ".join(f"{omitted.what}: {omitted.why}" for omitted in rendered.left_out)
            or "it has the baseline's settings"
        )
        raise RequestError(
            f"the format {kind} supports no setting of {visible_line(chosen.configuration)}: {visible_line(why)}",
            hint=_other_formats(chosen, kind),
        )
    if output is not None:
        _write(rendered.files, output, force)
    if as_json:
        typer.echo(json.dumps(_document(chosen, rendered, kind), indent=2, ensure_ascii=False))
        return
    _show(rendered, output)


def write_winner(run: str, directory: Path) -> list[Path]:
    """Write the proved winner of ``run`` to ``directory`` for sysctl.d; return the files. Raises RequestError."""
    with Store(home().store_url) as store:
        chosen = _chosen(store, store.find_run(run), None)
    rendered = renderers()["sysctl.d"](chosen)
    if not rendered.files:
        raise RequestError(f"the format sysctl.d supports no setting of {visible_line(chosen.configuration)}")
    _write(rendered.files, directory, force=False)
    return [directory / file.name for file in rendered.files]


def _chosen(store: Store, run: Run, wanted: str | None) -> Export:
    resolved = ResolvedStudy.model_validate_json(run.resolved)
    if resolved.kind:
        require_extra(KINDS[resolved.kind])  # it knows what is against a configuration
    results = results_of(run, store)
    name = supported(results, wanted)
    # A trial that failed may have written only some of the settings.
    measured = KeptRecord(run, store).measurements
    rows = measured.of(name)
    clean = rows[measured.has_status("ok")[rows]]
    written = measured.written[int(clean[0])] if len(clean) else ()
    return configuration_export(results, resolved, written, name)


def _other_formats(export: Export, kind: str) -> str | None:
    able = [name for name, render in renderers().items() if name != kind and render(export).files]
    return f"use --format {' or '.join(able)}" if able else None


def _write(files: tuple[ExportFile, ...], directory: Path, force: bool) -> None:
    there = [directory / file.name for file in files if (directory / file.name).exists()]
    if there and not force:
        raise RequestError(
            f"{there[0]} exists; nothing was written", hint="use --force to overwrite it, or choose another directory"
        )
    try:
        for file in files:
            path = directory / file.name
            make_directory(path.parent, 0o755)
            write_text(path, file.text, mode=file.mode)
    except OSError as error:
        raise RequestError(
            f"--output {directory}: {error.strerror}: {error.filename}", hint="choose a directory that you can write to"
        ) from error


def _show(rendered: Rendered, output: Path | None) -> None:
    for file in rendered.files:
        if output is not None:
            typer.echo(f"{output / file.name}{f'  (belongs to {file.place})' if file.place else ''}")
        else:
            if len(rendered.files) > 1:
                typer.echo(f"# ---- {file.place} ----")
            typer.echo(file.text, nl=False)
    for omitted in rendered.left_out:
        typer.echo(f"not exported: {visible_line(omitted.what)} ({visible_line(omitted.why)})", err=True)


def _document(export: Export, rendered: Rendered, kind: str) -> dict[str, Any]:
    return {
        "format": kind,
        "configuration": export.configuration,
        "evidence": list(export.evidence),
        "settings": [
            {
                "tunable": setting.tunable,
                "where": setting.where,
                "value": setting.became,
                "asked": setting.asked,
                "before": setting.before,
            }
            for setting in export.settings
        ],
        "files": [
            {"name": file.name, "place": file.place, "executable": file.executable, "text": file.text}
            for file in rendered.files
        ],
        "not_exported": [{"what": omitted.what, "why": omitted.why} for omitted in rendered.left_out],
    }
