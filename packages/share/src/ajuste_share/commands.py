"""``ajuste bundle``, ``import`` and ``verify``: runs as one file, taken into another store, and measured again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ajuste.cli.listing import size_text
from ajuste.cli.options import Jobs, Json, Quiet, example
from ajuste.machine.home import home
from ajuste.model.error import RequestError, RunError
from ajuste.model.wording import count_of, visible_line

if TYPE_CHECKING:
    from ajuste_share.sharing import StoredRun
    from ajuste_share.verification import Verified

SUFFIX: Final = ".ajuste"
_MOST_NAMED: Final = 5

BundleFile = Annotated[Path, typer.Argument(metavar="FILE", help="A bundle: FILE.ajuste.", show_default=False)]


@example("ajuste import runs.ajuste")
def import_(file: BundleFile, as_json: Json = False) -> None:
    """Take the runs of a bundle into the store, all or none; they keep their ids.

    A run that the store has already stays. ajuste run never uses an imported run instead of measuring.
    """
    from ajuste.store.store import Store
    from ajuste_share.sharing import import_bundle

    with Store(home().store_url) as store:
        imported = import_bundle(file, store)
    if as_json:
        typer.echo(json.dumps({"file": str(file), "runs": [asdict(run) for run in imported]}, indent=2))
        return
    for run in imported:
        what = f"{run.id}  {visible_line(run.study)}  {count_of(run.trials, 'trial')}"
        typer.echo(f"{what}: {'imported' if run.new else 'in the store already'}")
        if run.new and run.said_anew:
            parts = ", ".join(name.replace("_", " ") for name in run.different)
            typer.echo(
                "  Some results in the bundle do not follow from its trials with this Ajuste. They are computed again: "
                f"{parts}."
            )
    if any(run.new for run in imported):
        typer.echo(f"Show it with ajuste report {next(run.id for run in imported if run.new)}")


@example("ajuste bundle nice -o runs.ajuste")
def bundle(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs, or studies (their newest runs).", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The bundle, a new file: FILE.ajuste.")
    ],
    as_json: Json = False,
) -> None:
    """Put runs that ended into one file: study, machine, trials with all they printed, recordings, results.

    Another store takes it with ajuste import. Read what programs printed before you share it.
    """
    from ajuste.store.store import Store
    from ajuste_share.bundle import write_bundle
    from ajuste_share.sharing import to_bundle

    with Store(home().store_url) as store:
        bundled = to_bundle(runs, store)
        write_bundle(output, bundled, len(bundled))
        trials = sum(store.count(stored.run) for stored in bundled)
    size = output.stat().st_size
    if as_json:
        names = [stored.run.id for stored in bundled]
        typer.echo(json.dumps({"file": str(output), "runs": names, "trials": trials, "size_bytes": size}, indent=2))
        return
    whole = f"{count_of(len(bundled), 'run')} and {count_of(trials, 'trial')}"
    typer.echo(f"{whole} are in {visible_line(str(output))} ({size_text(size)}).")


@example("ajuste verify runs.ajuste")
def verify(
    run: Annotated[
        str, typer.Argument(metavar="RUN|FILE", help="A run, a study (its newest run), or a bundle: FILE.ajuste.")
    ],
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure every trial of a run again in guests, and say whether the digest is the same.

    Applies to runs under the virtual clock. Nothing is kept. Exit code 1 if a digest differs.
    """
    from ajuste.catalogue.loader import catalogue
    from ajuste.run.experiment import progress_of
    from ajuste.run.testbed import RunOptions
    from ajuste_share.verification import require_verifiable
    from ajuste_share.verification import verify as measured_again

    known = catalogue()
    with _runs(run) as (runs, stranger):
        studies = [require_verifiable(stored.run, stranger=stranger) for stored in runs]
        results = []
        for stored, resolved in zip(runs, studies, strict=True):
            with progress_of(resolved.study, known, quiet=quiet or as_json) as progress:
                run_options = RunOptions(home(), jobs=jobs, say=progress.say)
                results.append(
                    measured_again(stored.run, list(stored.trials), stored.head.digest, known, run_options, progress)
                )
    if as_json:
        typer.echo(json.dumps([{"same": verified.same, **asdict(verified)} for verified in results], indent=2))
    else:
        for verified in results:
            _show(verified)
    if not all(verified.same for verified in results):
        raise RunError("what was measured again is not the same", hint="see the lines above for what differs")


@contextmanager
def _runs(text: str) -> Iterator[tuple[Sequence[StoredRun], bool]]:
    # The runs that `text` names, and whether somebody else measured them: nothing of those is trusted.
    from ajuste.store.store import Store
    from ajuste_share.sharing import to_bundle, unpacked

    file = Path(text)
    if file.suffix == SUFFIX or file.is_file():
        if not file.is_file():
            raise RequestError(f"bundle {file} not found", hint="name a bundle, FILE.ajuste, or a run")
        with unpacked(file) as (runs, _):
            yield runs, True
        return
    with Store(home().store_url) as store:
        stored = to_bundle([text], store)
        yield stored, stored[0].run.imported


def _show(verified: Verified) -> None:
    name = f"{verified.run} ({visible_line(verified.study)})"
    if verified.same:
        typer.echo(
            f"Run {name} is the same when it is measured again: {count_of(verified.trials, 'trial')}, to the bit."
        )
    else:
        typer.echo(f"Run {name} differs in {len(verified.different)} of {count_of(verified.trials, 'trial')}.")
    for kernel, (then, now) in verified.kernels.items():
        typer.echo(f"  kernel {visible_line(kernel)}: {visible_line(then)} then, {now} now")
    if not verified.same_parts:
        typer.echo("  Kernel, programs, files or QEMU are not those of the run.")
    for line in verified.different[:_MOST_NAMED]:
        typer.echo(f"  {visible_line(line)}")
    typer.echo(f"  digest   {verified.digest}\n  measured {verified.measured}")
